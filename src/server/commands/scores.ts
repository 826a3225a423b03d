/** Scores in replies and in the log. */
import { formatDouble } from '../../bytes/number.ts';
import { Scratch } from '../../bytes/scratch.ts';
import { Slice } from '../../bytes/slice.ts';
import type { ZSet } from '../../store/api.ts';
import type { Context } from '../context.ts';
import { Encoding } from '../encoding.ts';
import type { Reply } from '../reply.ts';

const INT32_MAX = 0x7fffffff;

const member = new Slice();
const scratch = new Scratch();

/** A score as Redis replies with it: a double in RESP3, a bulk string in RESP2. Small integers make no text. */
export function replyScore(reply: Reply, score: number): void {
  if (score > 0 && score <= INT32_MAX && (score | 0) === score) {
    if (reply.protocol === 3) {
      reply.byte(44); // ,
      reply.decimal(score);
    } else {
      let digits = 1;
      for (let bound = 10; bound <= score; bound *= 10) digits++;
      reply.beginBulk(digits);
      reply.decimal(score);
    }
    reply.endBulk();
  } else if (score === 0 && 1 / score > 0) {
    reply.ascii(reply.protocol === 3 ? ',0\r\n' : '$1\r\n0\r\n');
  } else {
    reply.double(formatDouble(score));
  }
}

/** The shortest text that reads back as the same double. */
export function exactScore(score: number): string {
  if (Number.isFinite(score)) return Object.is(score, -0) ? '-0' : String(score);
  return score > 0 ? 'inf' : '-inf';
}

/**
 * Redis's compact form keeps whole scores as integers, so that a score of -0 becomes 0 in it; its other
 * form keeps -0.
 */
export function settleZero(context: Context, key: Slice, zset: ZSet, member: Slice): void {
  if (context.db.encoding(key) === Encoding.Compact) zset.set(member, 0);
}

/** `settleZero` for all members. */
export function settleZeros(context: Context, key: Slice, zset: ZSet): void {
  if (context.db.encoding(key) !== Encoding.Compact) return;
  const end = zset.countBelow(0, true);
  for (let rank = zset.countBelow(0, false); rank < end; rank++) {
    if (Object.is(zset.at(rank, member), -0)) zset.set(scratch.keep(member), 0);
  }
}
