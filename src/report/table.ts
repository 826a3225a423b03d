/** The matrix as a table for terminals and Markdown: rows are workloads, columns targets. */
import { formatCount, formatMicroseconds, formatRatio, formatBytes } from './format.ts';
import type { ComparedResults } from '../bench/compare-results.ts';
import type { Cell, MetricName, Results, TargetInfo } from '../results/document.ts';

export const METRIC_TITLES: Record<MetricName, string> = {
  opsPerSecond: 'operations per second',
  p50Us: 'median latency',
  p99Us: 'p99 latency',
  p999Us: 'p99.9 latency',
  opsPerCpuSecond: 'operations per CPU second of the server',
  rssAnonBytes: 'anonymous memory',
  diskBytesPerUserByte: 'bytes on disk per user byte after the load',
  writeAmplification: 'bytes written per user byte',
};

export function formatMetric(metric: MetricName, value: number): string {
  switch (metric) {
    case 'p50Us':
    case 'p99Us':
    case 'p999Us':
      return formatMicroseconds(value);
    case 'rssAnonBytes':
      return formatBytes(value);
    case 'diskBytesPerUserByte':
    case 'writeAmplification':
      return value.toFixed(2);
    default:
      return formatCount(value);
  }
}

/** One letter a badge, explained below the table. */
const BADGE_MARKS = {
  'CLIENT-BOUND': 'c',
  OVERLOADED: 'o',
  'MEMTABLE-ONLY': 't',
  MISS: 'm',
  'UNEQUAL-DURABILITY': 'd',
  NOISY: 'n',
  ERRORS: 'e',
} as const;

export interface TextTable {
  title: string;
  header: string[];
  rows: string[][];
  /** Explanations of the marks used. */
  legend: string[];
}

function cellText(cell: Cell | undefined, metric: MetricName, used: Set<keyof typeof BADGE_MARKS>): string {
  if (cell === undefined || cell.state === 'missing') return '–';
  if (cell.state !== 'ok') return cell.state;
  const estimate = cell.metrics[metric];
  if (estimate === undefined) return '–';
  // Unequal durability holds for a whole column and is told once, below the table.
  const badges = cell.badges.filter(({ name }) => name !== 'UNEQUAL-DURABILITY');
  for (const { name } of badges) used.add(name);
  const marks = badges.map(({ name }) => BADGE_MARKS[name]).join('');
  return `${formatMetric(metric, estimate.median)}${marks === '' ? '' : ` ${marks}`}`;
}

/** Medians of one metric, and for rates the ratio to the baseline beside each; engine-bound columns in a table of their own. */
export function matrixTables(results: Results, metric: MetricName): TextTable[] {
  const bound = results.targets.filter(({ mode }) => mode === 'engine-bound');
  const others = results.targets.filter(({ mode }) => mode !== 'engine-bound');
  if (bound.length === 0 || others.length === 0) return [matrixTable(results, metric, results.targets)];
  const base = others.filter(({ id }) => id === results.baseline);
  return [
    matrixTable(results, metric, others),
    {
      ...matrixTable(results, metric, [...bound, ...base]),
      title: `${METRIC_TITLES[metric]}, engine-bound: nothing stays in memory, every access goes to the engine`,
    },
  ];
}

function matrixTable(results: Results, metric: MetricName, targets: readonly TargetInfo[]): TextTable {
  const { workloads, baseline } = results;
  const used = new Set<keyof typeof BADGE_MARKS>();
  const ratios = metric === 'opsPerSecond' && baseline !== '';
  let voided = false;
  const header = [
    'workload',
    ...targets.flatMap(({ id, label }) => (ratios && id !== baseline ? [label, '×'] : [label])),
  ];
  const rows = workloads.map((workload) => [
    workload.label,
    ...targets.flatMap(({ id }) => {
      const cell = results.cells.find(
        (candidate) => candidate.workload === workload.id && candidate.target === id,
      );
      const text = cellText(cell, metric, used);
      if (!ratios || id === baseline) return [text];
      const versus = cell?.versus;
      const mark = versus?.verdict === 'higher' ? '▲' : versus?.verdict === 'lower' ? '▼' : ' ';
      if (versus?.verdict === 'void') voided = true;
      return [
        text,
        !versus
          ? ''
          : versus.verdict === 'void'
            ? `(${formatRatio(versus.ratio)})`
            : `${formatRatio(versus.ratio)}${mark}`,
      ];
    }),
  ]);
  const legend = [...used].map((name) => `${BADGE_MARKS[name]}  ${name}`);
  const base = targets.find(({ id }) => id === baseline);
  if (ratios && base !== undefined) {
    legend.push(`×  ratio to ${base.label}; ▲ ▼ proven higher or lower (at least 5 runs a side, p < 0.01)`);
    if (voided) legend.push('(×)  void: a mark of the cell, or of its base, says why it proves nothing');
    const unequal = targets.filter(({ durability }) => durability.class !== base.durability.class);
    for (const target of unequal) {
      legend.push(
        `${target.label}: durability ${target.durability.class}, not ${base.durability.class}; not to be ranked with the others`,
      );
    }
  }
  return { title: METRIC_TITLES[metric], header, rows, legend };
}

