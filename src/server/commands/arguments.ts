/** Arguments in the forms that several families of commands share, with Redis's error texts. */
import { parseExtended } from '../../bytes/extended.ts';
import { parseDouble, parseInt64, sliceInteger } from '../../bytes/number.ts';
import type { Slice } from '../../bytes/slice.ts';
import type { Database } from '../../store/api.ts';
import { CommandError } from '../command.ts';
import type { Context } from '../context.ts';
import {
  DB_OUT_OF_RANGE,
  INVALID_CURSOR,
  NOT_INTEGER,
  NOT_POSITIVE,
  TIMEOUT_NEGATIVE,
  TIMEOUT_NOT_FLOAT,
  syntaxError,
} from '../errors.ts';

const INT32_MAX = 2 ** 31 - 1;
const NOT_INT32 = `ERR value is out of range, value must between ${-INT32_MAX - 1} and ${INT32_MAX}`;
/** Milliseconds that a signed 64-bit integer can hold. */
const TIMEOUT_MS_LIMIT = 2 ** 63;
const CURSOR_LIMIT = 1n << 64n;

/**
 * args[i] as a 64-bit integer, for positions and counts: beyond the safe range it is brought back to
 * its edge, which lies beyond every collection too.
 */
export function clampedInteger(context: Context, i: number, message = NOT_INTEGER): number {
  const slice = context.args[i];
  const value = sliceInteger(slice);
  if (!Number.isNaN(value)) return value;
  const long = parseInt64(slice);
  if (long === undefined) throw new CommandError(message);
  return long > 0n ? Number.MAX_SAFE_INTEGER : -Number.MAX_SAFE_INTEGER;
}

/** args[i] as an integer of at least `least`; any other gives the error `message`. */
export function integerFrom(context: Context, i: number, least: number, message: string): number {
  const value = clampedInteger(context, i, message);
  if (value < least) throw new CommandError(message);
  return value;
}

/** args[i] as a count that is not negative. */
export function positiveCount(context: Context, i: number): number {
  return integerFrom(context, i, 0, NOT_POSITIVE);
}

/** args[i] as the number of a database. */
export function databaseArgument(context: Context, i: number): Database {
  const index = clampedInteger(context, i);
  if (index > INT32_MAX || index < -INT32_MAX - 1) throw new CommandError(NOT_INT32);
  if (index < 0 || index >= context.store.databaseCount) throw new CommandError(DB_OUT_OF_RANGE);
  return context.store.database(index);
}

/** args[i], seconds with a fraction, in whole milliseconds rounded up; 0 waits for ever. */
export function blockingTimeout(context: Context, i: number): number {
  let seconds = parseDouble(context.args[i]);
  if (Number.isNaN(seconds)) {
    // Redis reads a long double here: what is too large or too small for a double is a number too.
    const extended = parseExtended(context.args[i]);
    if (extended === undefined) throw new CommandError(TIMEOUT_NOT_FLOAT);
    seconds = extended.exponent > 0 ? Infinity : Number.MIN_VALUE;
    if (extended.mantissa < 0n) seconds = -seconds;
  }
  const timeoutMs = Math.ceil(seconds * 1000);
  if (timeoutMs < 0 || timeoutMs >= TIMEOUT_MS_LIMIT) throw new CommandError(TIMEOUT_NEGATIVE);
  return timeoutMs;
}

/** args[i] as a scan cursor: any unsigned 64-bit number is one, those the server never gave lead to the end. */
export function scanCursor(context: Context, i: number): number {
  const text = context.args[i].latin1();
  if (text === '') return 0;
  const parts = /^([+-]?)(\d{1,20})$/.exec(text);
  if (parts === null || BigInt(parts[2]) >= CURSOR_LIMIT) throw new CommandError(INVALID_CURSOR);
  if (parts[1] === '-' && Number(parts[2]) !== 0) return Number.MAX_SAFE_INTEGER;
  return Math.min(Number(parts[2]), Number.MAX_SAFE_INTEGER);
}

/** The slices of args from `first` on, `count` of them. */
export function keyArguments(context: Context, first: number, count: number): Slice[] {
  return context.args.slice(first, first + count);
}

/** An optional `COUNT count` at the end of a command; 1 when it is not given. */
export function countOption(context: Context, at: number): number {
  const { argc } = context;
  if (at === argc) return 1;
  if (!context.is(at, 'count') || at + 1 === argc) throw syntaxError();
  const count = integerFrom(context, at + 1, 1, 'ERR count should be greater than 0');
  if (argc > at + 2) throw syntaxError();
  return count;
}
