/**
 * The results document, `results.json`: everything a report shows, and nothing a report has to guess.
 * Described for readers in docs/results-format.md. Times are seconds unless the name says otherwise,
 * latencies microseconds, sizes bytes.
 *
 * `version` changes when a field changes its meaning or goes away; fields may be added at any time.
 */
import {
  count,
  dictionary,
  flag,
  list,
  literal,
  nullable,
  object,
  oneOf,
  optional,
  quantity,
  text,
  type TypeOf,
} from './shape.ts';

export const RESULTS_FORMAT = 'ardent-results';
export const RESULTS_VERSION = 1;

/** What can be compared between targets, in the order of the report's metric switch. */
export const METRICS = [
  'opsPerSecond',
  'p50Us',
  'p99Us',
  'p999Us',
  'opsPerCpuSecond',
  'rssAnonBytes',
  'diskBytesPerUserByte',
  'writeAmplification',
] as const;
export type MetricName = (typeof METRICS)[number];

/** Conditions that can void a cell; docs/statistics.md says when each is given. */
const BADGES = [
  'CLIENT-BOUND',
  'OVERLOADED',
  'MEMTABLE-ONLY',
  'MISS',
  'UNEQUAL-DURABILITY',
  'NOISY',
  'ERRORS',
] as const;

const scalarOption = {
  check(value: unknown, path: string, problems: string[]): void {
    if (!['string', 'number', 'boolean'].includes(typeof value)) problems.push(`${path}: expected a scalar`);
  },
} as { check(value: unknown, path: string, problems: string[]): void; type?: string | number | boolean };

const environmentShape = object({
  hostname: text,
  kernel: text,
  cpuModel: text,
  cpuCount: count,
  memoryBytes: count,
  nodeVersion: text,
  ardentVersion: text,
  /** Commit of the checkout that ran, with `+changes` when files differ from it; empty when unknown. */
  commit: text,
  filesystem: text,
  diskFreeBytes: nullable(count),
  loadAverage: list(quantity),
  cpuGovernor: text,
  /** The client and the targets share this machine and talk over loopback. */
  clientSharesMachine: flag,
  transport: text,
  warnings: list(text),
});

/** One column: a server (or, for `ardent engines`, an engine) with its settings. */
const targetShape = object({
  id: text,
  label: text,
  kind: oneOf(['ardent', 'redis', 'foreign', 'engine']),
  /** Engine of an ardent server or of an engine-level run. */
  engine: optional(text),
  /** `served`: memory tier holds everything; `engine-bound`: every access goes to the engine. */
  mode: optional(oneOf(['served', 'engine-bound'])),
  /** Shown beside the others but never the base of a ratio nor ranked: another durability class. */
  reference: flag,
  version: text,
  durability: object({
    class: oneOf(['none', 'everysec', 'always', 'unknown']),
    /** What a crash can lose, in words. */
    loses: text,
  }),
  address: text,
  commandLine: text,
  settings: dictionary(scalarOption),
});

/** One row: what is asked of every target. */
const workloadShape = object({
  id: text,
  label: text,
  /** Family that the row belongs to, for filters: string, list, set, hash, sorted set, stream, mix, none. */
  family: text,
  access: oneOf(['read', 'write', 'mixed', 'none']),
  /** The command lines with their placeholders. */
  commands: list(text),
  description: text,
  connections: count,
  pipeline: count,
  driver: oneOf(['raw', 'ioredis', 'redis-benchmark', 'engine']),
  loop: oneOf(['closed', 'open']),
  /** Operations per second asked for, of an open loop. */
  rate: nullable(quantity),
  keyspace: count,
  distribution: text,
  valueBytes: text,
  /** Limits of one run: whichever comes first. */
  requests: nullable(count),
  seconds: nullable(quantity),
  warmupSeconds: quantity,
});

const latencyShape = object({
  count: count,
  minUs: quantity,
  meanUs: quantity,
  maxUs: quantity,
  p50Us: quantity,
  p90Us: quantity,
  p95Us: quantity,
  p99Us: quantity,
  /** Null without at least 10 samples beyond it. */
  p999Us: nullable(quantity),
  p9999Us: nullable(quantity),
  /** Points of the percentile plot: [fraction of samples, microseconds]. */
  curve: list(list(quantity)),
  /** HdrHistogram V2, compressed, base64; counts of 100 ns units. Null when the driver only gives percentiles. */
  histogram: nullable(text),
});

/** Parallel columns, one entry a sample. `null` where a figure is not known. */
const seriesShape = object({
  /** Seconds since the run's measurement began. */
  at: list(quantity),
  opsPerSecond: list(nullable(quantity)),
  p99Us: list(nullable(quantity)),
  cpuCores: list(nullable(quantity)),
  rssAnonBytes: list(nullable(quantity)),
  rssFileBytes: list(nullable(quantity)),
  readBytesPerSecond: list(nullable(quantity)),
  writeBytesPerSecond: list(nullable(quantity)),
  diskBytes: list(nullable(quantity)),
  clientUtilisation: list(nullable(quantity)),
});

