/** Times of expiry among the arguments, in seconds or milliseconds, relative or absolute. */
import { INT64_MAX, INT64_MIN, sliceInteger } from '../../bytes/number.ts';
import { CommandError } from '../command.ts';
import type { Context } from '../context.ts';
import { invalidExpireTime } from '../errors.ts';

export interface DeadlineForm {
  /** The argument is in seconds, else in milliseconds. */
  seconds: boolean;
  /** The argument counts from now, else from 1970. */
  relative: boolean;
  /** Zero and less are errors. */
  positive: boolean;
}

/** Numbers up to this one, in seconds, give a deadline within the safe integers. */
const FAST_MAX = 4_000_000_000_000;

/**
 * args[i] as a deadline in Unix ms. What is beyond the safe integers, as Redis allows up to 64 bits,
 * is brought back to their edge, some 285,000 years away.
 */
export function deadlineArgument(context: Context, i: number, form: DeadlineForm): number {
  const value = sliceInteger(context.args[i]);
  const base = form.relative ? context.now : 0;
  if (Math.abs(value) <= FAST_MAX && (value > 0 || !form.positive)) {
    return (form.seconds ? value * 1000 : value) + base;
  }
  const long = context.bigInteger(i) * (form.seconds ? 1000n : 1n);
  const deadline = long + BigInt(base);
  if ((form.positive && long <= 0n) || deadline > INT64_MAX || long < INT64_MIN) {
    throw new CommandError(invalidExpireTime(context.entry!.fullName));
  }
  const edge = Number.MAX_SAFE_INTEGER;
  return Math.min(Math.max(Number(deadline), -edge), edge);
}
