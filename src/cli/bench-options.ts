/** Options that `ardent bench` and `ardent matrix` share, under redis-benchmark's letters where it has them. */
import type { Argv } from 'yargs';
import { accessOf, type OperationMix, type Workload } from '../workloads/workload.ts';
import { builtinWorkloads, STRINGS } from '../workloads/builtin.ts';
import { isYcsb, ycsbWorkload } from '../workloads/ycsb.ts';
import { defaultWorkers } from '../bench/load.ts';
import type { LoadSpec } from '../bench/load-spec.ts';
import type { LoadSettings } from '../bench/plan.ts';
import type { Results } from '../results/document.ts';
import { parseOperation } from '../workloads/command-line.ts';
import { parseDistribution } from '../workloads/distribution.ts';
import { parseSizes } from '../workloads/values.ts';
import { UsageError } from './exit-codes.ts';

export interface LoadArguments {
  tests?: string;
  op?: string[];
  clients: number;
  requests?: number;
  seconds?: number;
  warmup?: number;
  dataSize: string;
  compressibility: number;
  keyspace: number;
  distribution: string;
  pipeline: string;
  rate?: number;
  arrivals: string;
  driver: string;
  workers?: number;
  verify: boolean;
  preload: boolean;
  timeout: number;
  interval?: number;
  seed?: number;
}

export interface PlanArguments {
  repeats?: number;
  allowFlush: boolean;
}

export interface OutputArguments {
  out?: string;
  results: string;
  csv: boolean;
  json: boolean;
  quiet: boolean;
  tui: boolean;
  dataDir?: string;
}

export function loadOptions<T>(yargs: Argv<T>): Argv<T & LoadArguments> {
  return yargs
    .option('tests', {
      alias: 't',
      type: 'string',
      describe: 'Rows: redis-benchmark names, ycsb-a … ycsb-f, classic, all; by comma',
    })
    .option('op', {
      type: 'string',
      array: true,
      describe: 'A row of your own: "95 GET {key zipfian}"; several make one mix',
    })
    .option('clients', { alias: 'c', type: 'number', default: 50, describe: 'Parallel connections' })
    .option('requests', { alias: 'n', type: 'number', describe: 'Requests a run at most' })
    .option('seconds', { type: 'number', describe: 'Seconds a run at most, after the warm-up' })
    .option('warmup', { type: 'number', describe: 'Seconds sent before measuring begins' })
    .option('data-size', {
      alias: 'd',
      type: 'string',
      default: '3',
      describe: 'Bytes of a value: 100, 64-1024 or 64:70,1024:30',
    })
    .option('compressibility', {
      type: 'number',
      default: 0,
      describe: 'Share of a value that a compressor can remove',
    })
    .option('keyspace', {
      alias: 'r',
      type: 'number',
      default: 100_000,
      describe: 'Keys that are loaded and drawn from',
    })
    .option('distribution', {
      type: 'string',
      default: 'uniform',
      describe: 'Of {key}: uniform, sequential, zipfian[:s], latest[:s], hotspot[:keys:requests]',
    })
    .option('pipeline', {
      alias: 'P',
      type: 'string',
      default: '1',
      describe: 'Requests in flight on a connection; several by comma',
    })
    .option('rate', {
      type: 'number',
      describe: 'Open loop: so many requests a second, whether answered or not',
    })
    .option('arrivals', { choices: ['regular', 'poisson'], default: 'regular', describe: 'Of the open loop' })
    .option('driver', {
      choices: ['raw', 'ioredis', 'redis-benchmark'],
      default: 'raw',
      describe: 'Who sends',
    })
    .option('workers', {
      type: 'number',
      describe: 'Client threads (default: half of the processors, at most 4)',
    })
    .option('verify', {
      type: 'boolean',
      default: false,
      describe: 'Compare what GET reads with what was written',
    })
    .option('preload', {
      type: 'boolean',
      default: true,
      describe: 'Load what the rows read, and prove it; --no-preload as redis-benchmark',
    })
    .option('timeout', {
      type: 'number',
      default: 10,
      describe: 'Seconds without any reply after which a run has failed',
    })
    .option('interval', {
      type: 'number',
      describe: 'Seconds between samples (default: 1, less for short runs)',
    })
    .option('seed', {
      type: 'number',
      describe: 'Of all random choices (default: drawn, and told)',
    }) as unknown as Argv<T & LoadArguments>;
}

