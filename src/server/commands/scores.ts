/** Scores in replies and in the log. */
import { formatDouble } from '../../bytes/number.ts';
import type { Reply } from '../reply.ts';

const INT32_MAX = 0x7fffffff;

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
