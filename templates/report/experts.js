/* Heat map of the experts and their co-activation. */
const FEW = 16; // experts up to which the cells have room for numbers
const N = data.model.n_experts,
  IS_FEW = N <= FEW;
const LABEL_STEP = IS_FEW ? 1 : N <= 64 ? 8 : 16;
const label = (expert) => (expert % LABEL_STEP === 0 && (IS_FEW || expert + LABEL_STEP / 2 < N) ? String(expert) : '');

/* A table of cells; with many experts it fills the width, its cells as small as need be. */
function heatTable(name, head, rows, rowHeight) {
  const made = element(
    'table',
    { class: 'heat ' + (IS_FEW ? 'few' : 'many'), 'aria-label': name },
    element('thead', {}, head),
    element('tbody', {}, ...rows),
  );
  if (!IS_FEW) {
    made.style.minWidth = `${N * 3 + 60}px`;
    made.style.borderSpacing = N > 64 ? '0' : '1px';
    rows.forEach((row) => {
      row.style.height = `${rowHeight}px`;
    });
  }
  return made;
}

function cell(part, text, hint, attributes) {
  return element('td', Object.assign({ class: 'cell ' + heatClass(part), 'data-tip': hint }, attributes), text);
}

function scale(target, low, high, what) {
  byId(target).replaceChildren(
    element('span', {}, low),
    element('i', { role: 'img', 'aria-label': `from ${low} to ${high}` }),
    element('span', {}, high),
    element('span', {}, what),
  );
}

function expertMap() {
  if (!experts.length) {
    hide('experts');
    return;
  }
  const views = [];
  if (data.layers.length) views.push(['share', 'Share of tokens'], ['weight', 'Mean weight']);
  if (experts.some((use) => use.time !== null)) views.push(['time', 'FFN time']);
  tabs('heat-tabs', views, heatMap);
}

const HEAT = {
  share: {
    value: (use) => use.share,
    text: (v) => percent(v),
    what: 'of the layer’s tokens',
    note: 'How many of a layer’s tokens chose the expert. Effective: how many experts, all used alike, would be as varied (2 to the power of the entropy).',
  },
  weight: {
    value: (use) => use.weight,
    text: (v) => v.toFixed(2),
    what: 'router weight',
    note: 'The router’s weight of the expert, mean over the tokens that chose it.',
  },
  time: {
    value: (use) => use.time || 0,
    text: (v) => (v ? duration(v) : '–'),
    what: 'median',
    note: 'Median time of the expert’s FFN, its threads’ time added up.',
  },
};

function heatMap(view) {
  const kind = HEAT[view];
  const most = Math.max(...experts.map(kind.value), 1e-9);
  byId('experts-note').textContent = kind.note;
  scale('heat-scale', kind.text(0) === '–' ? '0' : kind.text(0), kind.text(most), kind.what);
  const head = element(
    'tr',
    {},
    element('th', { scope: 'col' }, 'expert'),
    ...[...Array(N).keys()].map((e) => element('th', { scope: 'col' }, label(e))),
    view === 'share' ? element('th', { scope: 'col', class: 'side' }, 'effective') : null,
  );
  const rows = [...Array(data.model.n_layers).keys()].map((layer) => {
    const used = data.layers[layer];
    return element(
      'tr',
      {},
      element('th', { scope: 'row' }, `layer ${layer}`),
      ...experts.slice(layer * N, (layer + 1) * N).map((use) => {
        const value = kind.value(use);
        return cell(
          value / most,
          kind.text(value),
          `layer ${layer}, expert ${use.expert}\n${whole(use.tokens)} tokens, ${percent(use.share)}\nmean weight ${use.weight.toFixed(3)}` +
            (use.time === null ? '' : `\nFFN median ${duration(use.time)}`),
          { 'data-layer': layer, 'data-expert': use.expert, 'data-tokens': use.tokens, 'data-value': value },
        );
      }),
      view === 'share' && used ? element('td', { class: 'side' }, used.effective_experts.toFixed(1)) : null,
    );
  });
  byId('heat').replaceChildren(heatTable('Experts by layer', head, rows, 14));
}