export function outputOptions<T>(yargs: Argv<T>): Argv<T & OutputArguments> {
  return yargs
    .option('out', { type: 'string', describe: 'Directory for the results, taken as it is' })
    .option('results', {
      type: 'string',
      default: 'bench-results',
      describe: 'Root below which <tool>/<timestamp> is made',
    })
    .option('data-dir', {
      type: 'string',
      describe: 'Where targets keep their data (default: the system’s temporary directory)',
    })
    .option('csv', {
      type: 'boolean',
      default: false,
      describe: 'Print redis-benchmark’s CSV instead of tables',
    })
    .option('json', {
      type: 'boolean',
      default: false,
      describe: 'Print a line of JSON for every run instead of tables',
    })
    .option('quiet', { alias: 'q', type: 'boolean', default: false, describe: 'Print results only' })
    .option('tui', {
      type: 'boolean',
      default: true,
      describe: 'Live view on a terminal; --no-tui for plain lines',
    }) as unknown as Argv<T & OutputArguments>;
}

/** Options of repeats and of servers that somebody else runs. */
export function planOptions<T>(yargs: Argv<T>, repeats?: number): Argv<T & PlanArguments> {
  return yargs
    .option('repeats', {
      type: 'number',
      default: repeats,
      describe: 'Times that all rows are run, each with a fresh server where the bench starts it',
    })
    .option('allow-flush', {
      type: 'boolean',
      default: false,
      describe: 'A server that runs already may be emptied before each repeat, so that loads can be proven',
    }) as unknown as Argv<T & PlanArguments>;
}

/** What `ardent bench` and `ardent matrix` write into a results document as their options. */
export function optionsOf(settings: LoadSettings, more: Results['options']): Results['options'] {
  return {
    ...more,
    ...settings,
    requests: settings.requests ?? 'no limit',
    seconds: settings.seconds ?? 'no limit',
  };
}

export const LOAD_HELP = `Placeholders of --op:
  {key [distribution] [N]}    key:000000000042, the number drawn from [0, N)
  {index [distribution] [N]}  its twelve digits alone       {same}  the number drawn before
  {value [sizes]}             random bytes                  {int N}, {int A B}, {range N W}  numbers
Distributions: uniform, sequential, insert, zipfian[:exponent], latest[:exponent],
  hotspot[:keys:requests]

Exit codes: 0 all measured; 1 wrong option, or results could not be written; 2 no server reached;
3 wrong data read (--verify); 4 part of the run failed; 130 interrupted, what was measured is kept`;

/** An option that takes a value is refused without one, instead of being forgotten. */
export function needValues<T>(yargs: Argv<T>): Argv<T> {
  const { number, string } = (
    yargs as unknown as { getOptions(): Record<'number' | 'string', string[]> }
  ).getOptions();
  return yargs.requiresArg([...number, ...string].filter((name) => name !== 'command'));
}

/** Options that collect what they are given; of all others the last counts. */
const COLLECTING = new Set([
  ...['_', 'op', 'target', 'serverOption', 'engineOption', 'command'],
  ...['targets', 'rdb', 'rdbDir'],
]);

/** yargs makes an array of an option that is given twice. */
export function lastGiven<T extends object>(args: T): T {
  const entries = Object.entries(args).map(([name, value]: [string, unknown]) => [
    name,
    Array.isArray(value) && !COLLECTING.has(name) ? (value.at(-1) as unknown) : value,
  ]);
  return Object.fromEntries(entries) as T;
}

function positive(value: number | undefined, name: string, whole = true): void {
  if (value === undefined) return;
  if (!(value > 0) || (whole && !Number.isSafeInteger(value))) {
    throw new UsageError(`--${name} must be a ${whole ? 'whole ' : ''}number above 0`);
  }
}

