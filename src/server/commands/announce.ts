import type { Slice } from '../../bytes/slice.ts';
import { Type, type Database } from '../../store/api.ts';
import type { Context } from '../context.ts';

/** Before a key is written that may not exist yet: tells those who watch for new keys, if it does not. */
export function announceIfNew(context: Context, key: Slice, db: Database = context.db): void {
  if (context.server.observed && db.type(key) === Type.None) context.event(key, 'n', 'new', db);
}

/** The key has just come to be: told to those who watch for new keys and to clients that wait for one. */
export function announceKey(context: Context, key: Slice): void {
  context.event(key, 'n', 'new');
  context.ready(key);
}

/** A command that reads has looked for a key: counted in INFO's keyspace hits and misses. */
export function lookedUp(context: Context, key: Slice, found: boolean): void {
  const { statistics } = context.server;
  if (found) {
    statistics.keyspaceHits++;
  } else {
    statistics.keyspaceMisses++;
    context.event(key, 'm', 'keymiss');
  }
}
