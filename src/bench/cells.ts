/** From runs to cells: estimates, comparisons with the baseline, and the badges that can void a cell. */
import {
  METRICS,
  type Badge,
  type Cell,
  type ClientCeiling,
  type Comparison,
  type Estimate,
  type MetricName,
  type Run,
  type Session,
  type TargetInfo,
  type WorkloadInfo,
} from '../results/document.ts';
import { formatSize } from '../bytes/size.ts';
import { RATE_REACHED } from './capacity.ts';
import { writeBufferBytes } from './engine-cache.ts';
import { mergeLatencies } from './latency.ts';
import { compare, estimate, median } from './statistics.ts';

/**
 * The client's event loop was never idle for longer, and its thread really had a processor (else others
 * used the machine), while the server had this much of a processor left.
 */
const CLIENT_BUSY = 0.95;
const CLIENT_CPU = 0.85;
const SERVER_BUSY_CORES = 0.85;
/** A rate above this share of the client's ceiling may be the client's. */
const CEILING_SHARE = 0.9;
const MISS_SHARE = 0.01;
/** (max - min) / median above this: the median of these runs is not to be trusted. */
const NOISY_SPREAD = 0.3;

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
  /** What the client reaches against a responder that does nothing; see ceiling.ts. */
  clientCeiling: readonly ClientCeiling[];
  /** Merging histograms takes its time; while the bench is running it is left out. */
  mergeLatencies: boolean;
}

export function cellsOf(input: CellInput): Cell[] {
  const { targets, workloads, runs, baseline } = input;
  const base = targets.find(({ id }) => id === baseline);
  return workloads.flatMap((workload) => {
    const runsOf = (target: string): Run[] =>
      runs.filter((run) => run.workload === workload.id && run.target === target);
    const cells = targets.map((target) => cellOf(input, workload, target, base, runsOf(target.id)));
    const baseCell = cells.find(({ target }) => target === baseline);
    if (base === undefined || baseCell?.state !== 'ok') return cells;
    return cells.map((cell, index) =>
      cell.state !== 'ok' || cell.target === baseline
        ? cell
        : { ...cell, versus: comparisonOf(targets[index], cell, base, baseCell, runsOf) },
    );
  });
}

const okRates = (runs: readonly Run[]): number[] =>
  runs.filter(({ state }) => state === 'ok').map(({ opsPerSecond }) => opsPerSecond);

function comparisonOf(
  target: TargetInfo,
  cell: Cell,
  base: TargetInfo,
  baseCell: Cell,
  runsOf: (target: string) => Run[],
): Comparison {
  const made = compare(okRates(runsOf(target.id)), okRates(runsOf(base.id)));
  const voidedBy = [
    ...voidingBadges(cell),
    ...voidingBadges(baseCell).map((badge) => `${badge} of ${base.id}`),
  ];
  if (voidedBy.length > 0) return { baseline: base.id, ...made, verdict: 'void', voidedBy };
  const comparable = !target.reference && target.durability.class === base.durability.class;
  return { baseline: base.id, ...made, verdict: comparable ? made.verdict : 'not comparable' };
}

/** Badges of a cell that leave nothing to be proven by it. Another durability is a verdict of its own. */
export function voidingBadges(cell: Cell): Badge['name'][] {
  return cell.badges.map(({ name }) => name).filter((name) => name !== 'UNEQUAL-DURABILITY');
}

function cellOf(
  input: CellInput,
  workload: WorkloadInfo,
  target: TargetInfo,
  base: TargetInfo | undefined,
  all: readonly Run[],
): Cell {
  const runs = all.filter(({ state }) => state === 'ok');
  const failed = all.find(({ state }) => state === 'failed') ?? all.find(({ state }) => state !== 'ok');
  if (runs.length === 0) {
    const start = input.sessions.find(
      (session) => session.target === target.id && session.state === 'failed',
    );
    return {
      workload: workload.id,
      target: target.id,
      state: failed?.state ?? (start ? 'failed' : 'missing'),
      reason: failed?.error ?? start?.error ?? 'not reached',
      metrics: {},
      versus: null,
      badges: [],
      latency: null,
    } as Cell;
  }
  const metrics: Record<string, Estimate> = {};
  for (const metric of METRICS) {
    const values = runs.flatMap((run) => metricOf(run, input.sessions[run.session], metric) ?? []);
    if (values.length === runs.length) metrics[metric] = estimate(values);
  }
  return {
    workload: workload.id,
    target: target.id,
    state: 'ok',
    ...(failed === undefined
      ? {}
      : { reason: `${all.length - runs.length} of ${all.length} runs failed: ${failed.error}` }),
    metrics,
    versus: null,
    badges: badgesOf(workload, target, base, runs, metrics, input.clientCeiling),
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
  ceilings: readonly ClientCeiling[],
): Badge[] {
  const badges: Badge[] = [];
  const errors = runs.reduce((sum, run) => sum + run.errors, 0);
  if (errors > 0) {
    badges.push({
      name: 'ERRORS',
      reason: `${errors} error replies, the first: ${runs.find((run) => run.firstError)?.firstError}`,
    });
  }
  if (workload.loop === 'closed') badges.push(...clientBound(workload, runs, metrics, ceilings));
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
  const buffer = writeBufferBytes(target);
  const writes = workload.access === 'write' || workload.access === 'mixed';
  const written = median(runs.map((run) => run.userBytesWritten ?? 0));
  if (
    buffer !== null &&
    writes &&
    (target.mode === 'engine-bound' || target.kind === 'engine') &&
    written < 2 * buffer
  ) {
    badges.push({
      name: 'MEMTABLE-ONLY',
      reason: `${(written / 1024 ** 2).toFixed(1)} MB written, below two write buffers of ${formatSize(buffer)}: tables and compaction were hardly tested`,
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

/**
 * The client was the limit: its threads were busy nearly all the time, or the rate came near to what they
 * reach against a responder that does nothing, while the server had processor time left.
 */
function clientBound(
  workload: WorkloadInfo,
  runs: readonly Run[],
  metrics: Record<string, Estimate>,
  ceilings: readonly ClientCeiling[],
): Badge[] {
  const cores = runs.flatMap((run) =>
    run.resources?.cpuSeconds ? run.resources.cpuSeconds / run.seconds : [],
  );
  if (cores.length > 0 && median(cores) >= SERVER_BUSY_CORES) return [];
  const server =
    cores.length === 0
      ? 'a server that cannot be seen'
      : `a server at ${median(cores).toFixed(2)} processors`;
  const busy = median(runs.map(({ client }) => client.utilisation ?? 0));
  const shares = runs.flatMap(({ client }) => client.cpuShare ?? []);
  const saturated = busy >= CLIENT_BUSY && (shares.length === 0 || median(shares) >= CLIENT_CPU);
  const ceiling = ceilings.find(
    ({ pipeline, clientUtilisation }) => pipeline === workload.pipeline && clientUtilisation >= CLIENT_BUSY,
  )?.opsPerSecond;
  const share = ceiling === undefined ? 0 : metrics.opsPerSecond.median / ceiling;
  if (!saturated && share < CEILING_SHARE) return [];
  const why = saturated
    ? `the client was ${percent(busy)} busy`
    : `${percent(share)} of what the client reaches against a responder that does nothing`;
  return [{ name: 'CLIENT-BOUND', reason: `${why}, beside ${server}` }];
}

const percent = (share: number): string => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}%`;
