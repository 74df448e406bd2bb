/* This trace against another one. */
function comparison() {
  const other = data.comparison;
  if (!other) {
    hide('comparison');
    return;
  }
  byId('comparison-note').textContent =
    `Against ${other.sources.map((source) => source.name).join(', ')} (${whole(other.tokens)} tokens). Less is faster: a change is this trace’s median over the other’s.`;
  if (data.other_lost_text)
    byId('comparison-banner').replaceChildren(
      element(
        'p',
        { class: 'banner bad', id: 'other-losses', style: 'margin:0 0 14px' },
        element('strong', {}, 'The other trace is not whole: '),
        data.other_lost_text + '.',
      ),
    );
  byId('comparison-verdicts').replaceChildren(
    verdict('Token ids', other.compared_tokens, other.different_tokens, other.first_token),
    verdict('Routing decisions', other.compared_decisions, other.different_decisions, other.first_decision),
  );
  const most = Math.max(...other.changes.map((change) => Math.abs(change.change)), 0.01);
  table(
    'comparison-latency',
    ['median of', 'this', 'other', 'change', '', 'p99 this', 'p99 other'],
    other.changes.map((change) => [
      change.what,
      duration(change.this_us),
      duration(change.other_us),
      (change.change > 0 ? '+' : '') + (change.change * 100).toFixed(1) + '%',
      delta(change.change / most),
      duration(change.this_p99_us),
      duration(change.other_p99_us),
    ]),
  );
  table(
    'comparison-experts',
    ['layer', 'divergence', '', 'differs most', 'this', 'other'],
    other.divergences.map((d) => [
      String(d.layer),
      d.divergence_bits.toFixed(4) + ' bits',
      element(
        'span',
        { class: 'meter' },
        element('i', { style: `width:${d.divergence_bits * 100}%;background:var(--accent)` }),
      ),
      `expert ${d.expert}`,
      percent(d.this_share),
      percent(d.other_share),
    ]),
  );
}

function verdict(what, compared, different, first) {
  const where = first
    ? `First at run ${first.run}, position ${first.position}${first.layer === null ? '' : `, layer ${first.layer}`}: ${first.this.join(', ')} here, ${first.other.join(', ')} there.`
    : '';
  const text = !compared
    ? 'nothing to compare'
    : first
      ? `${whole(different)} of ${whole(compared)} differ`
      : `all ${whole(compared)} equal`;
  return element(
    'div',
    { class: 'verdict' + (first ? ' differs' : ''), 'data-verdict': what },
    element('b', {}, `${what}: ${text}`),
    where,
  );
}

function delta(part) {
  const wide = Math.abs(part) * 50;
  return element(
    'span',
    { class: 'delta', role: 'img', 'aria-label': part > 0 ? 'slower' : 'faster' },
    element('i', {
      style: `width:${wide}%;${part > 0 ? 'left:50%' : 'right:50%'};background:var(--${part > 0 ? 'p99' : 'experts'})`,
    }),
  );
}
