/**
 * What a command handler is given. One object, reused for every command.
 *
 * All side effects are staged here and published when the command (or its whole EXEC) has returned,
 * so that a command which must be rolled back and run again leaves no trace.
 */
import type { Slice } from '../bytes/slice.ts';
import type { Database, Store } from '../store/api.ts';
import type { Reply } from './reply.ts';
import type { Client } from './client.ts';
import type { Server } from './server.ts';

/** Classes of keyspace events, by their letters in `notify-keyspace-events`. */
export type EventClass = 'g' | '$' | 'l' | 's' | 'h' | 'z' | 'x' | 'e' | 't' | 'm' | 'n' | 'd';

/** A part of a logged effect; numbers are written in decimal. */
export type EffectPart = Slice | Buffer | string | number;

export interface BlockOptions {
  /** Keys whose readiness runs the command again. */
  keys: readonly Slice[];
  /** Milliseconds; 0 waits for ever. */
  timeoutMs: number;
  /** Writes the reply of a wait that timed out. */
  onTimeout: (reply: Reply) => void;
}

export interface Context {
  readonly server: Server;
  readonly store: Store;
  client: Client;
  /** The client's selected database. */
  db: Database;
  argc: number;
  /** args[0] is the command's name; entries from `argc` on are stale. */
  readonly args: Slice[];
  readonly reply: Reply;
  /** Unix ms of this turn; the same when a command is run again. */
  readonly now: number;

  /** args[i] as a 64-bit integer within the safe range, else Redis's "value is not an integer or out of range". */
  integer(i: number): number;
  /** args[i] as a double, else "value is not a valid float". */
  float(i: number): number;
  /** args[i] equals the word, which is given in lower case; case is ignored. */
  is(i: number, word: string): boolean;
  /** args[i] in lower case. */
  word(i: number): string;
  /** Uniform in [0, 1), from the command's seed: the same numbers when the command is run again. */
  random(): number;

  /**
   * The key's value was changed: invalidates WATCHes and tracked reads, counts in rdb_changes_since…,
   * stages the keyspace event, and makes the command logged. `db` is the client's unless given.
   */
  changed(key: Slice, eventClass: EventClass, event: string, db?: Database): void;
  /** Stages a keyspace event only. */
  event(key: Slice, eventClass: EventClass, event: string, db?: Database): void;
  /** A blocked client that waits for this key may go on. */
  ready(key: Slice, db?: Database): void;
  /**
   * What is logged instead of the command as it was sent: commands whose replay has the same result
   * on the same data, whatever the time and the dice. May be called several times.
   */
  effect(...parts: EffectPart[]): void;
  /**
   * Suspends the client until one of the keys is ready, then runs the command again from the start
   * with the same arguments; nothing may have been replied or changed. Inside MULTI or a script it
   * does not wait: `onTimeout` replies at once.
   */
  block(options: BlockOptions): void;
}
