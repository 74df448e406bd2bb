/* Tokens by stage, and the lanes of the one that is picked. */
const SPAN = 6; // numbers a span: stage, layer, expert, start, length, ticks
const LANES = ['embedding', 'attention', 'router', 'experts', 'head'];

function spansOf(token) {
  const found = [];
  for (let at = 0; at < token.spans.length; at += SPAN) {
    const [stage, layer, expert, start, length, ticksSpent] = token.spans.slice(at, at + SPAN);
    found.push({ stage: STAGES[stage], layer, expert, start, length, ticks: ticksSpent });
  }
  return found;
}

/* Ticks of a token by stage; what no stage measured is `other`. */
function sumsOf(token) {
  const sums = {},
    spans = spansOf(token),
    block = spans.some((span) => span.stage === 'experts') ? 'experts' : 'expert';
  for (const span of spans) {
    if (span.stage === 'expert' && block === 'experts') continue;
    sums[span.stage] = (sums[span.stage] || 0) + span.ticks;
  }
  sums.other = Math.max(0, token.ticks - Object.values(sums).reduce((a, b) => a + b, 0));
  return sums;
}

function timeline() {
  const line = data.timeline,
    tokens = line.tokens.filter((token) => token.spans.length);
  if (!tokens.length) {
    hide('timeline');
    return;
  }
  const all = tokens.length === data.n_tokens;
  byId('timeline-note').textContent =
    (all
      ? `All ${whole(tokens.length)} tokens.`
      : `Tokens ${whole(tokens[0].index)} to ${whole(tokens[tokens.length - 1].index)} of ${whole(data.n_tokens)} (--first-token shows others).`) +
    ' Pick one to see its stages and experts.' +
    (data.has_starts ? '' : ' A text trace does not say when a stage began: stages are drawn one behind the other.');
  legend(
    'timeline-legend',
    ['embedding', 'attention', 'router', 'experts', 'head', 'other'].map((name) => [name, colour(name)]),
  );
  const slider = byId('timeline-token'),
    zoom = byId('timeline-zoom');
  slider.max = tokens.length - 1;
  slider.value = tokens.length - 1;
  const most = Math.max(...tokens.map((token) => token.ticks));
  const show = () => {
    byId('timeline-chart').redraw();
    lanes(tokens[+slider.value], line.tick_us, +zoom.value);
  };
  draw('timeline-chart', 190, (root, width, height) =>
    paintTimeline(root, width, height, tokens, most, +slider.value, (index) => {
      slider.value = index;
      show();
    }),
  );
  slider.addEventListener('input', show);
  zoom.addEventListener('change', show);
  addEventListener('resize', show);
  show();
}

function paintTimeline(root, width, height, tokens, most, picked, pick) {
  const box = { left: 52, right: width - 4, top: 22, bottom: height - 26 },
    factor = data.timeline.tick_us;
  const each = (box.right - box.left) / tokens.length,
    unit = unitOf(most * factor);
  const y = valueAxis(root, box, most * factor * 1.04, unit);
  root.setAttribute('aria-label', 'Time of each token by stage; the slider below picks a token');
  tokens.forEach((token, index) => {
    const sums = sumsOf(token),
      x = box.left + index * each,
      wide = Math.max(0.8, each - (each > 4 ? 1.5 : 0));
    let total = 0;
    const text = [];
    for (const name of ['embedding', 'attention', 'router', 'experts', 'expert', 'head', 'other']) {
      if (!sums[name]) continue;
      const from = y(total * factor),
        to = y((total + sums[name]) * factor);
      root.append(svg('rect', { x, width: wide, y: to, height: Math.max(0.2, from - to), fill: colour(name) }));
      total += sums[name];
      text.push(`${name} ${duration(sums[name] * factor)}`);
    }
    if (index === picked)
      root.append(
        svg('rect', {
          class: 'picked',
          x: x - 1.5,
          y: y(total * factor) - 2,
          width: wide + 3,
          height: box.bottom - y(total * factor) + 2,
        }),
      );
    const hit = svg('rect', {
      class: 'hit',
      x,
      width: each,
      y: box.top,
      height: box.bottom - box.top,
      'data-tip': `${token.phase} ${token.position}${token.whole ? '' : ' (records missing)'}: ${duration(token.ticks * factor)}\n${text.join('\n')}`,
    });
    hit.addEventListener('click', () => pick(index));
    root.append(hit);
  });
  const wanted = Math.max(2, Math.floor(width / 120));
  for (const tick of ticks(tokens.length - 1 || 1, wanted).filter(Number.isInteger)) {
    addText(root, box.left + (tick + 0.5) * each, box.bottom + 17, tokens[tick] ? whole(tokens[tick].index) : '', {
      'text-anchor': 'middle',
    });
  }
}

