/* Heat map of the experts and their co-activation. */
const FEW = 16; // experts up to which the cells have room for numbers

function cell(part, text, hint, attributes) {
  return element('td', Object.assign({ style: `background:${heat(part)};color:${heatInk(part)}`, 'data-tip': hint }, attributes), text);
}

function scale(target, low, high, what) {
  byId(target).replaceChildren(element('span', {}, low), element('i', { role: 'img', 'aria-label': `from ${low} to ${high}` }), element('span', {}, high), element('span', {}, what));
}

function experts() {
  if (!data.experts.length) {
    hide('experts');
    return;
  }
  const views = [];
  if (data.layers.length) views.push(['share', 'Share of tokens'], ['weight', 'Mean weight']);
  if (data.experts.some((use) => use.median_us !== null)) views.push(['time', 'FFN time']);
  tabs('heat-tabs', views, heatMap);
}

const HEAT = {
  share: { value: (use) => use.share, text: (v) => percent(v), what: 'of the layer’s tokens',
    note: 'How many of a layer’s tokens chose the expert. Effective: how many experts, all used alike, would be as varied (2 to the power of the entropy).' },
  weight: { value: (use) => use.mean_weight, text: (v) => v.toFixed(2), what: 'router weight',
    note: 'The router’s weight of the expert, mean over the tokens that chose it.' },
  time: { value: (use) => use.median_us || 0, text: (v) => (v ? duration(v) : '–'), what: 'median',
    note: 'Median time of the expert’s FFN, its threads’ time added up.' },
};

function heatMap(view) {
  const kind = HEAT[view], n = data.model.n_experts, few = n <= FEW;
  const most = Math.max(...data.experts.map(kind.value), 1e-9);
  byId('experts-note').textContent = kind.note;
  scale('heat-scale', kind.text(0) === '–' ? '0' : kind.text(0), kind.text(most), kind.what);
  const head = element('tr', {}, element('th', { scope: 'col' }, 'expert'), ...[...Array(n).keys()].map((e) =>
    element('th', { scope: 'col' }, few || e % 8 === 0 ? String(e) : '')), view === 'share' ? element('th', { scope: 'col', class: 'side' }, 'effective') : null);
  const rows = [...Array(data.model.n_layers).keys()].map((layer) => {
    const used = data.layers[layer];
    return element('tr', {}, element('th', { scope: 'row' }, `layer ${layer}`),
      ...data.experts.slice(layer * n, (layer + 1) * n).map((use) => {
        const value = kind.value(use);
        return cell(value / most, kind.text(value), `layer ${layer}, expert ${use.expert}\n${whole(use.tokens)} tokens, ${percent(use.share)}\nmean weight ${use.mean_weight.toFixed(3)}` + (use.median_us === null ? '' : `\nFFN median ${duration(use.median_us)}`),
          { class: 'cell', 'data-layer': layer, 'data-expert': use.expert, 'data-tokens': use.tokens, 'data-value': value });
      }), view === 'share' && used ? element('td', { class: 'side' }, used.effective_experts.toFixed(1)) : null);
  });
  byId('heat').replaceChildren(element('table', { class: 'heat ' + (few ? 'few' : 'many'), 'aria-label': 'Experts by layer' }, element('thead', {}, head), element('tbody', {}, ...rows)));
}

function pairs() {
  if (!data.pairs.length) {
    hide('pairs');
    return;
  }
  const select = byId('pairs-layer');
  select.append(...[...new Set(data.pairs.map((pair) => pair[0]))].map((layer) => element('option', { value: layer }, String(layer))));
  select.addEventListener('change', () => pairMatrix(+select.value));
  byId('pairs-note').textContent = 'How many tokens chose both experts of a pair. On the diagonal: the expert itself.' +
    (data.pairs.length < data.n_pairs ? ` The ${whole(data.pairs.length)} most frequent pairs of ${whole(data.n_pairs)} are shown.` : '');
  pairMatrix(+select.value);
}

function pairMatrix(layer) {
  const n = data.model.n_experts, few = n <= FEW, all = data.pairs.filter((pair) => pair[0] === layer);
  const most = Math.max(...all.map((pair) => pair[3])), found = new Map();
  for (const pair of all) found.set(pair[1] * n + pair[2], pair).set(pair[2] * n + pair[1], pair);
  scale('pairs-scale', '0', whole(most), 'tokens');
  const head = element('tr', {}, element('th', { scope: 'col' }, ''), ...[...Array(n).keys()].map((e) => element('th', { scope: 'col' }, few || e % 8 === 0 ? String(e) : '')));
  const rows = [...Array(n).keys()].map((a) => element('tr', {}, element('th', { scope: 'row' }, few || a % 8 === 0 ? String(a) : ''), ...[...Array(n).keys()].map((b) => {
    const pair = found.get(a * n + b);
    if (a === b) {
      const use = data.experts[layer * n + a];
      return element('td', { class: 'self', 'data-tip': `expert ${a}: ${whole(use.tokens)} tokens` }, whole(use.tokens));
    }
    const count = pair ? pair[3] : 0;
    return cell(count / most, whole(count), `experts ${Math.min(a, b)} and ${Math.max(a, b)}\n${whole(count)} tokens` + (pair ? `\n${pair[4].toFixed(2)} times chance` : ''),
      { class: 'cell', 'data-a': a, 'data-b': b, 'data-tokens': count });
  })));
  byId('pairs-matrix').replaceChildren(element('table', { class: 'heat ' + (few ? '' : 'many'), 'aria-label': `Pairs of experts in layer ${layer}` }, element('thead', {}, head), element('tbody', {}, ...rows)));
  table('pairs-table', ['experts', 'tokens', 'times chance'], all.slice(0, 8).map((pair) => [`${pair[1]} and ${pair[2]}`, whole(pair[3]), pair[4].toFixed(2)]), `Layer ${layer}: most frequent pairs`);
}
