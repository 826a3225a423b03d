/** The server's own log. */
import { openSync } from 'node:fs';
import path from 'node:path';
import pc from 'picocolors';
import pino from 'pino';
import type { Config } from '../server/config.ts';
import type { Logger } from '../server/server.ts';
import { makeDirectories } from '../store/disk.ts';
import { UsageError } from './exit-codes.ts';

const LEVELS: Record<string, string> = { debug: 'debug', verbose: 'debug', notice: 'info', warning: 'warn' };

/** Opens the log file for appending, with the directories above it. Throws UsageError when that cannot be. */
function openLogFile(file: string): number {
  try {
    makeDirectories(path.dirname(path.resolve(file)), 0o750);
    return openSync(file, 'a', 0o640);
  } catch (error) {
    throw new UsageError(
      `the log file ${file} cannot be opened for writing: ${(error as Error).message}; ` +
        'name another with --logfile, or none to log to standard output',
    );
  }
}

/** JSON lines to the log file or standard output; readable lines on a terminal. */
export function openLogger(config: Config): Logger {
  const file = config.text('logfile');
  const terminal = file === '' && process.stdout.isTTY;
  const destination = terminal
    ? { write: (line: string) => void process.stdout.write(readable(line)) }
    : pino.destination({ dest: file === '' ? 1 : openLogFile(file), sync: true });
  const logger = pino(
    {
      base: { pid: process.pid },
      level: LEVELS[config.text('loglevel')],
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
  config.onChange('loglevel', () => {
    logger.level = LEVELS[config.text('loglevel')];
  });
  return {
    debug: (message) => logger.debug(message),
    info: (message) => logger.info(message),
    warn: (message) => logger.warn(message),
    error: (message) => logger.error(message),
  };
}

function readable(line: string): string {
  const { time, level, msg } = JSON.parse(line) as { time: string; level: string; msg: string };
  const color = level === 'error' ? pc.red : level === 'warn' ? pc.yellow : pc.dim;
  return `${pc.dim(time.slice(11, 23))} ${color(level.padEnd(5))} ${msg}\n`;
}
