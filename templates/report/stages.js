/* Latency per stage: shares of a token, figures, medians by layer. */
function stages() {
  if (!data.stages.length) {
    hide('stages');
    return;
  }
  const shared = data.stages.filter((stage) => stage.share !== null);
  byId('stage-share').replaceChildren(
    element(
      'div',
      {
        class: 'bar',
        role: 'img',
        'aria-label': 'Shares of the time: ' + shared.map((s) => `${s.stage} ${percent(s.share)}`).join(', '),
      },
      ...shared.map((s) =>
        element('div', {
          style: `width:${s.share * 100}%;background:${colour(s.stage)}`,
          'data-tip': `${s.stage}: ${percent(s.share)} of the time of all tokens\n${duration(s.figures.total_us)} together`,
        }),
      ),
    ),
  );
  table(
    'stage-table',
    ['stage', 'share of time', 'count', 'median', 'p99', 'max', 'std dev', 'distribution'],
    data.stages.map(stageRow),
  );
  layers();
}

function stageRow(stage) {
  const f = stage.figures;
  const name = element(
    'span',
    { class: 'legend', style: 'margin:0;color:inherit' },
    element('span', {}, element('i', { class: 'swatch', style: `background:${colour(stage.stage)}` }), stage.stage),
  );
  const share =
    stage.share === null
      ? ''
      : element(
          'span',
          {},
          element(
            'span',
            { class: 'meter' },
            element('i', { style: `width:${stage.share * 100}%;background:${colour(stage.stage)}` }),
          ),
          element('span', { class: 'percent' }, percent(stage.share)),
        );
  return [
    name,
    share,
    whole(f.count),
    duration(f.median_us),
    duration(f.p99_us),
    duration(f.max_us),
    duration(f.std_us),
    spark(f.histogram, stage.stage),
  ];
}

function spark(histogram, name) {
  const width = 120,
    height = 26,
    most = Math.max(...histogram.counts),
    each = width / histogram.counts.length;
  const root = svg('svg', {
    width,
    height,
    role: 'img',
    'aria-label': `Histogram of ${name}`,
    'data-histogram': name,
    style: 'vertical-align:middle',
  });
  histogram.counts.forEach((count, index) => {
    const tall = count ? Math.max(1, (count / most) * (height - 1)) : 0;
    root.append(
      svg('rect', {
        x: index * each,
        width: Math.max(0.5, each - 0.7),
        y: height - tall,
        height: tall,
        fill: colour(name),
      }),
    );
    root.append(
      svg('rect', {
        class: 'hit',
        x: index * each,
        width: each,
        y: 0,
        height,
        'data-tip': `${duration(histogram.edges_us[index])} to ${duration(histogram.edges_us[index + 1])}: ${whole(count)}${histogram.scale === 'log' ? '\nlogarithmic' : ''}`,
      }),
    );
  });
  root.append(svg('line', { class: 'axis', x1: 0, x2: width, y1: height, y2: height }));
  return root;
}

function layers() {
  const names = ['attention', 'router', 'experts'].filter((name) => data.layer_stages.some((s) => s.stage === name));
  const of = (name, layer) => data.layer_stages.find((s) => s.stage === name && s.layer === layer);
  legend(
    'layer-legend',
    names.map((name) => [name, colour(name)]),
  );
  const totals = [...Array(data.model.n_layers).keys()].map((layer) =>
    names.reduce((sum, name) => sum + (of(name, layer) ? of(name, layer).median_us : 0), 0),
  );
  const most = Math.max(...totals, 1),
    row = totals.length > 24 ? 14 : 24;
  draw('layer-chart', totals.length * row + 26, (root, width) => {
    const left = 58,
      right = width - 70,
      unit = unitOf(most);
    root.setAttribute('aria-label', 'Median time of attention, router and experts in each layer');
    totals.forEach((total, layer) => {
      let at = left;
      addText(root, 0, layer * row + row / 2 + 4, `layer ${layer}`);
      for (const name of names) {
        const found = of(name, layer);
        if (!found) continue;
        const wide = (found.median_us / most) * (right - left);
        root.append(
          svg('rect', {
            x: at,
            y: layer * row + 2,
            width: Math.max(0.5, wide - 1),
            height: row - 5,
            rx: 2,
            fill: colour(name),
            'data-tip': `layer ${layer} ${name}\nmedian ${duration(found.median_us)}, p99 ${duration(found.p99_us)}\n${whole(found.count)} times`,
          }),
        );
        at += wide;
      }
      addText(root, at + 6, layer * row + row / 2 + 4, `${digits(total / unit.us)} ${unit.name}`);
    });
  });
}
