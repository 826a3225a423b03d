/**
 * Results that are built in the store before they take the place of a key, or are replied with: the
 * sources may be the target itself, and no element becomes a JavaScript object.
 */
import { randomBytes } from 'node:crypto';
import { Slice } from '../../bytes/slice.ts';
import { OutOfTierError, RowFault, Type } from '../../store/api.ts';
import type { Context, EventClass } from '../context.ts';
import { announceKey } from './announce.ts';

/** In the client's database while one command runs; no client can guess it. */
export const temporaryKey = Slice.from(randomBytes(16));

/**
 * Runs `work`, which may build a value under the temporary key; what is left there is removed. Of work
 * that is rolled back nothing is left.
 */
export function withTemporary(context: Context, work: () => void): void {
  const { db } = context;
  try {
    work();
  } catch (error) {
    if (!(error instanceof RowFault || error instanceof OutOfTierError)) db.remove(temporaryKey);
    throw error;
  }
  db.remove(temporaryKey);
}

/**
 * Puts the value of `size` elements under the temporary key in the place of `target`, or deletes
 * `target` when it is empty, and replies with the size.
 */
export function storeTemporary(
  context: Context,
  target: Slice,
  size: number,
  eventClass: EventClass,
  event: string,
): void {
  const { db } = context;
  if (size === 0) {
    if (db.remove(target)) context.changed(target, 'g', 'del');
  } else {
    const created = db.type(target) === Type.None;
    db.rename(temporaryKey, db, target);
    if (created) announceKey(context, target);
    context.changed(target, eventClass, event);
  }
  context.reply.integer(size);
}
