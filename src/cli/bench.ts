/** `ardent bench`: one server, with redis-benchmark's own flags. */
import type { Argv } from 'yargs';
import { stepRates } from '../bench/capacity.ts';
import { rowsOf } from '../bench/plan.ts';
import { foreignTarget } from '../bench/target.ts';
import {
  LOAD_HELP,
  loadOptions,
  needValues,
  openOf,
  optionsOf,
  planOptions,
  outputOptions,
  pipelinesOf,
  settingsOf,
  workloadsOf,
  type LoadArguments,
  type PlanArguments,
  type OutputArguments,
  lastGiven,
} from './bench-options.ts';
import { runBench } from './bench-run.ts';
import { exitWith, UsageError } from './exit-codes.ts';

interface BenchArguments extends LoadArguments, PlanArguments, OutputArguments {
  host: string;
  port: number;
  socket?: string;
  password?: string;
  user?: string;
  dbnum: number;
  cluster: boolean;
  repeats: number;
  steps?: string;
  command?: string[];
}

/** What redis-benchmark sends without -n. */
const DEFAULT_REQUESTS = 100_000;
/** Length of one step on the way to the knee, unless given. */
const STEP_SECONDS = 5;

export const builder = (yargs: Argv): Argv<BenchArguments> =>
  needValues(
    outputOptions(planOptions(loadOptions(yargs), 1))
      .positional('command', {
        type: 'string',
        array: true,
        describe: 'A command to send instead of tests; __rand_int__, {key}, {value} are replaced',
      })
      .option('host', { alias: 'h', type: 'string', default: '127.0.0.1', describe: 'Server' })
      .option('port', { alias: 'p', type: 'number', default: 6379, describe: 'Port' })
      .option('socket', { alias: 's', type: 'string', describe: 'Unix socket instead of host and port' })
      .option('password', { alias: 'a', type: 'string', describe: 'For AUTH' })
      .option('user', { type: 'string', describe: 'For AUTH, with --password' })
      .option('dbnum', { type: 'number', default: 0, describe: 'Database' })
      .option('cluster', {
        type: 'boolean',
        default: false,
        describe: 'Redis Cluster; needs --driver ioredis',
      })
      .option('steps', {
        type: 'string',
        describe: 'Open loop, rate by rate until the server no longer follows: from:to:step',
      })
      .example('$0 bench -t set,get -n 1000000 -r 1000000 -P 16', 'as redis-benchmark')
      .example(
        '$0 bench --op "95 GET {key zipfian}" --op "5 SET {key zipfian} {value}" --seconds 30',
        'a mix',
      )
      .example('$0 bench -t get --rate 20000 --seconds 30', 'latency at a fixed rate')
      .example('$0 bench -t get --steps 10000:100000:10000', 'up to the knee')
      .epilogue(LOAD_HELP),
  ) as unknown as Argv<BenchArguments>;

export const handler = (args: BenchArguments): Promise<void> => exitWith(() => runOne(lastGiven(args)));

async function runOne(args: BenchArguments): Promise<number> {
  const endless = args.requests === undefined && args.seconds === undefined;
  const timed = args.rate !== undefined || args.steps !== undefined;
  const settings = settingsOf({
    ...args,
    requests: endless && !timed ? DEFAULT_REQUESTS : args.requests,
    seconds: endless && timed ? STEP_SECONDS : args.seconds,
  });
  if (args.cluster && settings.driver !== 'ioredis') throw new UsageError('--cluster needs --driver ioredis');
  if (args.cluster && pipelinesOf(args).some((depth) => depth > 1))
    throw new UsageError('--cluster needs -P 1: several nodes answer in any order');
  if (!(Number.isSafeInteger(args.port) && args.port > 0 && args.port < 65_536))
    throw new UsageError('--port must be a number from 1 to 65535');
  if (args.rate !== undefined && args.steps !== undefined)
    throw new UsageError('--rate and --steps exclude each other');
  const words = args.command ?? [];
  const op =
    args.op ??
    (words.length > 0
      ? [words.map((word) => (/\s/.test(word) && !word.startsWith('{') ? `"${word}"` : word)).join(' ')]
      : undefined);
  if (words.length > 0 && args.tests !== undefined)
    throw new UsageError('a command and -t exclude each other');
  const target = foreignTarget({
    name: args.socket ?? `${args.host}:${args.port}`,
    address: {
      host: args.host,
      port: args.port,
      path: args.socket,
      password: args.password,
      user: args.user,
      database: args.dbnum,
      cluster: args.cluster,
    },
    allowFlush: args.allowFlush,
  });
  const workloads = workloadsOf({ ...args, op }, settings, 'all');
  const pipelines = pipelinesOf(args);
  const rates = args.steps === undefined ? [args.rate] : stepRates(args.steps);
  const rows = rates.flatMap((rate) =>
    rowsOf(workloads, pipelines, settings, openOf(args, rate), rates.length > 1),
  );
  return runBench(
    {
      tool: 'bench',
      title: `Bench of ${target.info.label}`,
      plan: { targets: [target], rows, baseline: '', repeats: args.repeats, settings, drainSeconds: 0 },
      options: optionsOf(settings, { repeats: args.repeats }),
      notes: [],
    },
    args,
  );
}
