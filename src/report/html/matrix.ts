/** The matrix: workloads by targets, one metric at a time. Every number is in the page before any script runs. */
import { formatRatio } from '../format.ts';
import { METRICS, type Badge, type Cell, type MetricName, type Results } from '../../results/document.ts';
import { formatMetric, METRIC_TITLES } from '../table.ts';
import { jsonScript, markup, type Markup } from './markup.ts';
import { colorsOf } from './svg.ts';

const SHORT_TITLES: Record<MetricName, string> = {
  opsPerSecond: 'ops/s',
  p50Us: 'p50',
  p99Us: 'p99',
  p999Us: 'p99.9',
  opsPerCpuSecond: 'ops/CPU s',
  rssAnonBytes: 'memory',
  diskBytesPerUserByte: 'disk/user byte',
  writeAmplification: 'written/user byte',
};

/** Of these, more is better. */
const HIGHER_IS_BETTER: ReadonlySet<MetricName> = new Set(['opsPerSecond', 'opsPerCpuSecond']);

/** What a cell shows of one metric. */
interface Shown {
  text: string;
  value: number;
  /** Interval and number of runs. */
  title: string;
  ratio: string;
  verdict: 'hi' | 'lo' | 'void' | '';
  /** 0 to 1 of the best in the row. */
  share: number;
}

function shownOf(results: Results, cell: Cell, metric: MetricName): Shown | null {
  const estimate = cell.metrics[metric];
  if (estimate === undefined) return null;
  const row = results.cells.filter(
    (other) => other.workload === cell.workload && other.metrics[metric] !== undefined,
  );
  const medians = row.map((other) => other.metrics[metric].median);
  const higher = HIGHER_IS_BETTER.has(metric);
  const best = higher ? Math.max(...medians) : Math.min(...medians);
  const base = row.find(({ target }) => target === results.baseline)?.metrics[metric].median;
  const rate = metric === 'opsPerSecond';
  const ratio =
    cell.target === results.baseline || !base
      ? null
      : rate && cell.versus
        ? cell.versus.ratio
        : estimate.median / base;
  const verdict =
    (rate && ({ higher: 'hi', lower: 'lo', void: 'void' } as const)[cell.versus?.verdict as 'void']) || '';
  return {
    text: formatMetric(metric, estimate.median),
    value: estimate.median,
    title: `${formatMetric(metric, estimate.low)} to ${formatMetric(metric, estimate.high)}, ${estimate.n} ${estimate.n === 1 ? 'run' : 'runs'}`,
    ratio: ratio === null ? '' : formatRatio(ratio),
    verdict,
    share: best === 0 && estimate.median === 0 ? 1 : higher ? estimate.median / best : best / estimate.median,
  };
}

function badgePill({ name, reason }: Badge): Markup {
  return markup`<span class="badge" title="${reason}">${name}</span>`;
}

export function matrix(results: Results): Markup {
  const colors = colorsOf(results);
  const { targets, workloads } = results;
  const shown: Record<string, Record<string, Shown | null>> = {};
  const metrics = METRICS.filter((metric) =>
    results.cells.some((cell) => cell.metrics[metric] !== undefined),
  );
  for (const cell of results.cells) {
    shown[`${cell.workload}|${cell.target}`] = Object.fromEntries(
      metrics.map((metric) => [metric, shownOf(results, cell, metric)]),
    );
  }
  // Unequal durability holds for the whole column: told once, in its head.
  const columnBadge = (target: string): Badge | undefined =>
    results.cells
      .find((cell) => cell.target === target)
      ?.badges.find(({ name }) => name === 'UNEQUAL-DURABILITY');
  const head = targets.map((target) => {
    const { color, dashed } = colors.get(target.id)!;
    const badge = columnBadge(target.id);
    return markup`<th scope="col" data-target="${target.id}"><button type="button"><i class="key ${dashed ? 'dashed' : ''}" style="--c:var(--s${color})"></i>${target.label}</button>${badge && markup`<br>${badgePill(badge)}`}</th>`;
  });
  const rows = workloads.map((workload) => {
    const cells = targets.map((target) => {
      const cell = results.cells.find(
        (other) => other.workload === workload.id && other.target === target.id,
      );
      const first = shown[`${workload.id}|${target.id}`]?.opsPerSecond ?? null;
      const state = cell?.state ?? 'missing';
      if (cell === undefined || first === null) {
        return markup`<td class="${state}" data-target="${target.id}" title="${cell?.reason ?? 'not measured'}"><div class="value">${state === 'failed' || state === 'unsupported' ? state : '–'}</div></td>`;
      }
      const badges = cell.badges.filter(({ name }) => name !== 'UNEQUAL-DURABILITY');
      return markup`<td class="${first.share === 1 ? 'best' : ''}" data-target="${target.id}" title="${first.title}" style="--c:var(--s${colors.get(target.id)!.color})"><div class="value">${first.text}</div><div class="under">${badges.map(badgePill)}<span class="ratio ${first.verdict}">${first.ratio}</span></div><div class="bar"><i style="width:${(first.share * 100).toFixed(1)}%"></i></div></td>`;
    });
    return markup`<tr data-workload="${workload.id}" data-family="${workload.family}" data-search="${`${workload.label} ${workload.description} ${workload.commands.join(' ')}`.toLowerCase()}"><th scope="row" title="${workload.commands.join('; ')}">${workload.label}<small>${workload.description}</small></th>${cells}</tr>`;
  });
  const families = [...new Set(workloads.map(({ family }) => family))];
  return markup`<section id="matrix"><h2>All rows</h2>
<p class="lede">Medians of the runs. The bar compares with the best of the row; the small figure is the ratio to the baseline, coloured where it is proven, struck out where a badge of the cell or of its baseline voids it.</p>
<div class="controls"><div class="segments" role="group" aria-label="metric">${metrics.map((metric) => markup`<button type="button" data-metric="${metric}" aria-pressed="${metric === 'opsPerSecond' ? 'true' : 'false'}" title="${METRIC_TITLES[metric]}">${SHORT_TITLES[metric]}</button>`)}</div>
<select id="family" data-filter="family" aria-label="family"><option value="">all types</option>${families.map((family) => markup`<option>${family}</option>`)}</select>
<input id="search" type="search" placeholder="filter rows" aria-label="filter rows"></div>
<div class="card scroll"><table id="cells" style="--columns:${targets.length}"><caption hidden>${METRIC_TITLES.opsPerSecond}</caption><thead><tr><th scope="col" data-target=""><button type="button">workload</button></th>${head}</tr></thead><tbody>${rows}</tbody></table></div>
${jsonScript('shown', shown)}</section>`;
}
