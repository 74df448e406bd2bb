/* Summary cards, latency per token, its distribution. */
function card(name, value, unit, more, warn) {
  return element(
    'div',
    { class: 'card' + (warn ? ' warn' : ''), 'data-card': name },
    element('div', { class: 'name' }, name),
    element('div', { class: 'value' }, value, unit ? element('small', {}, ' ' + unit) : ''),
    element('div', { class: 'more' }, more || ''),
  );
}
function timeCard(name, us, more) {
  const unit = unitOf(us);
  return card(name, digits(us / unit.us), unit.name, more);
}

function cards() {
  const all = data.latency.decode || data.latency.all,
    of = data.latency.decode ? 'decode' : 'all tokens';
  const prefill = data.runs.reduce((sum, run) => sum + run.prefill, 0);
  const made = [
    card('Tokens', whole(data.n_tokens), '', `${whole(prefill)} prefill, ${whole(data.n_tokens - prefill)} decode`),
  ];
  if (all) {
    made.push(
      timeCard('Median latency', all.median_us, of),
      timeCard('99th percentile', all.p99_us, of),
      timeCard('Maximum', all.max_us, of),
      timeCard('Standard deviation', all.std_us, of),
      card('Throughput', digits(1e6 / all.mean_us), 'tokens/s', of + ', mean'),
    );
  }
  made.push(
    card(
      'Trace',
      data.is_whole ? 'whole' : 'not whole',
      '',
      data.is_whole ? 'no drop, no CRC error' : data.lost_text,
      !data.is_whole,
    ),
  );
  byId('cards').replaceChildren(...made);
}

function latency() {
  const series = data.series,
    points = series.points,
    of = data.latency.decode ? 'decode' : 'all',
    figures = data.latency[of];
  if (!figures) {
    byId('latency').replaceChildren(
      element('h2', {}, 'Latency per token'),
      element('p', { class: 'empty' }, 'Timing was not recorded (--debug timing).'),
    );
    return;
  }
  byId('latency-note').textContent =
    series.step === 1
      ? 'Whole time of each token, in the order of the trace.'
      : `Each point stands for ${series.step} tokens: their median as a line, from their least to their most as a band.`;
  legend('latency-legend', [
    ['prefill', colour('prefill')],
    ['decode', colour('decode')],
    [`median of ${of} ${duration(figures.median_us)}`, colour('median'), 'line'],
    [`p99 of ${of} ${duration(figures.p99_us)}`, colour('p99'), 'line dashed'],
  ]);
  draw('latency-chart', 250, (root, width, height) => paintLatency(root, width, height, points, series.step, figures));
  const shown = ['decode', 'prefill', 'all'].filter((phase) => data.latency[phase]);
  let drawn = shown[0];
  draw('histogram', 190, (root, width, height) =>
    paintHistogram(root, width, height, data.latency[drawn].histogram, drawn),
  );
  tabs(
    'histogram-tabs',
    shown.map((phase) => [phase, phase]),
    (phase) => {
      drawn = phase;
      byId('histogram').redraw();
    },
  );
  const unit = unitOf(data.latency.all.max_us),
    cell = (us) => digits(us / unit.us);
  table(
    'latency-table',
    ['tokens', 'count', 'median', 'p99', 'max', 'std dev'],
    shown.map((phase) => {
      const f = data.latency[phase];
      return [phase, whole(f.count), cell(f.median_us), cell(f.p99_us), cell(f.max_us), cell(f.std_us)];
    }),
    `Latency in ${unit.name}`,
  );
}

