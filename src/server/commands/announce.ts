import type { Slice } from '../../bytes/slice.ts';
import type { Context } from '../context.ts';

/** The key has just come to be: told to those who watch for new keys and to clients that wait for one. */
export function announceKey(context: Context, key: Slice): void {
  context.event(key, 'n', 'new');
  context.ready(key);
}
