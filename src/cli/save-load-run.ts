/** From a plan to files, a table and an exit code: common to `ardent rdb-save-load` and `ardent rdb-perf`. */
import { appendFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Argv } from 'yargs';
import { ResultsDirectory } from '../bench/results-directory.ts';
import { runSaveLoad, type SaveLoadPlan, type SaveLoadWatcher } from '../bench/save-load/run.ts';
import {
  ardentServer,
  commandServer,
  foreignServer,
  redisServer,
  type SaveLoadServer,
} from '../bench/save-load/server.ts';
import { findExecutable } from '../bench/target.ts';
import { ENGINE_NAMES } from '../engines/engine.ts';
import { renderSaveLoadHtml } from '../report/html/save-load-page.ts';
import {
  LiveSaveLoadProgress,
  PlainSaveLoadProgress,
  QuietSaveLoadProgress,
  type SaveLoadProgress,
} from '../report/save-load-progress.ts';
import { saveLoadCsv, saveLoadMatrixJson, saveLoadTable } from '../report/save-load.ts';
import { renderText } from '../report/table.ts';
import type { SaveLoadRecord, SaveLoadResults } from '../results/save-load-results.ts';
import { EXIT, UsageError } from './exit-codes.ts';
import { onInterrupt } from './interrupt.ts';
import { namedValues, wordsOf } from './option-values.ts';

export interface SaveLoadArguments {
  targets: string[];
  redisServer: string;
  allowFlush: boolean;
  baseline?: string;
  image: boolean;
  serverOption?: string[];
  repeats: number;
  rdbcompression: string;
  rdbchecksum: string;
  timeout: number;
  resultsDir: string;
  dataDir?: string;
  json: boolean;
  csv: boolean;
  quiet: boolean;
  tui: boolean;
  verbose: boolean;
}

export function saveLoadOptions<T>(yargs: Argv<T>): Argv<T & SaveLoadArguments> {
  return yargs
    .option('targets', {
      type: 'string',
      array: true,
      default: [[...ENGINE_NAMES, 'redis'].join(',')],
      describe:
        'Servers by comma: engines of ours and redis; or name=command with {port} and {dir}; or name=host:port',
    })
    .option('image', {
      type: 'boolean',
      default: false,
      describe: 'Our engines a second time, with the image of the memory instead of an RDB file',
    })
    .option('redis-server', {
      type: 'string',
      default: 'redis-server',
      describe: 'Redis: a name on the PATH or a path',
    })
    .option('allow-flush', {
      type: 'boolean',
      default: false,
      describe: 'Servers given as name=host:port may be emptied, which they are',
    })
    .option('server-option', { type: 'string', array: true, describe: 'For ardent server: name=value' })
    .option('baseline', { type: 'string', describe: 'Server that ratios are taken against (default: redis)' })
    .option('repeats', { type: 'number', default: 1, describe: 'Lives of each data set on each server' })
    .option('rdbcompression', { choices: ['yes', 'no'], default: 'yes', describe: 'For every server' })
    .option('rdbchecksum', { choices: ['yes', 'no'], default: 'yes', describe: 'For every server' })
    .option('timeout', { type: 'number', default: 600, describe: 'Seconds that one load or save may take' })
    .option('results-dir', {
      type: 'string',
      default: 'bench-results',
      describe: 'Root below which <tool>/<timestamp> is made',
    })
    .option('data-dir', {
      type: 'string',
      describe: 'Where servers keep their data (default: the system’s temporary directory)',
    })
    .option('json', {
      type: 'boolean',
      default: false,
      describe: 'Print a line of JSON for every record instead of a table',
    })
    .option('csv', { type: 'boolean', default: false, describe: 'Print CSV instead of a table' })
    .option('quiet', { alias: 'q', type: 'boolean', default: false, describe: 'No progress' })
    .option('tui', { type: 'boolean', default: true, describe: 'Live picture on a terminal; --no-tui' })
    .option('verbose', {
      type: 'boolean',
      default: false,
      describe: 'Write every step to main.log beside the results',
    }) as unknown as Argv<T & SaveLoadArguments>;
}

/** The servers that were asked for, in order. */
export function serversOf(args: SaveLoadArguments): SaveLoadServer[] {
  const settings = namedValues('server-option', args.serverOption);
  const servers: SaveLoadServer[] = [];
  // A command may have commas of its own: only what has no = is split.
  const specs = args.targets.flatMap((given) => (given.includes('=') ? [given.trim()] : wordsOf(given)));
  for (const spec of specs) {
    const own = /^([\w.-]+)=(.+)$/s.exec(spec);
    if (own !== null) {
      const [, name, rest] = own;
      const place = /^(?:(\/\S+)|(\[[^\]]+\]|[^\s:/]+):(\d+))$/.exec(rest);
      if (place === null) {
        servers.push(commandServer(name, rest));
        continue;
      }
      if (!args.allowFlush) {
        throw new UsageError(`--targets ${spec}: this server would be emptied; --allow-flush allows it`);
      }
      const [, path, host, port] = place;
      servers.push(
        foreignServer(name, path === undefined ? { host, port: Number(port) } : { host: '', port: 0, path }),
      );
    } else if (spec === 'redis') {
      const executable = findExecutable(args.redisServer);
      if (executable === null) {
        throw new UsageError(
          `${args.redisServer} was not found; --redis-server names it, --targets leaves it out`,
        );
      }
      servers.push(redisServer(executable));
    } else if ((ENGINE_NAMES as readonly string[]).includes(spec)) {
      servers.push(ardentServer(spec, 'rdb', settings));
      if (args.image) servers.push(ardentServer(spec, 'image', settings));
    } else {
      throw new UsageError(
        `--targets ${spec}: ${ENGINE_NAMES.join(', ')}, redis, name=command or name=host:port`,
      );
    }
  }
  if (servers.length === 0) throw new UsageError('--targets names no server');
  const ids = servers.map(({ info }) => info.id);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) throw new UsageError(`two servers are named ${twice}`);
  return servers;
}

