/** Taking members from the ends of a sorted set: what ZPOPMIN, ZMPOP and their blocking forms share. */
import { Slice } from '../../bytes/slice.ts';
import type { ZSet } from '../../store/api.ts';
import type { Context } from '../context.ts';
import { NUMKEYS_NOT_POSITIVE, syntaxError } from '../errors.ts';
import { countOption, integerFrom } from './arguments.ts';
import { replyScore } from './scores.ts';

const member = new Slice();

/** Removes one member from an end and writes it and its score. */
export function takeOne(context: Context, key: Slice, zset: ZSet, lowest: boolean): void {
  const { reply } = context;
  const last = zset.size - 1;
  const rank = lowest ? 0 : last;
  const score = zset.at(rank, member);
  reply.bulk(member);
  replyScore(reply, score);
  zset.removeRange(rank, 1);
  announceTaken(context, key, lowest, last === 0);
}

/**
 * Removes `count` members (no more than there are) from an end and writes each with its score, as a
 * pair of its own if `nested`.
 */
export function takeMany(
  context: Context,
  key: Slice,
  zset: ZSet,
  lowest: boolean,
  count: number,
  nested: boolean,
): void {
  const { reply } = context;
  const { size } = zset;
  let rest = count;
  zset.forEachFrom(lowest ? 0 : size - 1, lowest ? 1 : -1, (taken, score) => {
    if (nested) reply.array(2);
    reply.bulk(taken);
    replyScore(reply, score);
    return --rest > 0;
  });
  if (count === size) context.db.remove(key);
  else zset.removeRange(lowest ? 0 : size - count, count);
  announceTaken(context, key, lowest, count === size);
}

/** The reply of ZMPOP and BZMPOP: the key and the pairs taken from it. It is logged as what was done. */
export function takeFromKey(context: Context, key: Slice, zset: ZSet, lowest: boolean, wanted: number): void {
  const { reply } = context;
  const count = Math.min(wanted, zset.size);
  reply.array(2);
  reply.bulk(key);
  reply.array(count);
  takeMany(context, key, zset, lowest, count, true);
  context.effect(lowest ? 'ZPOPMIN' : 'ZPOPMAX', key, count);
}

function announceTaken(context: Context, key: Slice, lowest: boolean, emptied: boolean): void {
  context.changed(key, 'z', lowest ? 'zpopmin' : 'zpopmax');
  if (emptied) context.event(key, 'g', 'del');
}

/** What follows `numkeys` (at index `at`) of ZMPOP and BZMPOP. */
export function zsetMultiPop(
  context: Context,
  at: number,
): { keyCount: number; lowest: boolean; count: number } {
  const { argc } = context;
  const keyCount = integerFrom(context, at, 1, NUMKEYS_NOT_POSITIVE);
  const endAt = at + keyCount + 1;
  if (endAt >= argc) throw syntaxError();
  const lowest = context.is(endAt, 'min');
  if (!lowest && !context.is(endAt, 'max')) throw syntaxError();
  return { keyCount, lowest, count: countOption(context, endAt + 1) };
}