const resourcesShape = object({
  cpuSeconds: nullable(quantity),
  /** Its threads were ready to run and had no processor: others used the machine. */
  cpuWaitSeconds: optional(nullable(quantity)),
  rssAnonBytes: nullable(quantity),
  rssFileBytes: nullable(quantity),
  rssPeakBytes: nullable(quantity),
  readBytes: nullable(quantity),
  writeBytes: nullable(quantity),
  majorFaults: nullable(quantity),
  diskBytes: nullable(quantity),
});

const clientShape = object({
  workers: count,
  cpuSeconds: nullable(quantity),
  /** Busy share of the busiest worker's event loop, 0 to 1. */
  utilisation: nullable(quantity),
  /** Processor time of the busiest worker's thread by the time measured: what others took from it is not in it. */
  cpuShare: optional(nullable(quantity)),
  gcPauseMs: nullable(quantity),
});

/** The unit of replication: one workload, once, on one fresh server. */
const runShape = object({
  workload: text,
  target: text,
  /** Starts at 1. */
  repeat: count,
  /** Index into `sessions`. */
  session: count,
  /** Order in which the runs were made, from 0. */
  order: count,
  startedAt: text,
  /** `unsupported`: the target does not know the command. */
  state: oneOf(['ok', 'failed', 'unsupported']),
  error: optional(text),
  seconds: quantity,
  requests: count,
  opsPerSecond: quantity,
  errors: count,
  /** Text of the first error reply. */
  firstError: optional(text),
  hits: count,
  misses: count,
  /** Values that were read and compared with what must be there. */
  verified: optional(object({ checked: count, wrong: count, firstWrong: optional(text) })),
  /** Bytes of keys and values sent by the run's writes. */
  userBytesWritten: nullable(quantity),
  /** From the actual send to the reply: service time at the number of requests in flight. */
  latency: nullable(latencyShape),
  /** Open loop: from the moment at which the request was due. */
  intendedLatency: optional(nullable(latencyShape)),
  /** Per command of a mix: service time. */
  commands: optional(
    list(object({ command: text, requests: count, errors: count, misses: count, latency: latencyShape })),
  ),
  /** Open loop. */
  rateAsked: optional(quantity),
  resources: nullable(resourcesShape),
  client: clientShape,
  series: seriesShape,
});

/** One life of a target: started fresh, loaded, asked every workload in order, stopped. */
const sessionShape = object({
  target: text,
  repeat: count,
  startedAt: text,
  startSeconds: nullable(quantity),
  state: oneOf(['ok', 'failed']),
  error: optional(text),
  load: nullable(
    object({
      keys: count,
      userBytes: count,
      seconds: quantity,
      /** DBSIZE after the load. */
      foundKeys: count,
    }),
  ),
  /** Until the server had nothing left to write back after the load. */
  drain: nullable(
    object({
      seconds: quantity,
      /** From the start of the load to the end of the drain. */
      writeBytes: nullable(quantity),
      diskBytes: nullable(quantity),
      /** False: the time allowed was over first. */
      settled: flag,
    }),
  ),
  /** After the last workload. */
  end: nullable(object({ diskBytes: nullable(quantity), userBytes: nullable(quantity), keys: count })),
});

/** One number over the runs of a cell. The interval is a 95% bootstrap interval of the median. */
const estimateShape = object({
  n: count,
  median: quantity,
  low: quantity,
  high: quantity,
  min: quantity,
  max: quantity,
  /** (max - min) / median. */
  spread: quantity,
});

/** `not comparable`: another durability; `void`: a badge of the cell or of its baseline takes its meaning away. */
const VERDICTS = ['higher', 'lower', 'no difference', 'too few runs', 'not comparable', 'void'] as const;

/** Operations per second against the baseline. */
const comparisonShape = object({
  baseline: text,
  ratio: quantity,
  low: quantity,
  high: quantity,
  /** Mann-Whitney, two-sided, exact where possible. Null with fewer than 2 runs on a side. */
  p: nullable(quantity),
  verdict: oneOf(VERDICTS),
  /** Of `void`: the badges that make it so, and whose they are, as `NOISY` or `NOISY of redis-everysec`. */
  voidedBy: optional(list(text)),
});

