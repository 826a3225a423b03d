/** `ardent engines`: the engines themselves, without a server in front. */
import { tmpdir } from 'node:os';
import type { Argv } from 'yargs';
import { runEngines } from '../bench/engines/run-engines.ts';
import { engineWorkloads, ENGINE_WORKLOADS } from '../bench/engines/workloads.ts';
import { ENGINE_NAMES, type EngineName } from '../engines/engine.ts';
import { resolveOptions } from '../engines/options.ts';
import { parseSizes } from '../workloads/values.ts';
import { needValues, outputOptions, type OutputArguments, lastGiven } from './bench-options.ts';
import { runTool } from './bench-run.ts';
import { exitWith, UsageError } from './exit-codes.ts';
import { namedValues } from './option-values.ts';

interface EnginesArguments extends OutputArguments {
  engines: string;
  benchmarks: string;
  keys: number;
  dataSize: string;
  compressibility: number;
  rows?: number;
  seconds: number;
  batch: number;
  depth: number;
  requesters: number;
  sync: boolean;
  repeats: number;
  baseline?: string;
  engineOption?: string[];
  seed?: number;
}

const ALL = ENGINE_WORKLOADS.map(({ id }) => id).join(',');

export const builder = (yargs: Argv): Argv<EnginesArguments> =>
  needValues(
    outputOptions(yargs)
      .option('engines', { type: 'string', default: ENGINE_NAMES.join(','), describe: 'Engines by comma' })
      .option('benchmarks', {
        alias: 'b',
        type: 'string',
        default: ALL,
        describe: 'Workloads by comma, in this order',
      })
      .option('keys', { type: 'number', default: 1_000_000, describe: 'Keys of the key space' })
      .option('data-size', {
        alias: 'd',
        type: 'string',
        default: '100',
        describe: 'Bytes of a value: 100, 64-1024 or 64:70,1024:30',
      })
      .option('compressibility', {
        type: 'number',
        default: 0.5,
        describe: 'Share of a value that a compressor can remove',
      })
      .option('rows', { type: 'number', describe: 'Rows a run at most' })
      .option('seconds', { type: 'number', default: 5, describe: 'Seconds a run at most' })
      .option('batch', { type: 'number', default: 100, describe: 'Rows in one call' })
      .option('depth', { type: 'number', default: 2, describe: 'Calls that a requester keeps under way' })
      .option('requesters', { type: 'number', default: 1, describe: 'Threads that ask' })
      .option('sync', {
        type: 'boolean',
        default: false,
        describe: 'Every write reaches the disk before it is acknowledged',
      })
      .option('repeats', { type: 'number', default: 3, describe: 'Fresh processes for each engine' })
      .option('baseline', { type: 'string', describe: 'Engine that ratios are taken against' })
      .option('engine-option', {
        type: 'string',
        array: true,
        describe: 'e.g. leveldb.block-cache-size=256mb',
      })
      .option('seed', { type: 'number', describe: 'Of all random choices (default: drawn, and told)' })
      .example('$0 engines', 'every workload on every engine')
      .example('$0 engines -b fillrandom,readrandom --keys 5000000 -d 1024', 'more data than the caches hold')
      .epilogue(ENGINE_WORKLOADS.map(({ id, description }) => `${id.padEnd(17)} ${description}`).join('\n')),
  ) as unknown as Argv<EnginesArguments>;

export const handler = (args: EnginesArguments): Promise<void> => exitWith(() => run(lastGiven(args)));

async function run(args: EnginesArguments): Promise<number> {
  const names = args.engines.split(',');
  const unknown = names.find((name) => !(ENGINE_NAMES as readonly string[]).includes(name));
  if (unknown !== undefined)
    throw new UsageError(`--engines: unknown engine "${unknown}"; ${ENGINE_NAMES.join(', ')}`);
  const engines = names as EngineName[];
  for (const name of ['keys', 'rows', 'batch', 'depth', 'requesters', 'repeats'] as const) {
    const value = args[name];
    if (value !== undefined && !(Number.isSafeInteger(value) && value > 0)) {
      throw new UsageError(`--${name} must be a whole number above 0`);
    }
  }
  if (!(args.seconds > 0)) throw new UsageError('--seconds must be above 0');
  if (args.baseline !== undefined && !names.includes(args.baseline))
    throw new UsageError(`--baseline ${args.baseline}: not among the engines`);
  parseSizes(args.dataSize);
  const engineOptions = namedValues('engine-option', args.engineOption);
  for (const engine of engines) {
    const own = Object.fromEntries(
      Object.entries(engineOptions).filter(([name]) => name.startsWith(`${engine}.`)),
    );
    try {
      resolveOptions(engine, own);
    } catch (error) {
      throw new UsageError((error as Error).message);
    }
  }
  const workloads = engineWorkloads(args.benchmarks.split(','));
  return runTool(
    {
      tool: 'engines',
      title: 'Engines without a server',
      sessions: engines.length * args.repeats,
      rows: workloads.length,
    },
    args,
    (control) =>
      runEngines(
        {
          engines,
          workloads,
          settings: {
            keys: args.keys,
            valueSizes: args.dataSize,
            compressibility: args.compressibility,
            batch: args.batch,
            depth: args.depth,
            requesters: args.requesters,
            sync: args.sync,
            rows: args.rows ?? null,
            seconds: args.seconds,
            seed: args.seed ?? Math.floor(Math.random() * 0x7fffffff),
          },
          engineOptions,
          repeats: args.repeats,
          baseline: args.baseline ?? '',
          dataRoot: args.dataDir ?? tmpdir(),
          argv: process.argv.slice(2),
        },
        control,
      ),
  );
}
