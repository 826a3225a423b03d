/** The server's own log. */
import pc from 'picocolors';
import pino from 'pino';
import type { Config } from '../server/config.ts';
import type { Logger } from '../server/server.ts';

const LEVELS: Record<string, string> = { debug: 'debug', verbose: 'debug', notice: 'info', warning: 'warn' };

/** JSON lines to the log file or standard output; readable lines on a terminal. */
export function openLogger(config: Config): Logger {
  const file = config.text('logfile');
  const terminal = file === '' && process.stdout.isTTY;
  const destination = terminal
    ? { write: (line: string) => void process.stdout.write(readable(line)) }
    : pino.destination({ dest: file === '' ? 1 : file, sync: true, mkdir: true });
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
