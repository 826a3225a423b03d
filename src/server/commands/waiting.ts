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
 * that was waiting is served from the key that is ready, and passes over it when it has become something
 * else meanwhile: of several that an EXEC has filled, Redis takes the one that was filled first.
 */
export function firstOfType(context: Context, keys: readonly Slice[], type: Type): Slice | null {
  const { readyKey } = context;
  if (readyKey !== null) return context.db.type(readyKey) === type ? readyKey : null;
  for (const key of keys) {
    const found = context.db.type(key);
    if (found === type) return key;
    if (found !== Type.None) throw new WrongTypeError();
  }
  return null;
}