const cellShape = object({
  workload: text,
  target: text,
  /** `unsupported`: the target does not know the command. */
  state: oneOf(['ok', 'failed', 'unsupported', 'missing']),
  reason: optional(text),
  metrics: dictionary(estimateShape),
  versus: nullable(comparisonShape),
  badges: list(object({ name: oneOf(BADGES), reason: text })),
  /** Merged over the runs. */
  latency: nullable(latencyShape),
  intendedLatency: optional(nullable(latencyShape)),
});

/** Rate stepped until the target no longer follows. */
const capacityShape = object({
  workload: text,
  target: text,
  steps: list(
    object({
      rateAsked: quantity,
      opsPerSecond: quantity,
      p50Us: quantity,
      p99Us: quantity,
      serviceP99Us: quantity,
      overloaded: flag,
    }),
  ),
  /** Highest rate that the target followed; null when it followed none. */
  kneeOpsPerSecond: nullable(quantity),
});

/**
 * At one pipeline depth, with the run's driver, connections and workers. Where the client was not busy all
 * the time the responder was the limit, and the client can do more.
 */
const ceilingShape = object({ pipeline: count, opsPerSecond: quantity, clientUtilisation: quantity });

const resultsShape = object({
  format: literal(RESULTS_FORMAT),
  version: literal(RESULTS_VERSION),
  tool: oneOf(['matrix', 'bench', 'engines']),
  title: text,
  state: oneOf(['complete', 'partial']),
  /** Why it is partial. */
  partialReason: optional(text),
  startedAt: text,
  finishedAt: text,
  argv: list(text),
  rerun: text,
  seed: count,
  options: dictionary(scalarOption),
  environment: environmentShape,
  targets: list(targetShape),
  workloads: list(workloadShape),
  /** Target id that ratios are taken against; empty when there is none. */
  baseline: text,
  /** Operations per second that the client reaches against a responder that does nothing. */
  clientCeiling: optional(list(ceilingShape)),
  sessions: list(sessionShape),
  runs: list(runShape),
  cells: list(cellShape),
  capacity: optional(list(capacityShape)),
  /** What a reader must know, in sentences. */
  notes: list(text),
});

export type Results = TypeOf<typeof resultsShape>;
export type Environment = TypeOf<typeof environmentShape>;
export type TargetInfo = TypeOf<typeof targetShape>;
export type WorkloadInfo = TypeOf<typeof workloadShape>;
export type Latency = TypeOf<typeof latencyShape>;
export type Series = TypeOf<typeof seriesShape>;
export type Resources = TypeOf<typeof resourcesShape>;
export type Run = TypeOf<typeof runShape>;
export type Session = TypeOf<typeof sessionShape>;
export type Estimate = TypeOf<typeof estimateShape>;
export type Comparison = TypeOf<typeof comparisonShape>;
export type Cell = TypeOf<typeof cellShape>;
export type Capacity = TypeOf<typeof capacityShape>;
export type ClientCeiling = TypeOf<typeof ceilingShape>;
export type Badge = Cell['badges'][number];

/** A document that is not a results document of this version; `problems` are paths with what is wrong. */
export class ResultsError extends Error {
  readonly code = 'RESULTS_FORMAT';
  readonly problems: string[];

  constructor(source: string, problems: string[]) {
    const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
    super(`${source} is not a results document: ${problems[0]}${more}`);
    this.name = 'ResultsError';
    this.problems = problems;
  }
}

/** The parsed JSON of `source` as a results document. Throws ResultsError. */
export function parseResults(json: string, source: string): Results {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new ResultsError(source, [`not JSON: ${(error as Error).message}`]);
  }
  const header = value as { format?: unknown; version?: unknown } | null;
  if (header?.format === RESULTS_FORMAT && header.version !== RESULTS_VERSION) {
    throw new ResultsError(source, [
      `version ${String(header.version)}; this ardent reads ${RESULTS_VERSION}`,
    ]);
  }
  const problems: string[] = [];
  resultsShape.check(value, '$', problems);
  if (problems.length === 0) checkReferences(value as Results, problems);
  if (problems.length > 0) throw new ResultsError(source, problems);
  return value as Results;
}

function checkReferences(results: Results, problems: string[]): void {
  const targets = new Set(results.targets.map((target) => target.id));
  const workloads = new Set(results.workloads.map((workload) => workload.id));
  if (results.baseline !== '' && !targets.has(results.baseline)) {
    problems.push(`$.baseline: no target ${results.baseline}`);
  }
  for (const part of ['runs', 'cells'] as const) {
    results[part].forEach((item, index) => {
      if (!targets.has(item.target)) problems.push(`$.${part}[${index}].target: no target ${item.target}`);
      if (!workloads.has(item.workload)) {
        problems.push(`$.${part}[${index}].workload: no workload ${item.workload}`);
      }
    });
  }
  results.runs.forEach((run, index) => {
    if (run.session >= results.sessions.length) problems.push(`$.runs[${index}].session: no such session`);
  });
}
