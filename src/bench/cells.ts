/** From runs to cells: estimates, comparisons with the baseline, and the badges that can void a cell. */
import {
  METRICS,
  type Badge,
  type Cell,
  type Comparison,
  type Estimate,
  type MetricName,
  type Run,
  type Session,
  type TargetInfo,
  type WorkloadInfo,
} from '../results/results.ts';
import { RATE_REACHED } from './capacity.ts';
import { mergeLatencies } from './latency.ts';
import { compare, estimate, median } from './statistics.ts';

/** The client worked this much of the time while the server had this much of a processor left. */
const CLIENT_BUSY = 0.95;
const SERVER_BUSY_CORES = 0.85;
const MISS_SHARE = 0.01;
/** (max - min) / median above this: the median of these runs is not to be trusted. */
const NOISY_SPREAD = 0.3;
/** Default write buffer of the LSM engines; data below it never reach a table. */
const WRITE_BUFFER_BYTES = 32 * 1024 * 1024;

/** One run's value of a metric; null where it has none. */
function metricOf(run: Run, session: Session | undefined, metric: MetricName): number | null {
  switch (metric) {
    case 'opsPerSecond':
      return run.opsPerSecond;
    case 'p50Us':
      return (run.intendedLatency ?? run.latency)?.p50Us ?? null;
    case 'p99Us':
      return (run.intendedLatency ?? run.latency)?.p99Us ?? null;
    case 'p999Us':
      return (run.intendedLatency ?? run.latency)?.p999Us ?? null;
    case 'opsPerCpuSecond':
      return run.resources?.cpuSeconds ? run.requests / run.resources.cpuSeconds : null;
    case 'rssAnonBytes':
      return run.resources?.rssAnonBytes ?? null;
    case 'diskBytesPerUserByte': {
      const { load, drain } = session ?? {};
      return load && drain?.diskBytes && load.userBytes > 0 ? drain.diskBytes / load.userBytes : null;
    }
    case 'writeAmplification':
      return run.userBytesWritten && run.resources?.writeBytes != null
        ? run.resources.writeBytes / run.userBytesWritten
        : null;
  }
}

export interface CellInput {
  targets: readonly TargetInfo[];
  workloads: readonly WorkloadInfo[];
  runs: readonly Run[];
  sessions: readonly Session[];
  baseline: string;
  /** Merging histograms takes its time; while the bench is running it is left out. */
  mergeLatencies: boolean;
}

export function cellsOf(input: CellInput): Cell[] {
  const { targets, workloads, runs, baseline } = input;
  const base = targets.find(({ id }) => id === baseline);
  return workloads.flatMap((workload) => {
    const runsOf = (target: string): Run[] =>
      runs.filter((run) => run.workload === workload.id && run.target === target);
    const baseRates = runsOf(baseline)
      .filter(({ state }) => state === 'ok')
      .map(({ opsPerSecond }) => opsPerSecond);
    return targets.map((target) => cellOf(input, workload, target, base, baseRates, runsOf(target.id)));
  });
}

function cellOf(
  input: CellInput,
  workload: WorkloadInfo,
  target: TargetInfo,
  base: TargetInfo | undefined,
  baseRates: readonly number[],
  all: readonly Run[],
): Cell {
  const runs = all.filter(({ state }) => state === 'ok');
  const failed = all.find(({ state }) => state === 'failed');
  if (runs.length === 0) {
    const start = input.sessions.find(
      (session) => session.target === target.id && session.state === 'failed',
    );
    return {
      workload: workload.id,
      target: target.id,
      state: failed || start ? 'failed' : 'missing',
      reason: failed?.error ?? start?.error ?? 'not reached',
      metrics: {},
      versus: null,
      badges: [],
      latency: null,
    };
  }
  const metrics: Record<string, Estimate> = {};
  for (const metric of METRICS) {
    const values = runs.flatMap((run) => metricOf(run, input.sessions[run.session], metric) ?? []);
    if (values.length === runs.length) metrics[metric] = estimate(values);
  }
  const rates = runs.map(({ opsPerSecond }) => opsPerSecond);
  let versus: Comparison | null = null;
  if (base !== undefined && base.id !== target.id && baseRates.length > 0) {
    versus = { baseline: base.id, ...compare(rates, baseRates) };
    if (target.reference || target.durability.class !== base.durability.class)
      versus.verdict = 'not comparable';
  }
  return {
    workload: workload.id,
    target: target.id,
    state: 'ok',
    ...(failed === undefined
      ? {}
      : { reason: `${all.length - runs.length} of ${all.length} runs failed: ${failed.error}` }),
    metrics,
    versus,
    badges: badgesOf(workload, target, base, runs, metrics),
    latency: !input.mergeLatencies
      ? null
      : (mergeLatencies(runs.map(({ latency }) => latency)) ?? runs[0].latency),
    ...(workload.loop === 'open'
      ? { intendedLatency: mergeLatencies(runs.map((run) => run.intendedLatency)) }
      : {}),
  };
}

