/** Taking elements from the ends of a list: what LPOP, LMOVE, LMPOP and their blocking forms share. */
import { Scratch } from '../../bytes/scratch.ts';
import { Slice } from '../../bytes/slice.ts';
import type { List } from '../../store/api.ts';
import type { Context } from '../context.ts';
import { NUMKEYS_NOT_POSITIVE, syntaxError } from '../errors.ts';
import { announceKey } from './announce.ts';
import { countOption, integerFrom } from './arguments.ts';

const element = new Slice();
const scratch = new Scratch();

/** args[i] names an end: true for LEFT. */
export function leftEnd(context: Context, i: number): boolean {
  if (context.is(i, 'left')) return true;
  if (context.is(i, 'right')) return false;
  throw syntaxError();
}

/** What follows `numkeys` (at index `at`) of LMPOP and BLMPOP. */
export function listMultiPop(
  context: Context,
  at: number,
): { keyCount: number; left: boolean; count: number } {
  const { argc } = context;
  const keyCount = integerFrom(context, at, 1, NUMKEYS_NOT_POSITIVE);
  const endAt = at + keyCount + 1;
  if (endAt >= argc) throw syntaxError();
  const left = leftEnd(context, endAt);
  return { keyCount, left, count: countOption(context, endAt + 1) };
}

export function endName(left: boolean): string {
  return left ? 'LEFT' : 'RIGHT';
}

/** Removes one element from an end and replies with it. */
export function takeOne(context: Context, key: Slice, list: List, left: boolean): void {
  const last = list.length - 1;
  const index = left ? 0 : last;
  list.at(index, element);
  context.reply.bulk(element);
  list.remove(index, 1);
  context.changed(key, 'l', left ? 'lpop' : 'rpop');
  if (last === 0) context.event(key, 'g', 'del');
}

/**
 * Removes up to `count` (at least 1) elements from an end and replies with an array of them in the
 * order in which they leave. Returns how many.
 */
export function takeMany(context: Context, key: Slice, list: List, left: boolean, count: number): number {
  const { reply } = context;
  const length = list.length;
  const taken = Math.min(count, length);
  reply.array(taken);
  if (left) {
    list.copyFramed(0, taken, reply);
  } else {
    let rest = taken;
    list.forEachFrom(length - 1, -1, (popped) => {
      reply.bulk(popped);
      return --rest > 0;
    });
  }
  if (taken === length) context.db.remove(key);
  else list.remove(left ? 0 : length - taken, taken);
  context.changed(key, 'l', left ? 'lpop' : 'rpop');
  if (taken === length) context.event(key, 'g', 'del');
  return taken;
}

/** LMOVE from a list that exists: pushes before it removes, so that a list moved within itself never is empty. */
export function move(
  context: Context,
  from: Slice,
  source: List,
  to: Slice,
  fromLeft: boolean,
  toLeft: boolean,
): void {
  const { db, reply } = context;
  const within = from.equals(to);
  const target = within ? source : db.list(to, true);
  const created = target.length === 0;
  const emptied = !within && source.length === 1;
  source.at(fromLeft ? 0 : source.length - 1, element);
  reply.bulk(element);
  const moved = scratch.keep(element);
  if (toLeft) target.pushLeft(moved);
  else target.pushRight(moved);
  source.remove(fromLeft ? (within && toLeft ? 1 : 0) : source.length - (within && !toLeft ? 2 : 1), 1);
  if (created) announceKey(context, to);
  context.changed(to, 'l', toLeft ? 'lpush' : 'rpush');
  context.changed(from, 'l', fromLeft ? 'lpop' : 'rpop');
  if (emptied) context.event(from, 'g', 'del');
}
