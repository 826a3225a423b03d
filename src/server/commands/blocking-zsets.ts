/** Sorted set commands that wait for a member. They are logged as the plain command that took it. */
import { Type } from '../../store/api.ts';
import type { Context } from '../context.ts';
import { blockingTimeout, keyArguments } from './arguments.ts';
import { firstOfType, nullArray } from './waiting.ts';
import { takeFromKey, takeOne, zsetMultiPop } from './zset-ends.ts';

function pop(context: Context, lowest: boolean): void {
  const { argc, reply } = context;
  const timeoutMs = blockingTimeout(context, argc - 1);
  const keys = keyArguments(context, 1, argc - 2);
  const key = firstOfType(context, keys, Type.ZSet);
  if (key === null) return context.block({ keys, timeoutMs, onTimeout: nullArray });
  reply.array(3);
  reply.bulk(key);
  takeOne(context, key, context.db.zset(key)!, lowest);
  context.effect(lowest ? 'ZPOPMIN' : 'ZPOPMAX', key);
}

export function bzpopmin(context: Context): void {
  pop(context, true);
}

export function bzpopmax(context: Context): void {
  pop(context, false);
}

export function bzmpop(context: Context): void {
  const { keyCount, lowest, count } = zsetMultiPop(context, 2);
  const timeoutMs = blockingTimeout(context, 1);
  const keys = keyArguments(context, 3, keyCount);
  const key = firstOfType(context, keys, Type.ZSet);
  if (key === null) context.block({ keys, timeoutMs, onTimeout: nullArray });
  else takeFromKey(context, key, context.db.zset(key)!, lowest, count);
}
