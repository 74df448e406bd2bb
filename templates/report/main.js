/* Sections in the order of the page; one without data takes itself away. */
for (const section of [cards, latency, stages, expertMap, pairs, timeline, memory, comparison]) section();

table(
  'records-table',
  ['record', 'count'],
  Object.entries(data.records).map(([kind, count]) => [kind, whole(count)]),
  'Records',
);
table(
  'runs-table',
  ['run', 'source', 'positions', 'prefill', 'decode'],
  data.runs
    .slice(0, 50)
    .map((run, index) => [
      String(index),
      data.sources[run.source].name,
      `${run.first_position}–${run.last_position}`,
      whole(run.prefill),
      whole(run.decode),
    ]),
  data.runs.length > 50 ? `The first 50 of ${whole(data.runs.length)} runs` : 'Runs',
);

byId('nav').replaceChildren(
  ...[...document.querySelectorAll('main > section.panel')].map((section) =>
    element('a', { href: '#' + section.id }, section.querySelector('h2').textContent),
  ),
);

byId('theme').addEventListener('click', () => {
  const root = document.documentElement,
    dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
});
document.documentElement.dataset.ready = 'yes';
