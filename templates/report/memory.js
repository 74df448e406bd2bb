/* Experts by address: a row a layer, all rows in the same scale. */
function memory() {
  const map = data.memory;
  if (!map) {
    hide('memory');
    return;
  }
  const placed = data.placed.map(([layer, expert, at, size]) => ({ layer, expert, address: at, bytes: size }));
  const holes = data.holes.map(([at, size]) => ({ address: at, bytes: size }));
  const address = (value) => '0x' + value.toString(16);
  const rows = [...new Set(placed.map((e) => e.layer))]
    .sort((a, b) => a - b)
    .map((layer) => {
      const all = placed.filter((e) => e.layer === layer);
      const last = all[all.length - 1];
      return { layer, all, start: all[0].address, span: last.address + last.bytes - all[0].address };
    });
  const widest = Math.max(...rows.map((r) => r.span));
  const sizes = [...new Set(placed.map((e) => e.bytes))];
  byId('memory-note').textContent =
    `${whole(placed.length)} experts of ${sizes.length === 1 ? bytes(sizes[0]) : 'several sizes'}: ${bytes(map.total)} in ${bytes(map.span)} from ${address(placed[0].address)} on. ` +
    (holes.length ? `${whole(holes.length)} gaps (other data, or alignment).` : 'No gap between them.') +
    (data.layers.length ? ' The stronger the colour, the more of the layer’s tokens chose the expert.' : '');
  const row = rows.length > 24 ? 16 : 28;
  draw('memory-chart', rows.length * row + 8, (root, width) => {
    const left = width < 520 ? 54 : 190,
      right = width - 4;
    root.setAttribute('aria-label', 'Experts by address, one row for each layer');
    rows.forEach((r, index) => {
      const y = index * row + 2,
        x = (at) => left + ((at - r.start) / widest) * (right - left);
      addText(root, 0, y + row / 2 + 2, `layer ${r.layer}` + (left > 60 ? ` from ${address(r.start)}` : ''));
      root.append(
        svg('rect', {
          x: left,
          y: y + 1,
          width: (r.span / widest) * (right - left),
          height: row - 7,
          fill: 'var(--p99)',
          'data-tip': 'between experts',
        }),
      );
      r.all.forEach((e) => {
        const wide = (e.bytes / widest) * (right - left),
          part = experts.length ? experts[e.layer * data.model.n_experts + e.expert].share : 0.4;
        root.append(
          svg('rect', {
            class: 'placed ' + heatClass(0.15 + 0.85 * part),
            x: x(e.address),
            y: y + 1,
            width: wide,
            height: row - 7,
            'data-tip': `layer ${e.layer}, expert ${e.expert}\n${address(e.address)}, ${whole(e.bytes)} bytes\nused by ${percent(part)} of the tokens`,
          }),
        );
        if (wide > 22 && row > 20)
          addText(root, x(e.address) + wide / 2, y + row / 2 + 2, String(e.expert), {
            'text-anchor': 'middle',
            class: heatClass(0.15 + 0.85 * part),
            'pointer-events': 'none',
          });
      });
    });
  });
  const behind = (hole) => {
    const before = placed.filter((e) => e.address < hole.address).pop();
    return `layer ${before.layer}, expert ${before.expert}`;
  };
  if (holes.length) {
    const largest = [...holes].sort((a, b) => b.bytes - a.bytes).slice(0, 8);
    table(
      'memory-table',
      ['gap at', 'behind', 'size'],
      largest.map((hole) => [
        element('code', {}, address(hole.address)),
        behind(hole),
        hole.bytes < 0 ? `overlap of ${bytes(-hole.bytes)}` : bytes(hole.bytes),
      ]),
      holes.length > 8 ? 'Largest gaps' : 'Gaps',
    );
  }
}