function lanes(token, factor, zoom) {
  const spans = spansOf(token),
    box = byId('lanes'),
    row = 20,
    left = 84;
  const used = [...new Set(spans.filter((span) => span.stage === 'expert').map((span) => span.expert))].sort(
    (a, b) => a - b,
  );
  const names = [
    ...LANES.slice(0, 4).filter((name) => spans.some((span) => span.stage === name)),
    ...used.map((e) => `expert ${e}`),
    ...LANES.slice(4).filter((name) => spans.some((span) => span.stage === name)),
  ];
  byId('timeline-picked').replaceChildren(
    element('strong', {}, `${token.phase} at position ${token.position}`),
    `, token ${token.id}${tokenText(token.id)}, run ${token.run}: ${duration(token.ticks * factor)}` +
      (token.whole ? '' : ' — records of it are missing'),
  );
  const plot = Math.max(120, (box.clientWidth - left - 6) * zoom),
    height = names.length * row + 28;
  const root = svg('svg', {
    width: left + plot + 4,
    height,
    viewBox: `0 0 ${left + plot + 4} ${height}`,
    role: 'img',
    'aria-label': `Stages and experts of the token at position ${token.position}`,
  });
  const end = Math.max(token.ticks, ...spans.map((span) => span.start + span.length), 1),
    x = (at) => left + (at / end) * plot;
  const unit = unitOf(end * factor);
  names.forEach((name, index) => {
    if (index % 2 === 0)
      root.append(svg('rect', { x: 0, y: index * row, width: left + plot, height: row, fill: 'var(--hover)', rx: 3 }));
    addText(root, 6, index * row + 14, name);
  });
  for (const tick of ticks((end * factor) / unit.us, Math.max(2, Math.floor(plot / 110)))) {
    const at = x((tick * unit.us) / factor);
    root.append(svg('line', { class: 'grid', x1: at, x2: at, y1: 0, y2: names.length * row }));
    addText(root, at, names.length * row + 17, short(tick) + (tick ? '' : ' ' + unit.name), {
      'text-anchor': !tick ? 'start' : at > left + plot - 16 ? 'end' : 'middle',
    });
  }
  for (const span of spans) {
    const lane = names.indexOf(span.stage === 'expert' ? `expert ${span.expert}` : span.stage),
      where =
        span.stage === 'head' || span.stage === 'embedding'
          ? span.stage
          : `layer ${span.layer} ${span.stage === 'expert' ? 'expert ' + span.expert : span.stage}`;
    root.append(
      svg('rect', {
        class: 'span',
        x: x(span.start),
        y: lane * row + 3,
        width: Math.max(1, (span.length / end) * plot - 0.5),
        height: row - 6,
        rx: 2,
        fill: colour(span.stage),
        'data-tip':
          `${where}\n${duration(span.ticks * factor)} (${whole(span.ticks)} ticks)` +
          (data.has_starts ? `\nfrom ${duration(span.start * factor)} on` : '') +
          (span.ticks > span.length + 1 ? '\nall threads added up; drawn as its part of the block' : ''),
      }),
    );
  }
  box.replaceChildren(root);
}
