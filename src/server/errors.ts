/** Redis's own error texts, code word first, for `CommandError` and `Reply.error`. */
import { CommandError } from './command.ts';

export const SYNTAX = 'ERR syntax error';
export const NOT_INTEGER = 'ERR value is not an integer or out of range';
export const NOT_FLOAT = 'ERR value is not a valid float';
export const NOT_POSITIVE = 'ERR value is out of range, must be positive';
export const OUT_OF_RANGE = 'ERR value is out of range';
export const INDEX_OUT_OF_RANGE = 'ERR index out of range';
export const NO_SUCH_KEY = 'ERR no such key';
export const SAME_OBJECT = 'ERR source and destination objects are the same';
export const WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value';
export const DAMAGED = 'DAMAGED';
/** The reply to a command that needs a value whose rows have been damaged. */
export const damagedValue = (row: string): string =>
  `${DAMAGED} the value of this key is damaged on disk (row ${row}); DEL removes it`;
export const OUT_OF_MEMORY = "OOM command not allowed when used memory > 'maxmemory'.";
export const DUMP_FAILED =
  "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
  'Commands that may modify the data set are disabled, because this instance is configured to report ' +
  'errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). ' +
  'Please check the Redis logs for details about the RDB error.';
export const TIMEOUT_NOT_FLOAT = 'ERR timeout is not a float or out of range';
export const TIMEOUT_NEGATIVE = 'ERR timeout is negative';
export const INCREMENT_OVERFLOW = 'ERR increment or decrement would overflow';
export const STRING_TOO_LONG = 'ERR string exceeds maximum allowed size (proto-max-bulk-len)';
export const DB_OUT_OF_RANGE = 'ERR DB index is out of range';
export const INVALID_CURSOR = 'ERR invalid cursor';
export const NO_AUTH = 'NOAUTH Authentication required.';
export const NAN_OR_INFINITY = 'ERR increment would produce NaN or Infinity';
export const NUMKEYS_NOT_POSITIVE = 'ERR numkeys should be greater than 0';

export function wrongArgumentCount(command: string): string {
  return `ERR wrong number of arguments for '${command}' command`;
}

export function invalidExpireTime(command: string): string {
  return `ERR invalid expire time in '${command}' command`;
}

export function syntaxError(): CommandError {
  return new CommandError(SYNTAX);
}

/** What is said of an error that nobody foresaw. */
export function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
