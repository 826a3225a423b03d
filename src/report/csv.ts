/** Results as CSV: one line a run, for spreadsheets; and redis-benchmark's own form. */
import { stringify } from 'csv-stringify/sync';
import type { Results } from '../results/document.ts';

const COLUMNS = [
  'workload',
  'target',
  'repeat',
  'state',
  'ops_per_second',
  'requests',
  'seconds',
  'errors',
  'hits',
  'misses',
  'mean_us',
  'p50_us',
  'p95_us',
  'p99_us',
  'p999_us',
  'max_us',
  'intended_p50_us',
  'intended_p99_us',
  'cpu_seconds',
  'ops_per_cpu_second',
  'rss_anon_bytes',
  'rss_file_bytes',
  'read_bytes',
  'write_bytes',
  'user_bytes_written',
  'disk_bytes',
  'client_utilisation',
  'started_at',
  'cell_badges',
  'cell_verdict',
  'error',
] as const;

export function toCsv(results: Results): string {
  const rows = results.runs.map((run) => {
    const { latency, intendedLatency, resources } = run;
    const cell = results.cells.find(
      ({ workload, target }) => workload === run.workload && target === run.target,
    );
    return [
      run.workload,
      run.target,
      run.repeat,
      run.state,
      run.opsPerSecond,
      run.requests,
      run.seconds,
      run.errors,
      run.hits,
      run.misses,
      latency?.meanUs,
      latency?.p50Us,
      latency?.p95Us,
      latency?.p99Us,
      latency?.p999Us,
      latency?.maxUs,
      intendedLatency?.p50Us,
      intendedLatency?.p99Us,
      resources?.cpuSeconds,
      resources?.cpuSeconds ? run.requests / resources.cpuSeconds : undefined,
      resources?.rssAnonBytes,
      resources?.rssFileBytes,
      resources?.readBytes,
      resources?.writeBytes,
      run.userBytesWritten,
      resources?.diskBytes,
      run.client.utilisation,
      run.startedAt,
      cell?.badges.map(({ name }) => name).join(' '),
      cell?.versus?.verdict,
      run.error,
    ];
  });
  return stringify([[...COLUMNS], ...rows]);
}

const BENCHMARK_HEADER = [
  'test',
  'rps',
  'avg_latency_ms',
  'min_latency_ms',
  'p50_latency_ms',
  'p95_latency_ms',
  'p99_latency_ms',
  'max_latency_ms',
];

/** One line a workload in the very form of `redis-benchmark --csv`, for the first target. */
export function toBenchmarkCsv(results: Results): string {
  const [target] = results.targets;
  const ms = (us: number): string => (us / 1000).toFixed(3);
  const rows = results.cells
    .filter((cell) => cell.target === target.id && cell.state === 'ok')
    .map((cell) => {
      const { label } = results.workloads.find(({ id }) => id === cell.workload)!;
      const latency = cell.latency;
      const times =
        latency === null
          ? ['', '', '', '', '', '']
          : [latency.meanUs, latency.minUs, latency.p50Us, latency.p95Us, latency.p99Us, latency.maxUs].map(
              ms,
            );
      return [label, cell.metrics.opsPerSecond.median.toFixed(2), ...times];
    });
  return stringify([BENCHMARK_HEADER, ...rows], { quoted: true });
}
