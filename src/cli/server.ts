/** `ardent server`: its command line, in the foreground or the background. */
import { spawn } from 'node:child_process';
import type { Argv } from 'yargs';
import { formatSize } from '../bytes/size.ts';
import { EngineError } from '../engines/engine.ts';
import { ConfigFileError } from '../server/config-file.ts';
import { ConfigError } from '../server/config.ts';
import { ListenError } from '../server/network.ts';
import { parameterGroups, showParameter, type Parameter } from '../server/parameters.ts';
import { DataDirectoryError } from '../store/data-directory.ts';
import { EXIT, UsageError } from './exit-codes.ts';
import { RunningServer } from './running-server.ts';
import { parseArguments } from './server-arguments.ts';

/** Marks the process that runs in the background, so that it does not start another. */
const DETACHED = 'ARDENT_DETACHED';

/** Starts the server in the background and waits until it serves; resolves to the exit code. */
function runDetached(words: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1], 'server', ...words], {
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: { ...process.env, [DETACHED]: '1' },
  });
  // Only what keeps it from starting is of interest; our own standard error must not stay open in it.
  child.stderr?.on('data', (chunk: Buffer) => process.stderr.write(chunk));
  return new Promise((resolve) => {
    child.once('message', () => {
      child.disconnect();
      child.stderr?.destroy();
      child.unref();
      resolve(EXIT.ok);
    });
    child.once('exit', (code) => resolve(code ?? EXIT.failed));
  });
}

function exitCodeOf(error: unknown): number | undefined {
  if (error instanceof UsageError || error instanceof ConfigError || error instanceof ConfigFileError)
    return EXIT.usage;
  if (error instanceof ListenError) return EXIT.unreachable;
  if (error instanceof EngineError || error instanceof DataDirectoryError) return EXIT.data;
  const code = (error as { code?: unknown }).code;
  return typeof code === 'string' ? EXIT.data : undefined;
}

async function run(words: readonly string[]): Promise<void> {
  try {
    const config = parseArguments(words);
    if (config.flag('daemonize') && process.env[DETACHED] === undefined) {
      process.exit(await runDetached(words));
    }
    await new RunningServer(config).start();
  } catch (error) {
    const code = exitCodeOf(error);
    const text = error instanceof Error ? (code === undefined ? error.stack : error.message) : String(error);
    process.stderr.write(`ardent: ${text}\n`);
    process.exit(code ?? EXIT.failed);
  }
}

const EPILOGUE = `Every parameter can also stand in the configuration file (redis.conf's syntax), be read with
CONFIG GET and, most of them, be changed with CONFIG SET. Redis's other parameters are accepted and
change nothing.

Exit codes: 0 ended in order; 1 wrong parameter; 2 cannot listen; 3 data cannot be opened or is
damaged; 4 an error while serving. A second SIGTERM or SIGINT ends at once.`;

const describeDefault = (parameter: Parameter): string => {
  const value = showParameter(parameter, parameter.default);
  if (value === '') return '""';
  return parameter.kind === 'number' && parameter.unit === 'memory' && parameter.default > 0
    ? formatSize(parameter.default)
    : value;
};

export function builder(yargs: Argv): Argv {
  yargs.positional('config-file', { type: 'string', describe: 'Configuration file in redis.conf’s syntax' });
  for (const [group, members] of Object.entries(parameterGroups)) {
    for (const parameter of members) {
      const { name, help } = parameter;
      yargs.option(name, {
        type: 'string',
        group,
        describe: help,
        defaultDescription: describeDefault(parameter),
      });
    }
  }
  return yargs
    .strict(false)
    .parserConfiguration({ 'dot-notation': false, 'camel-case-expansion': false, 'parse-numbers': false })
    .example('ardent server', 'LMDB in ./ardent-data, port 6379')
    .example('ardent server --engine rocksdb --dir /var/lib/ardent --port 7000', 'another engine')
    .example('ardent server ardent.conf --loglevel verbose', 'a file, and a parameter that overrides it')
    .example('ardent server --appendfsync always', 'no acknowledged write is lost when power fails')
    .epilogue(EPILOGUE);
}

/** yargs is asked for `--help` only: the words are read by redis-server's rules. */
export function handler(): Promise<void> {
  return run(process.argv.slice(process.argv.indexOf('server') + 1));
}