function paintLatency(root, width, height, points, step, figures) {
  const box = { left: 52, right: width - 4, top: 24, bottom: height - 30 },
    largest = data.latency.all.max_us;
  root.setAttribute(
    'aria-label',
    `Latency of ${data.n_tokens} tokens: median ${duration(figures.median_us)}, largest ${duration(largest)}`,
  );
  const y = valueAxis(root, box, largest * 1.04, unitOf(largest));
  const each = (box.right - box.left) / data.n_tokens,
    x = (index) => box.left + index * each;
  const gap = each * step > 4 ? 1 : 0;
  for (const [index, n, least, median, most, run, position, id, phase] of points) {
    const wide = Math.max(0.6, Math.min(n, data.n_tokens - index) * each - gap),
      fill = colour(phase ? 'decode' : 'prefill');
    const text =
      n === 1
        ? `${phase ? 'decode' : 'prefill'}, run ${run}, position ${position}\ntoken ${id}${tokenText(id)}\n${duration(median)}`
        : `from run ${run}, position ${position}: ${n} tokens\nmedian ${duration(median)}, ${duration(least)} to ${duration(most)}`;
    const bar = svg('rect', {
      x: x(index),
      width: wide,
      y: y(most),
      height: Math.max(1, (n === 1 ? box.bottom : y(least)) - y(most)),
      fill,
      'fill-opacity': n === 1 ? 0.85 : 0.3,
      'data-tip': text,
      class: 'latency',
    });
    root.append(bar);
    if (n > 1) root.append(svg('rect', { x: x(index), width: wide, y: y(median) - 1, height: 2, fill }));
  }
  for (const [name, value] of [
    ['median', figures.median_us],
    ['p99', figures.p99_us],
  ]) {
    root.append(
      svg('line', { class: name, x1: box.left, x2: box.right, y1: y(value), y2: y(value), 'pointer-events': 'none' }),
    );
  }
  paintRuns(root, box, x);
  const wanted = Math.max(2, Math.floor(width / 120));
  for (const tick of ticks(data.n_tokens, wanted).filter((at) => Number.isInteger(at) && x(at) < box.right - 56))
    addText(root, x(tick), box.bottom + 17, whole(tick), { 'text-anchor': tick ? 'middle' : 'start' });
  addText(root, box.right, box.bottom + 17, 'token', { 'text-anchor': 'end', class: 'strong' });
}

function paintRuns(root, box, x) {
  let start = 0;
  data.runs.forEach((run, index) => {
    if (index) root.append(svg('line', { class: 'run', x1: x(start), x2: x(start), y1: box.top - 8, y2: box.bottom }));
    if (data.runs.length > 1 && data.runs.length <= 24 && x(start + run.tokens) - x(start) > 40)
      addText(root, x(start) + 3, box.top - 10, `run ${index}`);
    start += run.tokens;
  });
}

function paintHistogram(root, width, height, histogram, phase) {
  const box = { left: 44, right: width - 10, top: 26, bottom: height - 34 },
    edges = histogram.edges_us;
  const scale = histogram.scale === 'log' ? Math.log : (value) => value;
  const low = scale(edges[0]),
    span = scale(edges[edges.length - 1]) - low || 1;
  const x = (value) => box.left + ((scale(value) - low) / span) * (box.right - box.left);
  const most = Math.max(...histogram.counts),
    unit = unitOf(edges[edges.length - 1]);
  root.setAttribute('aria-label', `Histogram of the latency of ${phase} tokens`);
  const y = valueAxis(root, box, most * 1.08, { name: 'tokens', us: 1 });
  histogram.counts.forEach((count, index) => {
    const left = edges[0] === edges[edges.length - 1] ? box.left : x(edges[index]);
    const right = edges[0] === edges[edges.length - 1] ? box.right : x(edges[index + 1]);
    root.append(
      svg('rect', {
        x: left,
        width: Math.max(1, right - left - 1),
        y: y(count),
        height: box.bottom - y(count),
        rx: 1.5,
        fill: colour(phase === 'prefill' ? 'prefill' : 'decode'),
      }),
    );
    root.append(
      svg('rect', {
        class: 'hit',
        x: left,
        width: right - left,
        y: box.top,
        height: box.bottom - box.top,
        'data-tip': `${duration(edges[index])} to ${duration(edges[index + 1])}\n${whole(count)} tokens`,
      }),
    );
  });
  const shown = [edges[0], edges[Math.floor(edges.length / 2)], edges[edges.length - 1]];
  shown.forEach((value, index) =>
    addText(root, x(value), box.bottom + 16, digits(value / unit.us), {
      'text-anchor': ['start', 'middle', 'end'][index],
    }),
  );
  addText(root, box.right, box.bottom + 31, unit.name + (histogram.scale === 'log' ? ', logarithmic' : ''), {
    'text-anchor': 'end',
    class: 'strong',
  });
}
