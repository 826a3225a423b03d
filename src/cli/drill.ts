/** `ardent drill`: does a backup come back? And what if something goes wrong? */
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import pc from 'picocolors';
import type { Argv } from 'yargs';
import { DRILL_TITLES, DRILLS, runDrills, type DrillName, type DrillResult } from '../bench/drill/drill.ts';
import { describeEnvironment } from '../bench/environment.ts';
import { ResultsDirectory } from '../bench/results-directory.ts';
import { findExecutable } from '../bench/target.ts';
import { ENGINE_NAMES } from '../engines/engine.ts';
import { formatDuration } from '../report/format.ts';
import { renderText } from '../report/table.ts';
import { lastGiven } from './bench-options.ts';
import { EXIT, exitWith, UsageError } from './exit-codes.ts';
import { onInterrupt } from './interrupt.ts';
import { knownWords, namedValues } from './option-values.ts';

interface DrillArguments {
  engines: string;
  drills: string;
  keys: number;
  rounds: number;
  seed?: number;
  redisServer: string;
  serverOption?: string[];
  resultsDir: string;
  dataDir?: string;
  json: boolean;
  quiet: boolean;
}

export const builder = (yargs: Argv): Argv<DrillArguments> =>
  yargs
    .option('engines', { type: 'string', default: ENGINE_NAMES.join(','), describe: 'Engines by comma' })
    .option('drills', { type: 'string', default: DRILLS.join(','), describe: 'Which, by comma' })
    .option('keys', { type: 'number', default: 20_000, describe: 'Keys of known content, of every type' })
    .option('rounds', { type: 'number', default: 10, describe: 'Kills, and damaged files of each format' })
    .option('seed', { type: 'number', describe: 'Of content and accidents (default: drawn, and told)' })
    .option('redis-server', {
      type: 'string',
      default: 'redis-server',
      describe: 'For the round trip: a name on the PATH or a path',
    })
    .option('server-option', { type: 'string', array: true, describe: 'For ardent server: name=value' })
    .option('results-dir', {
      type: 'string',
      default: 'bench-results',
      describe: 'Root below which drill/<timestamp> is made',
    })
    .option('data-dir', {
      type: 'string',
      describe: 'Where servers keep their data (default: the system’s temporary directory)',
    })
    .option('json', {
      type: 'boolean',
      default: false,
      describe: 'Print a line of JSON for each drill instead of the table',
    })
    .option('quiet', { alias: 'q', type: 'boolean', default: false, describe: 'No progress' })
    .example('$0 drill', 'every drill on every engine')
    .example('$0 drill --engines lmdb --drills kill --rounds 200', 'two hundred kills while saving')
    .example('$0 drill --server-option tier-memory=16mb', 'with more data than memory')
    .epilogue(
      `${DRILLS.map((name) => `${name.padEnd(11)} ${DRILL_TITLES[name]}`).join('\n')}\n\nExit code ${EXIT.data} when anything was lost, different or wrongly accepted.`,
    ) as unknown as Argv<DrillArguments>;

export const handler = (args: DrillArguments): Promise<void> => exitWith(() => run(lastGiven(args)));

const MARKS = { ok: pc.green('ok'), failed: pc.red('FAILED'), 'not run': pc.yellow('not run') } as const;

function table(results: readonly DrillResult[]): string {
  const ms = (value: number | null | undefined): string => (value == null ? '–' : `${value.toFixed(1)} ms`);
  return renderText({
    title: 'Backup drills',
    header: ['drill', 'engine', '', 'took', 'p99 before', 'during', 'after'],
    rows: results.map(({ engine, drill, state, seconds, p99Ms }) => [
      DRILL_TITLES[drill],
      engine,
      state === 'failed' ? 'FAILED' : state,
      formatDuration(seconds),
      ms(p99Ms?.before),
      ms(p99Ms?.during),
      ms(p99Ms?.after),
    ]),
    legend: results.some(({ p99Ms }) => p99Ms !== null)
      ? ['p99 of reads at a steady rate, measured from when each was due; writes go on while a save runs']
      : [],
  });
}

async function run(args: DrillArguments): Promise<number> {
  const engines = knownWords(args.engines, 'engines', ENGINE_NAMES);
  const drills = knownWords<DrillName>(args.drills, 'drills', DRILLS);
  for (const name of ['keys', 'rounds'] as const) {
    if (!Number.isSafeInteger(args[name]) || args[name] < 1) {
      throw new UsageError(`--${name} must be a whole number above 0`);
    }
  }
  const settings = namedValues('server-option', args.serverOption);
  const seed = args.seed ?? Math.floor(Math.random() * 0x7fffffff);
  const directory = new ResultsDirectory(args.resultsDir, 'drill');
  const environment = describeEnvironment(args.dataDir ?? tmpdir());
  const note = (text: string): void => {
    if (!args.quiet && !args.json) process.stderr.write(`${text}\n`);
  };
  const interrupt = onInterrupt(
    'stopping after this drill',
    (text) => void process.stderr.write(`${text}\n`),
  );
  const results = await runDrills(
    {
      ...{ engines, drills, keys: args.keys, rounds: args.rounds, seed, settings },
      redis: findExecutable(args.redisServer),
      // Servers have a working directory of their own.
      dataRoot: resolve(args.dataDir ?? tmpdir()),
    },
    {
      begin: (engine, drill) => note(`${engine}: ${DRILL_TITLES[drill]} …`),
      finished(result) {
        note(`${result.engine}: ${DRILL_TITLES[result.drill]}: ${MARKS[result.state]} ${result.detail}`);
        if (args.json) process.stdout.write(`${JSON.stringify({ type: 'drill', ...result })}\n`);
      },
      stopping: () => interrupt.reason !== null,
    },
  );
  interrupt.release();
  const file = directory.write(
    'results.json',
    JSON.stringify({
      schema: 'ardent-drill/1',
      seed,
      keys: args.keys,
      rounds: args.rounds,
      settings,
      environment,
      results,
    }),
  );
  const failed = results.filter(({ state }) => state === 'failed');
  if (!args.json) {
    const lines = [
      table(results),
      ...results
        .filter(({ state }) => state !== 'ok')
        .map(({ engine, drill, detail }) => `✗ ${engine}, ${DRILL_TITLES[drill]}: ${detail}`),
      '',
      `seed ${seed}`,
      file,
    ];
    process.stdout.write(`${lines.join('\n')}\n`);
  }
  if (failed.length > 0) return EXIT.data;
  return interrupt.reason !== null ? EXIT.interrupted : EXIT.ok;
}
