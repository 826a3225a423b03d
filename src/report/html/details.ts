/** Each workload on its own: percentiles, course over time with the target's use of the machine, every run. */
import { latencyBelowKnee } from '../../bench/capacity.ts';
import { formatBytes, formatCount, formatMicroseconds } from '../format.ts';
import type {
  Capacity,
  Cell,
  Results,
  Run,
  Series,
  TargetInfo,
  WorkloadInfo,
} from '../../results/document.ts';
import { markup, type Markup } from './markup.ts';
import {
  colorsOf,
  laneChart,
  linearAxis,
  lineChart,
  logAxis,
  repeatsChart,
  type Axis,
  type Lane,
  type Line,
} from './svg.ts';

const short = (value: number): string =>
  value >= 1e6
    ? `${value / 1e6}M`
    : value >= 1000
      ? `${Number((value / 1000).toPrecision(4))}k`
      : String(Number(value.toPrecision(3)));

/** An axis on which 99%, 99.9%, 99.99% … are equally far apart. */
function ninesAxis(most: number): Axis {
  const nines = (fraction: number): number => -Math.log10(Math.max(1 - fraction, 10 ** -most));
  const labels = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999].filter(
    (fraction) => -Math.log10(1 - fraction) <= most,
  );
  return {
    ticks: labels.map((at) => ({ at, label: at === 0 ? 'min' : `${Number((at * 100).toFixed(5))}%` })),
    scale: (fraction) => nines(fraction) / most,
  };
}

function percentileChart(
  cells: readonly Cell[],
  targets: readonly TargetInfo[],
  colors: ReturnType<typeof colorsOf>,
): Markup | '' {
  const lines: Line[] = [];
  let most = 1;
  for (const target of targets) {
    const cell = cells.find((candidate) => candidate.target === target.id);
    const look = colors.get(target.id)!;
    for (const [latency, thin] of [
      [cell?.latency, cell?.intendedLatency != null],
      [cell?.intendedLatency, false],
    ] as const) {
      if (!latency) continue;
      const points = latency.curve.filter(([, us]) => us > 0);
      const last = points.findLast(([fraction]) => fraction < 1);
      if (last !== undefined) most = Math.max(most, -Math.log10(1 - last[0]) + 0.3);
      lines.push({ ...look, thin, points, name: `${target.label}${thin ? ' (uncorrected)' : ''}` });
    }
  }
  if (lines.length === 0) return '';
  const all = lines.flatMap(({ points }) => points.map(([, us]) => us));
  const y = logAxis(Math.min(...all), Math.max(...all), (us) =>
    formatMicroseconds(us).replace(/\.0+(?= )/, ''),
  );
  return markup`<figure><figcaption>Latency by percentile</figcaption>${lineChart('Latency by percentile', lines, ninesAxis(Math.min(most, 6)), y)}</figure>`;
}

/** The run whose rate is the median of a cell's runs, as the one whose course is shown. */
function typicalRun(runs: readonly Run[]): Run | undefined {
  return [...runs].sort((a, b) => a.opsPerSecond - b.opsPerSecond)[runs.length >> 1];
}

const LANES: { name: string; of: keyof Series; label: (value: number) => string }[] = [
  { name: 'ops/s', of: 'opsPerSecond', label: short },
  { name: 'p99', of: 'p99Us', label: (us) => (us === 0 ? '0' : formatMicroseconds(us)) },
  { name: 'server CPU (processors)', of: 'cpuCores', label: short },
  { name: 'anonymous memory', of: 'rssAnonBytes', label: formatBytes },
  { name: 'written per second', of: 'writeBytesPerSecond', label: formatBytes },
  { name: 'disk', of: 'diskBytes', label: formatBytes },
];

function courseChart(
  results: Results,
  workload: WorkloadInfo,
  colors: ReturnType<typeof colorsOf>,
): Markup | '' {
  const typical = results.targets.flatMap((target) => {
    const run = typicalRun(
      results.runs.filter(
        (other) => other.workload === workload.id && other.target === target.id && other.state === 'ok',
      ),
    );
    return run === undefined || run.series.at.length < 2 ? [] : [{ target, series: run.series }];
  });
  if (typical.length === 0) return '';
  const end = Math.max(...typical.flatMap(({ series }) => series.at));
  const lanes: Lane[] = LANES.flatMap(({ name, of, label }) => {
    const lines = typical.map(({ target, series }) => ({
      ...colors.get(target.id)!,
      name: target.label,
      points: series.at.flatMap((at, index) => {
        const value = series[of][index];
        return value === null ? [] : [[at, value]];
      }),
    }));
    const values = lines.flatMap(({ points }) => points.map(([, value]) => value));
    const most = Math.max(0, ...values);
    return most === 0 ? [] : [{ name, y: linearAxis(most, label, 2), lines }];
  });
  const x = linearAxis(end, (seconds) => `${Number(seconds.toFixed(2))} s`, 5);
  x.scale = (value) => value / end;
  x.ticks = x.ticks.filter(({ at }) => at <= end);
  return markup`<figure class="course"><figcaption>Course of the median run</figcaption>${laneChart('Course over time', lanes, x)}</figure>`;
}