function pairs() {
  if (!data.pairs.length) {
    hide('pairs');
    return;
  }
  const select = byId('pairs-layer');
  select.append(
    ...[...new Set(data.pairs.map((pair) => pair[0]))].map((layer) =>
      element('option', { value: layer }, String(layer)),
    ),
  );
  select.addEventListener('change', () => pairMatrix(+select.value));
  byId('pairs-note').textContent =
    'How many tokens chose both experts of a pair. On the diagonal: the expert itself.' +
    (data.pairs.length < data.n_pairs
      ? ` The ${whole(data.pairs.length)} most frequent pairs of ${whole(data.n_pairs)} are shown.`
      : '');
  pairMatrix(+select.value);
}

const pairTip = (a, b, pair) =>
  `experts ${Math.min(a, b)} and ${Math.max(a, b)}\n${whole(pair ? pair[3] : 0)} tokens` +
  (pair ? `\n${pair[4].toFixed(2)} times chance` : '');
const useTip = (layer, expert) => `expert ${expert}: ${whole(experts[layer * N + expert].tokens)} tokens`;

function pairMatrix(layer) {
  const all = data.pairs.filter((pair) => pair[0] === layer),
    most = Math.max(...all.map((pair) => pair[3]));
  scale('pairs-scale', '0', whole(most), 'tokens');
  byId('pairs-matrix').replaceChildren((IS_FEW ? pairTable : pairDrawing)(layer, all, most));
  table(
    'pairs-table',
    ['experts', 'tokens', 'times chance'],
    all.slice(0, 8).map((pair) => [`${pair[1]} and ${pair[2]}`, whole(pair[3]), pair[4].toFixed(2)]),
    `Layer ${layer}: most frequent pairs`,
  );
}

function pairTable(layer, all, most) {
  const found = new Map();
  for (const pair of all) found.set(pair[1] * N + pair[2], pair).set(pair[2] * N + pair[1], pair);
  const head = element(
    'tr',
    {},
    element('th', { scope: 'col' }, ''),
    ...[...Array(N).keys()].map((e) => element('th', { scope: 'col' }, label(e))),
  );
  const rows = [...Array(N).keys()].map((a) =>
    element(
      'tr',
      {},
      element('th', { scope: 'row' }, label(a)),
      ...[...Array(N).keys()].map((b) => {
        if (a === b)
          return element('td', { class: 'self', 'data-tip': useTip(layer, a) }, whole(experts[layer * N + a].tokens));
        const pair = found.get(a * N + b),
          count = pair ? pair[3] : 0;
        return cell(count / most, whole(count), pairTip(a, b, pair), {
          'data-a': a,
          'data-b': b,
          'data-tokens': count,
        });
      }),
    ),
  );
  return heatTable(`Pairs of experts in layer ${layer}`, head, rows);
}

/* With many experts most pairs never occur: only those that do are drawn. */
function pairDrawing(layer, all, most) {
  const each = Math.max(3, Math.floor(460 / N)),
    left = 28,
    top = 20,
    size = N * each;
  const root = svg('svg', {
    width: left + size + 2,
    height: top + size + 2,
    role: 'img',
    'aria-label': `Pairs of experts in layer ${layer}; the table has the most frequent`,
  });
  const square = (a, b, name, hint) =>
    root.append(
      svg('rect', { class: name, x: left + b * each, y: top + a * each, width: each, height: each, 'data-tip': hint }),
    );
  root.append(svg('rect', { x: left, y: top, width: size, height: size, class: heatClass(0) }));
  for (let expert = 0; expert < N; expert++) {
    if (label(expert)) {
      addText(root, left + expert * each, top - 6, label(expert));
      addText(root, left - 6, top + expert * each + 9, label(expert), { 'text-anchor': 'end' });
    }
    square(expert, expert, 'self', useTip(layer, expert));
  }
  for (const pair of all) {
    square(pair[1], pair[2], heatClass(pair[3] / most), pairTip(pair[1], pair[2], pair));
    square(pair[2], pair[1], heatClass(pair[3] / most), pairTip(pair[1], pair[2], pair));
  }
  return root;
}
