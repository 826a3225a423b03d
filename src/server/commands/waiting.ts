/** What commands that wait for a key have in common. */
import type { Slice } from '../../bytes/slice.ts';
import { Type, WrongTypeError } from '../../store/api.ts';
import type { Context } from '../context.ts';
import type { Reply } from '../reply.ts';

/** The reply of a wait that timed out. */
export function nullArray(reply: Reply): void {
  reply.nullArray();
}

/**
 * The first of the keys that exists, which must be of the type; null when there is none. A client
 * that was waiting passes over keys that have become something else meanwhile, as Redis does: only a
 * value of the type it waits for wakes it.
 */
export function firstOfType(context: Context, keys: readonly Slice[], type: Type): Slice | null {
  for (const key of keys) {
    const found = context.db.type(key);
    if (found === type) return key;
    if (found !== Type.None && !context.resumed) throw new WrongTypeError();
  }
  return null;
}