function repeats(
  results: Results,
  workload: WorkloadInfo,
  cells: readonly Cell[],
  colors: ReturnType<typeof colorsOf>,
): Markup | '' {
  const columns = results.targets.flatMap((target) => {
    const estimate = cells.find((cell) => cell.target === target.id)?.metrics.opsPerSecond;
    const runs = results.runs.filter(
      (run) => run.workload === workload.id && run.target === target.id && run.state === 'ok',
    );
    return estimate === undefined
      ? []
      : [
          {
            name: target.id,
            color: colors.get(target.id)!.color,
            median: estimate.median,
            values: runs.map((run) => ({
              value: run.opsPerSecond,
              title: `${target.label}, run ${run.repeat}: ${formatCount(run.opsPerSecond)} ops/s`,
            })),
          },
        ];
  });
  if (columns.length === 0) return '';
  const most = Math.max(...columns.flatMap(({ values }) => values.map(({ value }) => value)));
  return markup`<figure><figcaption>Every run, in the order made (ops/s)</figcaption>${repeatsChart('Every run', columns, linearAxis(most, short))}</figure>`;
}

function commands(results: Results, workload: WorkloadInfo): Markup | '' {
  const rows = results.targets.flatMap((target) => {
    const run = typicalRun(
      results.runs.filter(
        (other) => other.workload === workload.id && other.target === target.id && other.state === 'ok',
      ),
    );
    return (run?.commands ?? []).map(
      ({ command, requests, errors, misses, latency }) =>
        markup`<tr><td>${target.label}</td><td>${command}</td><td>${formatCount(requests)}</td><td>${misses}</td><td>${errors}</td><td>${formatMicroseconds(latency.p50Us)}</td><td>${formatMicroseconds(latency.p99Us)}</td></tr>`,
    );
  });
  if (rows.length === 0) return '';
  return markup`<div class="scroll" style="padding:0 18px 16px"><table><thead><tr><th>target</th><th>command</th><th>requests</th><th>misses</th><th>errors</th><th>p50</th><th>p99</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

export function details(results: Results): Markup {
  const colors = colorsOf(results);
  return markup`<section id="rows"><h2>Row by row</h2><p class="lede">Percentiles are taken from the merged histograms of all runs of a row.</p>
<p class="legend">${results.targets.map((target) => {
    const { color, dashed } = colors.get(target.id)!;
    return markup`<span><i class="key ${dashed ? 'dashed' : ''}" style="--c:var(--s${color})"></i>${target.label}</span>`;
  })}</p>
${results.workloads.map((workload, index) => {
  const cells = results.cells.filter((cell) => cell.workload === workload.id);
  const loop =
    workload.loop === 'open'
      ? `open loop, ${formatCount(workload.rate ?? 0)}/s`
      : `${workload.connections} connections, ${workload.pipeline === 1 ? 'no pipelining' : `pipeline ${workload.pipeline}`}`;
  return markup`<details class="card workload"${index === 0 ? markup` open` : ''}><summary>${workload.label}<span>${workload.commands.join(' ; ').slice(0, 120)} · ${loop}</span></summary>
<div class="charts">${percentileChart(cells, results.targets, colors)}${courseChart(results, workload, colors)}${repeats(results, workload, cells, colors)}</div>${commands(results, workload)}</details>`;
})}</section>`;
}

/** Latency against rate, up to and beyond the knee. */
export function capacity(results: Results): Markup | '' {
  const curves: Capacity[] = results.capacity ?? [];
  if (curves.length === 0) return '';
  const colors = colorsOf(results);
  const groups = [...new Set(curves.map(({ workload }) => workload))];
  return markup`<section id="capacity"><h2>Latency and rate</h2><p class="lede">Open loop, rate by rate. The knee is the highest rate that was still followed; beyond it the queue grows, and latency only says for how long.</p>
<div class="card"><div class="charts">${groups.map((workload) => {
    const own = curves.filter((curve) => curve.workload === workload);
    const steps = own.flatMap((curve) => curve.steps);
    const x = linearAxis(Math.max(...steps.map(({ opsPerSecond }) => opsPerSecond)), short);
    const y = logAxis(
      Math.min(...steps.map(({ p50Us }) => p50Us)),
      Math.max(...steps.map(({ p99Us }) => p99Us)),
      formatMicroseconds,
    );
    const lines = own.flatMap((curve) => {
      const look = colors.get(curve.target)!;
      const of = (percentile: 'p50Us' | 'p99Us'): number[][] =>
        curve.steps.map((step) => [step.opsPerSecond, step[percentile]]);
      return [
        { ...look, name: `${curve.target} p99`, points: of('p99Us') },
        { ...look, thin: true, name: `${curve.target} p50`, points: of('p50Us') },
      ];
    });
    const knees = own.map(
      (curve) =>
        `${curve.target}: ${
          curve.kneeOpsPerSecond === null
            ? 'no rate was followed'
            : `knee at ${formatCount(curve.kneeOpsPerSecond)}/s${latencyBelowKnee(curve)
                .map(({ share, p99Us }) => `, p99 at ${share * 100}% of it ${formatMicroseconds(p99Us)}`)
                .join('')}`
        }`,
    );
    return markup`<figure><figcaption>${workload}: p99 (line) and p50 (dots); ${knees.join(', ')}</figcaption>${lineChart('Latency against rate', lines, x, y)}</figure>`;
  })}</div></div></section>`;
}