export function settingsOf(args: LoadArguments & Pick<PlanArguments, 'repeats'>): LoadSettings {
  positive(args.clients, 'clients');
  positive(args.requests, 'requests');
  positive(args.seconds, 'seconds', false);
  positive(args.keyspace, 'keyspace');
  positive(args.workers, 'workers');
  positive(args.rate, 'rate', false);
  positive(args.timeout, 'timeout', false);
  positive(args.interval, 'interval', false);
  positive(args.repeats, 'repeats');
  if (args.warmup !== undefined && !(args.warmup >= 0)) throw new UsageError('--warmup must be 0 or above');
  if (!(args.compressibility >= 0 && args.compressibility < 1))
    throw new UsageError('--compressibility must be 0 to below 1');
  if (args.seed !== undefined && !(Number.isSafeInteger(args.seed) && args.seed >= 0))
    throw new UsageError('--seed must be a whole number, 0 or above');
  if (
    args.driver === 'redis-benchmark' &&
    (args.rate !== undefined || args.verify || args.op !== undefined)
  ) {
    throw new UsageError('the redis-benchmark driver knows neither --rate nor --verify nor --op');
  }
  if (args.driver === 'ioredis' && args.verify) throw new UsageError('--verify needs the raw driver');
  const seconds = args.seconds ?? null;
  const short = seconds === null ? 1 : Math.min(1, Math.max(0.05, seconds / 10));
  return {
    driver: args.driver as LoadSettings['driver'],
    connections: args.clients,
    workers: args.workers ?? defaultWorkers(),
    keyspace: args.keyspace,
    distribution: args.distribution,
    valueSizes: args.dataSize,
    compressibility: args.compressibility,
    requests: args.requests ?? null,
    seconds,
    warmupSeconds: args.warmup ?? 0,
    intervalSeconds: args.interval ?? short,
    timeoutSeconds: args.timeout,
    verify: args.verify,
    preload: args.preload,
    seed: args.seed ?? Math.floor(Math.random() * 0x7fffffff),
  };
}

/** At most one rate, as an open loop. */
export function openOf(args: LoadArguments, rate = args.rate): LoadSpec['open'] {
  return rate === undefined ? null : { rate, arrivals: args.arrivals as 'regular' | 'poisson' };
}

export function pipelinesOf(args: LoadArguments): number[] {
  return args.pipeline.split(',').map((given) => {
    const depth = Number(given);
    if (!Number.isSafeInteger(depth) || depth < 1 || depth > 10_000) {
      throw new UsageError(`--pipeline ${args.pipeline}: expected whole numbers above 0`);
    }
    return depth;
  });
}

/** First word of commands that read without changing, for what a miss is. */
const READS =
  /^(get|mget|strlen|exists|lrange|llen|lindex|smembers|sismember|hget|hmget|hgetall|hlen|zrange|zscore|zrank|zrangebyscore|xrange|getrange|type|ttl)\b/i;
const POPS = /^(lpop|rpop|spop|zpopmin|zpopmax|getdel)\b/i;

function accessOfLine(line: string): OperationMix['access'] {
  if (READS.test(line)) return 'read';
  if (POPS.test(line)) return 'pop';
  return /^(ping|echo|time|info)\b/i.test(line) ? 'none' : 'write';
}

/** A workload of the user's own command lines, `weight line` each. */
function customWorkload(lines: readonly string[], settings: LoadSettings): Workload {
  const operations = lines.map((given) => {
    const match = /^\s*(\d+(?:\.\d+)?)\s+(.*)$/s.exec(given);
    const line = match === null ? given.trim() : match[2].trim();
    parseOperation(line, {
      distribution: parseDistribution(settings.distribution),
      keyspace: settings.keyspace,
      values: parseSizes(settings.valueSizes),
    });
    return { line, weight: match === null ? 1 : Number(match[1]), access: accessOfLine(line), name: line };
  });
  if (settings.verify && operations.some(({ line }) => /\{value\s+\S/.test(line))) {
    throw new UsageError(
      '--verify: what is expected follows from the key and -d; leave the size out of {value}',
    );
  }
  if (operations.some(({ weight }) => !(weight > 0))) throw new UsageError('--op: weights must be above 0');
  const usesKeys = operations.some(({ line }) =>
    /^(get|set|mget|strlen|append|getrange|setrange)\b.*(\{key|key:__rand_int__)/i.test(line),
  );
  const workload: Workload = {
    id:
      operations.length === 1
        ? operations[0].line
            .toLowerCase()
            .replace(/[^\w]+/g, '-')
            .slice(0, 40)
        : 'mix',
    label: operations.length === 1 ? operations[0].line.slice(0, 40) : 'mix',
    family: 'mix',
    description: operations.map(({ line, weight }) => `${weight} ${line}`).join('; '),
    operations,
    preload: usesKeys ? [STRINGS] : [],
  };
  return { ...workload, family: accessOf(workload) === 'none' ? 'none' : 'mix' };
}

/** Rows that were asked for, in order. */
export function workloadsOf(args: LoadArguments, settings: LoadSettings, fallback: string): Workload[] {
  if (args.op !== undefined) return [customWorkload(args.op, settings)];
  const names = (args.tests ?? fallback)
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (names.length === 0) throw new UsageError('-t names no test');
  return names.flatMap((name) => (isYcsb(name) ? [ycsbWorkload(name)] : builtinWorkloads([name])));
}
