/* Everything that the sections share: data, elements, SVG, units, tooltip. */
const data = JSON.parse(document.getElementById('data').textContent);
/* Every expert of the model, by layer, then expert; none without routing and timing. */
const experts = data.experts.map(([tokens, share, weight, time], index) => ({
  layer: Math.floor(index / data.model.n_experts),
  expert: index % data.model.n_experts,
  tokens,
  share,
  weight,
  time,
}));
const STAGES = ['', 'attention', 'router', 'expert', 'head', 'embedding', 'experts']; // by the record's byte
const byId = (id) => document.getElementById(id);
const colour = (name) => `var(--${name})`;
const NS = 'http://www.w3.org/2000/svg';

/* An element with attributes and children; a child may be text. */
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function svg(name, attributes, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const whole = (number) => number.toLocaleString('en-US');
const percent = (share) => (share * 100).toFixed(share < 0.0995 && share > 0 ? 1 : 0) + '%';
const digits = (value) => value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);

/* Durations of one chart share a unit, which its largest value chooses. */
function unitOf(largestUs) {
  return largestUs >= 1e6 ? { name: 's', us: 1e6 } : largestUs >= 1e3 ? { name: 'ms', us: 1e3 } : { name: 'µs', us: 1 };
}
function duration(us) {
  const unit = unitOf(us);
  return digits(us / unit.us) + ' ' + unit.name;
}
function bytes(count) {
  const units = [
    ['GiB', 2 ** 30],
    ['MiB', 2 ** 20],
    ['KiB', 2 ** 10],
  ];
  const unit = units.find(([, size]) => Math.abs(count) >= size);
  return unit ? digits(count / unit[1]) + ' ' + unit[0] : whole(count) + ' bytes';
}

/* Round steps of an axis from 0 to `most`: about `wanted` of them. */
function ticks(most, wanted) {
  const rough = most / wanted,
    power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const found = [];
  for (let i = 0; i * step <= most * 1.0001; i++) found.push(i * step);
  return found;
}
const short = (value) => String(+value.toPrecision(6));

/* The sequential scale as classes q0 .. q50, for cells (background, text on it) and shapes (fill). */
const LEVELS = 50;
const heatClass = (part) => 'q' + Math.round(Math.max(0, Math.min(1, part)) * LEVELS);
document.head.append(
  element(
    'style',
    {},
    [...Array(LEVELS + 1).keys()]
      .map((level) => {
        const at = (level / LEVELS) * 2,
          upper = at > 1,
          weight = Math.round((upper ? at - 1 : at) * 100);
        const css = `color-mix(in oklab, var(--heat-${upper ? 2 : 1}) ${weight}%, var(--heat-${upper ? 1 : 0}))`;
        return `.q${level}{background:${css};color:var(${at > 1.04 ? '--heat-0' : '--ink'})}rect.q${level}{fill:${css}}text.q${level}{fill:var(${at > 1.04 ? '--heat-0' : '--ink'})}`;
      })
      .join('\n'),
  ),
);

function legend(target, entries) {
  byId(target).replaceChildren(
    ...entries.map(([name, css, kind]) =>
      element(
        'span',
        {},
        element('i', { class: 'swatch ' + (kind || ''), style: kind ? `border-color:${css}` : `background:${css}` }),
        name,
      ),
    ),
  );
}

function tabs(target, entries, choose) {
  const buttons = entries.map(([key, name]) => {
    const button = element('button', { type: 'button', 'data-key': key }, name);
    button.addEventListener('click', () => pick(key));
    return button;
  });
  function pick(key) {
    buttons.forEach((button) => button.setAttribute('aria-pressed', button.dataset.key === key));
    choose(key);
  }
  byId(target).replaceChildren(...buttons);
  pick(entries[0][0]);
}

/* A table: columns are names, rows arrays of texts or elements; the first cell of a row is its heading. */
function table(target, columns, rows, caption) {
  byId(target).replaceChildren(
    element(
      'table',
      { class: 'plain' },
      caption ? element('caption', {}, caption) : null,
      element('thead', {}, element('tr', {}, ...columns.map((name) => element('th', { scope: 'col' }, name)))),
      element(
        'tbody',
        {},
        ...rows.map((row) =>
          element(
            'tr',
            {},
            ...row.map((cell, index) => element(index ? 'td' : 'th', index ? {} : { scope: 'row' }, cell)),
          ),
        ),
      ),
    ),
  );
}

/* Draw now and whenever the width changes: text in a chart keeps its size. */
function draw(target, height, paint) {
  const box = byId(target);
  let last = 0;
  function again() {
    const width = Math.floor(box.clientWidth);
    if (!width || width === last) return;
    last = width;
    const root = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img' });
    paint(root, width, height);
    box.replaceChildren(root);
  }
  box.redraw = () => {
    last = 0;
    again();
  };
  new ResizeObserver(again).observe(box);
  again();
}

function addText(root, x, y, text, attributes) {
  root.append(svg('text', Object.assign({ x, y }, attributes), text));
}

/* The left axis from 0 to `most` with grid lines; returns value -> y. */
function valueAxis(root, box, most, unit) {
  const y = (value) => box.bottom - (value / most) * (box.bottom - box.top);
  for (const tick of ticks(most / unit.us, 4)) {
    root.append(
      svg('line', {
        class: tick ? 'grid' : 'axis',
        x1: box.left,
        x2: box.right,
        y1: y(tick * unit.us),
        y2: y(tick * unit.us),
      }),
    );
    addText(root, box.left - 8, y(tick * unit.us) + 4, short(tick), { 'text-anchor': 'end' });
  }
  addText(root, box.left - 8, box.top - 10, unit.name, { 'text-anchor': 'end' });
  return y;
}

const tokenText = (id) => (data.texts && data.texts[id] !== undefined ? ` “${data.texts[id]}”` : '');

/* One tooltip for everything that has data-tip. */
const tip = byId('tip');
document.addEventListener('pointermove', (event) => {
  const target = event.target.closest && event.target.closest('[data-tip]');
  tip.hidden = !target;
  if (!target) return;
  tip.textContent = target.dataset.tip;
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  const above = event.clientY + 18 + tip.offsetHeight > innerHeight;
  tip.style.left = Math.max(8, left) + 'px';
  tip.style.top = (above ? event.clientY - tip.offsetHeight - 12 : event.clientY + 18) + 'px';
});
document.addEventListener('pointerleave', () => {
  tip.hidden = true;
});

function hide(section) {
  byId(section).remove();
}
