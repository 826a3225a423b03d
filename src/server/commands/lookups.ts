/** Collections that a command reads, opened and counted as looked up; null when the key is absent. */
import type { Slice } from '../../bytes/slice.ts';
import type { Hash, List, SetValue, Stream, ZSet } from '../../store/api.ts';
import type { Context } from '../context.ts';
import { lookedUp } from './announce.ts';

export function readList(context: Context, key: Slice): List | null {
  const list = context.db.list(key);
  lookedUp(context, key, list !== null);
  return list;
}

export function readSet(context: Context, key: Slice): SetValue | null {
  const set = context.db.set(key);
  lookedUp(context, key, set !== null);
  return set;
}

export function readHash(context: Context, key: Slice): Hash | null {
  const hash = context.db.hash(key);
  lookedUp(context, key, hash !== null);
  return hash;
}

export function readZSet(context: Context, key: Slice): ZSet | null {
  const zset = context.db.zset(key);
  lookedUp(context, key, zset !== null);
  return zset;
}

export function readStream(context: Context, key: Slice): Stream | null {
  const stream = context.db.stream(key);
  lookedUp(context, key, stream !== null);
  return stream;
}