function width(text: string): number {
  return [...text].length;
}

/** One target: all metrics of a row in one line. */
export function targetTable(results: Results): TextTable {
  const [target] = results.targets;
  const used = new Set<keyof typeof BADGE_MARKS>();
  const cells = results.workloads.map((workload) =>
    results.cells.find((cell) => cell.workload === workload.id && cell.target === target.id),
  );
  const open = results.workloads.some(({ loop }) => loop === 'open');
  return {
    title: `${target.label}${target.version === '' ? '' : ` ${target.version}`}`,
    header: [
      'workload',
      'ops/s',
      'p50',
      'p99',
      'p99.9',
      'max',
      ...(open ? ['service p99'] : []),
      'ops/CPU s',
      'memory',
    ],
    rows: results.workloads.map(({ label }, index) => {
      const cell = cells[index];
      const latency = cell?.intendedLatency ?? cell?.latency ?? null;
      const time = (us: number | null | undefined): string => (us == null ? '–' : formatMicroseconds(us));
      const metric = (name: MetricName): string => {
        const estimate = cell?.metrics[name];
        return estimate === undefined ? '–' : formatMetric(name, estimate.median);
      };
      return [
        label,
        cellText(cell, 'opsPerSecond', used),
        time(latency?.p50Us),
        time(latency?.p99Us),
        time(latency?.p999Us),
        time(latency?.maxUs),
        ...(open ? [time(cell?.latency?.p99Us)] : []),
        metric('opsPerCpuSecond'),
        metric('rssAnonBytes'),
      ];
    }),
    legend: [...used].map((name) => `${BADGE_MARKS[name]}  ${name}`),
  };
}

/** Plain text with aligned columns. */
export function renderText(table: TextTable): string {
  const widths = table.header.map((_, column) =>
    Math.max(...[table.header, ...table.rows].map((row) => width(row[column] ?? ''))),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => {
        const space = ' '.repeat(widths[column] - width(cell));
        return column === 0 ? cell + space : space + cell;
      })
      .join('  ')
      .trimEnd();
  return [
    table.title,
    line(table.header),
    widths.map((columnWidth) => '─'.repeat(columnWidth)).join('  '),
    ...table.rows.map(line),
    ...table.legend,
  ].join('\n');
}

export function renderMarkdown(table: TextTable): string {
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    line(table.header),
    line(table.header.map((_, column) => (column === 0 ? '---' : '---:'))),
    ...table.rows.map(line),
    '',
    ...table.legend.map((text) => `- ${text}`),
  ].join('\n');
}

/** What `ardent compare` prints. */
export function comparisonTable(compared: ComparedResults): TextTable {
  return {
    title: 'operations per second, before and after',
    header: ['workload', 'target', 'before', 'after', 'ratio', '95% interval', 'p', ''],
    rows: compared.rows.map(({ label, target, before, after, difference, regression, voidedBy }) => [
      label,
      target,
      formatCount(before),
      formatCount(after),
      formatRatio(difference.ratio),
      `${difference.low.toFixed(2)}–${difference.high.toFixed(2)}`,
      difference.p === null ? '–' : difference.p.toFixed(3),
      voidedBy.length > 0 ? `void: ${voidedBy.join(', ')}` : regression ? 'REGRESSION' : difference.verdict,
    ]),
    legend: [],
  };
}
