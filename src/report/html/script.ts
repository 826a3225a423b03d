/** What the page does beyond being read: metric switch, filters, sorting, theme. Everything is shown without it. */
export const SCRIPT = String.raw`
(() => {
  'use strict';
  const root = document.documentElement;
  root.classList.add('js');
  const shown = JSON.parse(document.getElementById('shown').textContent);
  const table = document.getElementById('cells');
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const original = new Map(rows.map((row, index) => [row, index]));
  let metric = document.querySelector('[data-metric][aria-pressed=true]').dataset.metric;
  let sort = null;

  const of = (row, target) => shown[row.dataset.workload + '|' + target]?.[metric] ?? null;

  function show() {
    for (const button of document.querySelectorAll('[data-metric]')) {
      button.setAttribute('aria-pressed', String(button.dataset.metric === metric));
    }
    for (const row of rows) {
      for (const cell of row.cells) {
        const target = cell.dataset.target;
        if (target === undefined || cell.classList.contains('failed') || cell.classList.contains('unsupported')) continue;
        const value = of(row, target);
        cell.querySelector('.value').textContent = value === null ? '–' : value.text;
        cell.title = value === null ? 'not measured' : value.title;
        cell.classList.toggle('best', value !== null && value.share === 1);
        const ratio = cell.querySelector('.ratio');
        if (ratio === null) continue;
        ratio.textContent = value === null ? '' : value.ratio;
        ratio.className = 'ratio ' + (value === null ? '' : value.verdict);
        cell.querySelector('.bar i').style.width = (value === null ? 0 : value.share * 100) + '%';
      }
    }
    order();
  }

  function order() {
    const value = (row) => (sort.target === '' ? null : (of(row, sort.target)?.value ?? -Infinity));
    const sorted = [...rows].sort((a, b) => {
      if (sort === null) return original.get(a) - original.get(b);
      const difference =
        sort.target === '' ? b.cells[0].textContent.localeCompare(a.cells[0].textContent) : value(b) - value(a);
      return sort.ascending ? -difference : difference;
    });
    body.append(...sorted);
  }

  for (const button of document.querySelectorAll('[data-metric]')) {
    button.addEventListener('click', () => { metric = button.dataset.metric; show(); });
  }
  for (const head of table.tHead.rows[0].cells) {
    head.querySelector('button').addEventListener('click', () => {
      const target = head.dataset.target;
      if (sort === null || sort.target !== target) sort = { target, ascending: target === '' };
      else if (sort.ascending === (target === '')) sort.ascending = !sort.ascending;
      else sort = null;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
      if (sort !== null) head.setAttribute('aria-sort', sort.ascending ? 'ascending' : 'descending');
      order();
    });
  }

  const filters = [...document.querySelectorAll('select[data-filter]')];
  const search = document.getElementById('search');
  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of document.querySelectorAll('tr[data-search]')) {
      const wanted = filters.every(({ value, dataset }) => value === '' || row.dataset[dataset.filter] === value);
      row.hidden = !(wanted && words.every((word) => row.dataset.search.includes(word)));
    }
  }
  for (const select of filters) select.addEventListener('change', filter);
  search.addEventListener('input', filter);
  window.addEventListener('beforeprint', () => {
    for (const details of document.querySelectorAll('details')) details.open = true;
  });
})();
`;
