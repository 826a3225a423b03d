/** `ardent matrix`: engines and servers against Redis, workload by workload. */
import type { Argv } from 'yargs';
import { rowsOf } from '../bench/plan.ts';
import { ardentTarget, findExecutable, foreignTarget, redisTarget, type Target } from '../bench/target.ts';
import { smallCacheOptions } from '../bench/engine-cache.ts';
import { ENGINE_NAMES, type EngineName } from '../engines/engine.ts';
import { averageSize, parseSizes } from '../workloads/values.ts';
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
import { namedValues } from './option-values.ts';

interface MatrixArguments extends LoadArguments, PlanArguments, OutputArguments {
  engines: string;
  modes: string;
  redis: boolean;
  redisServer: string;
  target?: string[];
  baseline?: string;
  appendfsync: string;
  drain?: number;
  quick: boolean;
  serverOption?: string[];
}

const DEFAULT_MODES = 'served,engine-bound';
/** `key:` and twelve digits. */
const KEY_BYTES = 16;
/** About three minutes on two processors, eight targets and fifteen rows. */
const QUICK = {
  ...{ seconds: 0.25, warmup: 0.1, requests: 60_000, keyspace: 100_000, drain: 2 },
  ...{ repeats: 5, asideRepeats: 2 },
};
/** About fifty minutes. */
const FULL = {
  seconds: 5,
  warmup: 1,
  requests: 1_000_000,
  keyspace: 1_000_000,
  repeats: 5,
  asideRepeats: 5,
  drain: 60,
};

function parseTarget(spec: string, allowFlush: boolean): Target {
  const match = /^([\w.-]+)=(?:(\/.+)|(.+):(\d+))$/.exec(spec);
  if (match === null)
    throw new UsageError(`--target ${spec}: expected name=host:port or name=/path/of/socket`);
  const [, name, path, host, port] = match;
  return foreignTarget({
    name,
    address: path === undefined ? { host, port: Number(port) } : { host: '', port: 0, path },
    allowFlush,
  });
}

/** @param dataBytes of keys and values that will be loaded */
function targetsOf(args: MatrixArguments, dataBytes: number): Target[] {
  const below = args.dataDir;
  const engines = args.engines === 'none' ? [] : args.engines.split(',');
  const unknown = engines.find((engine) => !(ENGINE_NAMES as readonly string[]).includes(engine));
  if (unknown !== undefined)
    throw new UsageError(`--engines: unknown engine "${unknown}"; ${ENGINE_NAMES.join(', ')} or none`);
  const modes = args.modes.split(',');
  if (!modes.every((mode) => mode === 'served' || mode === 'engine-bound')) {
    throw new UsageError('--modes: served, engine-bound or both by comma');
  }
  const settings = namedValues('server-option', args.serverOption);
  const durability = args.appendfsync as 'no' | 'everysec' | 'always';
  const targets = modes.flatMap((mode) =>
    engines.map((engine) =>
      ardentTarget({
        engine,
        mode: mode as 'served' | 'engine-bound',
        durability,
        settings: {
          ...(mode === 'engine-bound' ? smallCacheOptions(engine as EngineName, dataBytes) : {}),
          ...settings,
        },
        below,
      }),
    ),
  );
  if (args.redis) {
    const executable = findExecutable(args.redisServer);
    if (executable === null)
      throw new UsageError(
        `${args.redisServer} was not found; --redis-server names it, --no-redis leaves it out`,
      );
    const base = durability === 'no' ? 'none' : durability;
    targets.push(redisTarget({ executable, durability: base, reference: false, below }));
    if (base !== 'none')
      targets.push(redisTarget({ executable, durability: 'none', reference: true, below }));
  }
  targets.push(...(args.target ?? []).map((spec) => parseTarget(spec, args.allowFlush)));
  const ids = targets.map(({ info }) => info.id);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) throw new UsageError(`two targets are named ${twice}`);
  if (targets.length === 0) throw new UsageError('no target is left');
  return targets;
}

export const builder = (yargs: Argv): Argv<MatrixArguments> =>
  needValues(
    outputOptions(planOptions(loadOptions(yargs)))
      .option('quick', {
        type: 'boolean',
        default: false,
        describe: 'About three minutes: short runs, a small key space',
      })
      .option('engines', {
        type: 'string',
        default: ENGINE_NAMES.join(','),
        describe: 'Engines by comma, or none',
      })
      .option('modes', {
        type: 'string',
        default: DEFAULT_MODES,
        describe:
          'served (all data in memory), engine-bound (none, every access goes to the engine), or both',
      })
      .option('redis', { type: 'boolean', default: true, describe: 'Measure Redis too; --no-redis' })
      .option('redis-server', {
        type: 'string',
        default: 'redis-server',
        describe: 'Redis: a name on the PATH or a path',
      })
      .option('target', {
        type: 'string',
        array: true,
        describe: 'A server that runs already: name=host:port',
      })
      .option('baseline', {
        type: 'string',
        describe: 'Column that ratios are taken against (default: Redis)',
      })
      .option('appendfsync', {
        choices: ['no', 'everysec', 'always'],
        default: 'everysec',
        describe: 'Durability of ours and of Redis',
      })
      .option('server-option', { type: 'string', array: true, describe: 'For ardent server: name=value' })
      .option('drain', {
        type: 'number',
        describe: 'Seconds that a server may take to write back after the load',
      })
      .example('$0 matrix --quick', 'about three minutes')
      .example('$0 matrix -t set,get -P 1,16 -d 100 -r 1000000', 'two rows, with and without pipelining')
      .example('$0 matrix --engines none --target valkey=127.0.0.1:6380', 'another server against Redis')
      .epilogue(LOAD_HELP),
  ) as unknown as Argv<MatrixArguments>;

export const handler = (args: MatrixArguments): Promise<void> => exitWith(() => runMatrix(lastGiven(args)));

async function runMatrix(args: MatrixArguments): Promise<number> {
  const preset = args.quick ? QUICK : FULL;
  const given = process.argv;
  const keyspaceGiven = given.some((word) => /^(-r|--keyspace)/.test(word));
  const sizeGiven = given.some((word) => /^(-d|--data-size)/.test(word));
  const settings = settingsOf({
    ...args,
    seconds: args.seconds ?? preset.seconds,
    requests: args.requests ?? preset.requests,
    warmup: args.warmup ?? preset.warmup,
    keyspace: keyspaceGiven ? args.keyspace : preset.keyspace,
    dataSize: sizeGiven ? args.dataSize : '100',
  });
  const targets = targetsOf(
    args,
    settings.keyspace * (KEY_BYTES + averageSize(parseSizes(settings.valueSizes))),
  );
  const baseline =
    args.baseline ?? targets.find(({ info }) => info.kind === 'redis' && !info.reference)?.info.id ?? '';
  if (baseline !== '' && !targets.some(({ info }) => info.id === baseline)) {
    throw new UsageError(
      `--baseline ${baseline}: no such column; ${targets.map(({ info }) => info.id).join(', ')}`,
    );
  }
  const rows = rowsOf(workloadsOf(args, settings, 'classic'), pipelinesOf(args), settings, openOf(args));
  const repeats = args.repeats ?? preset.repeats;
  return runBench(
    {
      tool: 'matrix',
      title: 'Engines against Redis',
      plan: {
        ...{ targets, rows, baseline, repeats, settings },
        asideRepeats: args.repeats ?? preset.asideRepeats,
        drainSeconds: args.drain ?? preset.drain,
      },
      options: optionsOf(settings, { quick: args.quick, appendfsync: args.appendfsync, repeats }),
      notes: [],
    },
    args,
  );
}