function badgesOf(
  workload: WorkloadInfo,
  target: TargetInfo,
  base: TargetInfo | undefined,
  runs: readonly Run[],
  metrics: Record<string, Estimate>,
): Badge[] {
  const badges: Badge[] = [];
  const percent = (share: number): string => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}%`;

  const errors = runs.reduce((sum, run) => sum + run.errors, 0);
  if (errors > 0) {
    badges.push({
      name: 'ERRORS',
      reason: `${errors} error replies, the first: ${runs.find((run) => run.firstError)?.firstError}`,
    });
  }
  const utilisation = median(runs.map(({ client }) => client.utilisation ?? 0));
  const cores = runs.flatMap((run) =>
    run.resources?.cpuSeconds ? run.resources.cpuSeconds / run.seconds : [],
  );
  if (
    workload.loop === 'closed' &&
    utilisation >= CLIENT_BUSY &&
    (cores.length === 0 || median(cores) < SERVER_BUSY_CORES)
  ) {
    const server =
      cores.length === 0
        ? 'a server that cannot be seen'
        : `a server at ${median(cores).toFixed(2)} processors`;
    badges.push({
      name: 'CLIENT-BOUND',
      reason: `the client was ${percent(utilisation)} busy, beside ${server}`,
    });
  }
  if (workload.loop === 'open' && workload.rate !== null) {
    const reached = metrics.opsPerSecond.median / workload.rate;
    if (reached < RATE_REACHED)
      badges.push({ name: 'OVERLOADED', reason: `${percent(reached)} of the rate asked for` });
  }
  const hits = runs.reduce((sum, run) => sum + run.hits, 0);
  const misses = runs.reduce((sum, run) => sum + run.misses, 0);
  if (misses > MISS_SHARE * (hits + misses)) {
    badges.push({
      name: 'MISS',
      reason: `${percent(misses / (hits + misses))} of the replies were null or empty`,
    });
  }
  if (base !== undefined && base.id !== target.id && base.durability.class !== target.durability.class) {
    badges.push({
      name: 'UNEQUAL-DURABILITY',
      reason: `${target.durability.class} against ${base.durability.class}: a crash loses ${target.durability.loses}`,
    });
  }
  const lsm = target.engine === 'leveldb' || target.engine === 'rocksdb';
  const writes = workload.access === 'write' || workload.access === 'mixed';
  const written = median(runs.map((run) => run.userBytesWritten ?? 0));
  if (
    lsm &&
    writes &&
    (target.mode === 'engine-bound' || target.kind === 'engine') &&
    written < 2 * WRITE_BUFFER_BYTES
  ) {
    badges.push({
      name: 'MEMTABLE-ONLY',
      reason: `${(written / 1024 ** 2).toFixed(0)} MB written: hardly more than a write buffer, so tables and compaction were not tested`,
    });
  }
  if (metrics.opsPerSecond.n >= 3 && metrics.opsPerSecond.spread > NOISY_SPREAD) {
    badges.push({
      name: 'NOISY',
      reason: `runs lie ${percent(metrics.opsPerSecond.spread)} of the median apart`,
    });
  }
  return badges;
}