function baselineOf(args: SaveLoadArguments, servers: readonly SaveLoadServer[]): string {
  const ids = servers.map(({ info }) => info.id);
  if (args.baseline === undefined) return ids.includes('redis') ? 'redis' : '';
  if (!ids.includes(args.baseline))
    throw new UsageError(`--baseline ${args.baseline}: no such server; ${ids.join(', ')}`);
  return args.baseline;
}

/** Checks of what both tools share. */
export function checkNumbers(args: SaveLoadArguments): void {
  if (!Number.isSafeInteger(args.repeats) || args.repeats < 1) {
    throw new UsageError('--repeats must be a whole number above 0');
  }
  if (!(args.timeout > 0)) throw new UsageError('--timeout must be above 0');
}

/** Writes main.log beside what `watcher` shows. */
function recording(watcher: SaveLoadProgress, path: string): SaveLoadProgress {
  const write = (text: string): void => appendFileSync(path, `${new Date().toISOString()} ${text}\n`);
  return {
    life(position, of, server, dataSet) {
      write(`[${position}/${of}] ${dataSet} on ${server}`);
      watcher.life(position, of, server, dataSet);
    },
    phase(text, pid) {
      write(pid === null ? text : `${text} (process ${pid})`);
      watcher.phase(text, pid);
    },
    finished(record) {
      write(JSON.stringify(record));
      watcher.finished(record);
    },
    note(text) {
      write(text);
      watcher.note(text);
    },
    end() {
      write('the end');
      watcher.end();
    },
  };
}

function printing(watcher: SaveLoadProgress): SaveLoadProgress {
  return Object.assign(Object.create(watcher) as SaveLoadProgress, {
    finished(record: SaveLoadRecord) {
      watcher.finished(record);
      process.stdout.write(`${JSON.stringify({ type: 'record', ...record })}\n`);
    },
  } satisfies Partial<SaveLoadWatcher>);
}

export async function runTool(
  plan: Pick<SaveLoadPlan, 'tool' | 'title' | 'servers' | 'dataSets' | 'notes'> & {
    options: SaveLoadResults['options'];
  },
  args: SaveLoadArguments,
): Promise<number> {
  const directory = new ResultsDirectory(args.resultsDir, plan.tool);
  let watcher: SaveLoadProgress =
    args.quiet || args.json
      ? new QuietSaveLoadProgress()
      : args.tui && process.stderr.isTTY
        ? new LiveSaveLoadProgress(plan.title)
        : new PlainSaveLoadProgress();
  if (args.verbose) watcher = recording(watcher, join(directory.path, 'main.log'));
  if (args.json) watcher = printing(watcher);
  let stopServer: (() => Promise<void>) | null = null;
  const interrupt = onInterrupt(
    'stopping; what was measured is kept',
    (text) => watcher.note(text),
    () => void stopServer?.(),
  );
  let results: SaveLoadResults;
  try {
    results = await runSaveLoad(
      {
        ...plan,
        repeats: args.repeats,
        compression: args.rdbcompression === 'yes',
        checksum: args.rdbchecksum === 'yes',
        timeoutSeconds: args.timeout,
        baseline: baselineOf(args, plan.servers),
        dataRoot: args.dataDir ?? tmpdir(),
        logDirectory: join(directory.path, 'logs'),
        argv: process.argv.slice(2),
        options: {
          ...plan.options,
          repeats: args.repeats,
          rdbcompression: args.rdbcompression,
          rdbchecksum: args.rdbchecksum,
        },
      },
      {
        watcher,
        save: (partial) => void directory.write('results.json', JSON.stringify(partial)),
        stopReason: () => interrupt.reason,
        onServer: (stop) => (stopServer = stop),
      },
    );
  } finally {
    watcher.end();
    interrupt.release();
  }
  const files = [
    directory.write('results.json', JSON.stringify(results)),
    directory.write('matrix.json', saveLoadMatrixJson(results)),
    directory.write('results.csv', saveLoadCsv(results)),
    directory.write('report.html', renderSaveLoadHtml(results)),
  ];
  const failures = results.results.filter(({ error }) => error !== undefined);
  if (args.json) {
    process.stdout.write(
      `${JSON.stringify({ type: 'end', state: results.state, failures: failures.length, files })}\n`,
    );
  } else if (args.csv) {
    process.stdout.write(saveLoadCsv(results));
  } else {
    const lines = [
      renderText(saveLoadTable(results)),
      ...(results.notes.length > 0 ? ['', ...results.notes.map((note) => `• ${note}`)] : []),
      ...results.environment.warnings.map((warning) => `! ${warning}`),
      ...failures.map((record) => `✗ ${record.dataSet} on ${record.db}: ${record.error}`),
      '',
      ...files,
      ...(results.state === 'partial' ? [`PARTIAL: ${results.partialReason}`] : []),
    ];
    process.stdout.write(`${lines.join('\n')}\n`);
  }
  if (results.state === 'partial') return EXIT.interrupted;
  if (failures.length === 0) return EXIT.ok;
  const started = results.results.some(
    ({ loadStatus, saveStatus }) => loadStatus === 'ok' || saveStatus === 'ok',
  );
  return started ? EXIT.failed : EXIT.unreachable;
}
