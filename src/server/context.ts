/**
 * What a command handler is given. One object, reused for every command.
 *
 * All side effects are staged here and published when the command (or its whole EXEC) has returned,
 * so that a command which must be rolled back and run again leaves no trace.
 */
import { Slice } from '../bytes/slice.ts';
import {
  DamagedValueError,
  OutOfTierError,
  RowFault,
  WrongTypeError,
  type Database,
  type Store,
  type Type,
  type WorkingSet,
} from '../store/api.ts';
import type { RequestTarget } from '../resp/request-parser.ts';
import { CommandError } from './command.ts';
import { followEncodingLimits, type EncodingLimits } from './encoding.ts';
import { damagedValue, NOT_FLOAT, NOT_INTEGER, OUT_OF_MEMORY, WRONG_TYPE } from './errors.ts';
import { parseDouble, parseInt64, sliceInteger } from '../bytes/number.ts';
import type { CommandEntry } from './command-entry.ts';
import type { Rerun } from './faults.ts';
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
  /** The command is also run again when a key is gone. */
  withoutKey?: boolean;
}

/** A change or keyspace event that waits for its command to return. */
interface StagedEvent {
  db: Database;
  key: Buffer;
  changed: boolean;
  eventClass: EventClass;
  event: string;
}

const ERROR_BYTE = 45; // -

interface Message {
  channel: Buffer;
  message: Buffer;
  sharded: boolean;
}

/** Where a group of effects begins in the log buffer. */
export interface EffectGroup {
  mark: number;
  /** Database that was selected before it. */
  db: number;
  body: number;
}

export interface Staged {
  events: readonly StagedEvent[];
  messages: readonly Message[];
}

/** Slices that stay allocated for arguments; a request with more of them grows the array for a while. */
const ARGS_KEPT = 1024;

export class Context implements RequestTarget {
  readonly server: Server;
  readonly store: Store;
  readonly encodingLimits: Readonly<EncodingLimits>;
  client: Client;
  /** The client's selected database. */
  db: Database;
  argc = 0;
  /** args[0] is the command's name; entries from `argc` on are stale. */
  readonly args: Slice[] = Array.from({ length: ARGS_KEPT }, () => new Slice());
  reply: Reply;
  /** The command that runs. */
  entry: CommandEntry | null = null;

  requestMemory: Buffer = Buffer.alloc(0);
  requestStart = -1;
  requestEnd = -1;

  /** Where the reply of the outermost command begins. */
  replyFrom = 0;
  /** No waiting: inside MULTI, a script, or replay. */
  mayBlock = true;
  /** A command of an EXEC, which is one unit of work with it. */
  nested = false;
  /** What the unit of work has wanted in earlier runs; null in its first. */
  set: WorkingSet | null = null;
  /** What a command that goes through more than the memory holds had done when it was rolled back. */
  progress: unknown = null;
  /** The command has come further in this run: what it wanted before may leave. */
  advanced = false;
  /** The command waited, and runs again because this key of its keys is ready, which alone may serve it. */
  readyKey: Slice | null = null;
  /** Something is staged that must be handed out when the command returns. */
  staging = false;
  /** What the command asked to wait for; its reply is still to come. */
  blocked: BlockOptions | null = null;
  /** Keys changed by the command. */
  private changes = 0;
  private effects = 0;
  /** Events, changes and effects on what is no data, in order; empty unless somebody observes them. */
  private staged: (StagedEvent | (() => void))[] = [];
  private readyKeys: { db: Database; key: string }[] = [];
  private published: Message[] = [];
  private randomState: number;

  /** What a unit of work that is rolled back leaves as it was. */
  dice = 0;
  private logMark = 0;
  private logDb = 0;
  private hits = 0;
  private misses = 0;
  private expiredKeys = 0;
  private changesBefore = 0;

  constructor(server: Server, client: Client, seed: number) {
    this.server = server;
    this.store = server.store;
    this.encodingLimits = followEncodingLimits(server.config);
    this.client = client;
    this.db = server.store.database(0);
    this.reply = server.output.turn.writer;
    this.randomState = seed | 0;
  }

  /** Unix ms of this turn; the same when a command is run again. */
  get now(): number {
    return this.store.now;
  }

  /** args[i] as a 64-bit integer within the safe range, else Redis's "value is not an integer or out of range". */
  integer(i: number): number {
    const value = sliceInteger(this.args[i]);
    if (Number.isNaN(value)) throw new CommandError(NOT_INTEGER);
    return value;
  }

  /** args[i] as any signed 64-bit integer. */
  bigInteger(i: number): bigint {
    const value = parseInt64(this.args[i]);
    if (value === undefined) throw new CommandError(NOT_INTEGER);
    return value;
  }

  /** args[i] as a double, else "value is not a valid float". */
  float(i: number): number {
    const value = parseDouble(this.args[i]);
    if (Number.isNaN(value)) throw new CommandError(NOT_FLOAT);
    return value;
  }

  /** args[i] equals the word, which is given in lower case; case is ignored. */
  is(i: number, word: string): boolean {
    const { u8, start, end } = this.args[i];
    if (end - start !== word.length) return false;
    for (let at = 0; at < word.length; at++) {
      let byte = u8[start + at];
      if (byte >= 65 && byte <= 90) byte |= 32;
      if (byte !== word.charCodeAt(at)) return false;
    }
    return true;
  }

  /** args[i] in lower case. */
  word(i: number): string {
    return this.args[i].latin1().toLowerCase();
  }

  /** Uniform in [0, 1), from the command's seed: the same numbers when the command is run again. */
  random(): number {
    return (this.random32() * 0x200000 + (this.random32() >>> 11)) / 0x20000000000000;
  }

  /** Mulberry32. */
  private random32(): number {
    this.randomState = (this.randomState + 0x6d2b79f5) | 0;
    let mixed = this.randomState;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /**
   * The key's value was changed: invalidates WATCHes and tracked reads, counts in rdb_changes_since…,
   * stages the keyspace event, and makes the command logged. `db` is the client's unless given.
   */
  changed(key: Slice, eventClass: EventClass, event: string, db: Database = this.db): void {
    this.changes++;
    const { server } = this;
    if (server.observed) this.stage(key, true, eventClass, event, db);
    if (server.blocking.keyless !== 0) this.ready(key, db);
  }

  /** The same for a change that watchers of the key are not told of, and without an event. */
  dirtied(): void {
    this.changes++;
  }

  /** Stages a keyspace event only. */
  event(key: Slice, eventClass: EventClass, event: string, db: Database = this.db): void {
    if (this.server.observed) this.stage(key, false, eventClass, event, db);
  }

  private stage(key: Slice, changed: boolean, eventClass: EventClass, event: string, db: Database): void {
    this.staging = true;
    this.staged.push({ db, key: key.toBuffer(), changed, eventClass, event });
  }

  /** A blocked client that waits for this key may go on. */
  ready(key: Slice, db: Database = this.db): void {
    if (!this.server.blocking.anyone) return;
    this.staging = true;
    this.readyKeys.push({ db, key: key.latin1() });
  }

  /**
   * What is logged instead of the command as it was sent: commands whose replay has the same result
   * on the same data, whatever the time and the dice. May be called several times.
   */
  effect(...parts: EffectPart[]): void {
    this.effects++;
    this.logEffect(this.db.index, parts);
  }

  /** Logs that the store removes an expired key. Does not replace the command that met it. */
  expired(db: Database, key: Slice): void {
    this.logEffect(db.index, ['DEL', key]);
    // At once, not staged: it is no effect of the command, and EXEC must see the broken watch.
    if (this.server.watches.anyone) this.server.watches.changed(db, key.latin1());
    if (this.server.observed) this.stage(key, true, 'x', 'expired', db);
    if (this.server.blocking.keyless !== 0) this.ready(key, db);
  }

  private logEffect(db: number, parts: readonly EffectPart[]): void {
    const log = this.server.effects;
    if (log === null) return;
    log.select(db);
    log.parts(parts);
  }

  /** Stages an effect of the command on something other than data. */
  afterwards(effect: () => void): void {
    this.staging = true;
    this.staged.push(effect);
  }

  /** Does something once it is certain that the command has run: now, unless an EXEC may be rolled back. */
  settled(effect: () => void): void {
    if (this.nested) this.afterwards(effect);
    else effect();
  }

  /** Stages a message to the subscribers of a channel. */
  message(channel: Slice, message: Slice, sharded: boolean): void {
    this.staging = true;
    this.published.push({ channel: channel.toBuffer(), message: message.toBuffer(), sharded });
  }

  /**
   * Suspends the client until one of the keys is ready, then runs the command again from the start
   * with the same arguments; nothing may have been replied or changed. Inside MULTI or a script it
   * does not wait: `onTimeout` replies at once.
   */
  block(options: BlockOptions): void {
    if (this.mayBlock) this.blocked = options;
    else options.onTimeout(this.reply);
  }

  /**
   * Runs one command on `args`. When it returns true, its reply or error stands in `reply` and its effects
   * in the log buffer; what is staged waits for `publish`. When it returns false, the command met what is
   * not in memory, and nothing of it is left. Inside EXEC that is thrown, for EXEC is what runs again.
   */
  run(entry: CommandEntry): boolean {
    const mark = this.reply.pos;
    this.entry = entry;
    this.changes = 0;
    this.effects = 0;
    if (this.nested) this.store.beginCommand();
    else this.begin();
    entry.calls++;
    try {
      entry.run!(this);
    } catch (error) {
      this.reply.pos = mark;
      this.blocked = null;
      if (error instanceof RowFault || error instanceof OutOfTierError) {
        entry.calls--;
        if (this.nested) throw error;
        this.rollBack(error);
        if (error instanceof RowFault) return false;
        entry.calls++;
        this.begin();
      }
      this.endParts();
      this.fail(error);
    }
    if (this.changes !== 0) {
      this.server.changes += this.changes;
      if (this.effects === 0) this.logRequest();
    }
    if (this.reply.u8[mark] === ERROR_BYTE && this.reply.pos > mark) this.countError(entry, mark);
    if (!this.nested) this.store.commit();
    return true;
  }

  /** Runs something that is no command as a unit of work. False when it met what is not in memory. */
  unit(work: () => void): boolean {
    this.begin();
    try {
      work();
    } catch (error) {
      this.rollBack(error);
      if (error instanceof RowFault) return false;
      throw error;
    }
    this.store.commit();
    return true;
  }

  /** The type of the value at a key, looked up as a unit of work; -1 when it is not in memory. */
  peek(db: Database, key: Slice): Type | -1 {
    this.begin();
    try {
      const type = db.type(key);
      this.store.commit();
      return type;
    } catch (error) {
      this.rollBack(error);
      if (error instanceof RowFault) return -1;
      throw error;
    }
  }

  private begin(): void {
    const { server } = this;
    const { effects, statistics } = server;
    if (effects !== null) {
      this.logMark = effects.length;
      this.logDb = effects.db;
    }
    this.dice = this.randomState;
    this.hits = statistics.keyspaceHits;
    this.misses = statistics.keyspaceMisses;
    this.expiredKeys = statistics.expiredKeys;
    this.changesBefore = server.changes;
    this.store.begin(this.set);
  }

  /** Nothing of the unit of work has happened. After a fault `set` knows what it wants. */
  private rollBack(error: unknown): void {
    const { server } = this;
    const { effects, statistics } = server;
    this.store.rollback();
    if (error instanceof RowFault) this.set ??= this.store.workingSet();
    effects?.truncate(this.logMark, this.logDb);
    this.randomState = this.dice;
    statistics.keyspaceHits = this.hits;
    statistics.keyspaceMisses = this.misses;
    statistics.expiredKeys = this.expiredKeys;
    server.changes = this.changesBefore;
    this.changes = 0;
    this.effects = 0;
    this.staging = false;
    this.staged = [];
    this.readyKeys = [];
    this.published = [];
  }

  /**
   * The command, which goes through more than the memory holds, has done a part that need not be done
   * again when it is rolled back; `progress` is what it finds in its next run.
   */
  advance(progress: unknown): void {
    this.progress = progress;
    this.advanced = true;
  }

  /** As `advance`, for a command that changes data: what it has changed so far stays, whatever becomes of the rest. */
  commitPart(progress: unknown): void {
    this.store.commit();
    this.begin();
    this.advance(progress);
  }

  /** A command that goes on in parts has done the last. */
  endParts(): void {
    this.progress = null;
    this.advanced = false;
  }

  /** The command of `rerun` runs next. Returns the state of the dice, for `rested`. */
  resume({ set, progress, dice }: Rerun): number {
    const before = this.randomState;
    this.set = set;
    this.progress = progress;
    this.randomState = dice;
    return before;
  }

  /** The next command is a new one. */
  rested(dice: number): void {
    this.set = null;
    this.progress = null;
    this.advanced = false;
    this.randomState = dice;
  }

  private fail(error: unknown): void {
    if (error instanceof CommandError) this.reply.error(error.message);
    else if (error instanceof WrongTypeError) this.reply.error(WRONG_TYPE);
    else if (error instanceof DamagedValueError) this.reply.error(damagedValue(error.message));
    else if (error instanceof OutOfTierError) this.reply.error(OUT_OF_MEMORY);
    else this.reply.error(this.server.fail(error));
  }

  private countError(entry: CommandEntry, mark: number): void {
    const end = this.reply.pos;
    if (this.nested) this.afterwards(() => this.countErrorAt(entry, mark, end));
    else this.countErrorAt(entry, mark, end);
  }

  private countErrorAt(entry: CommandEntry, mark: number, end: number): void {
    entry.failed++;
    this.server.statistics.countError(this.reply.u8, mark, end);
  }

  /** The command had effects and named no others: it is logged as it was sent. */
  private logRequest(): void {
    const log = this.server.effects;
    if (log === null) return;
    log.select(this.client.db.index);
    if (this.requestStart >= 0) log.request(this.requestMemory, this.requestStart, this.requestEnd);
    else log.arguments(this.args, this.argc);
  }

  /** Begins the effects of an EXEC, which are one group in the log. */
  beginGroup(): EffectGroup {
    const log = this.server.effects;
    if (log === null) return { mark: -1, db: 0, body: 0 };
    const { length: mark, db } = log;
    log.select(this.client.db.index);
    log.parts(['MULTI']);
    return { mark, db, body: log.length };
  }

  endGroup({ mark, db, body }: EffectGroup): void {
    const log = this.server.effects;
    // EXEC itself has changed nothing that its commands have not logged.
    this.changes = 0;
    if (log === null || mark < 0) return;
    if (log.length > body) log.parts(['EXEC']);
    else log.truncate(mark, db);
  }

  /** A whole database has changed: no client's cache of it holds. */
  flushed(): void {
    const { tracking } = this.server;
    if (tracking.anyone) this.afterwards(() => tracking.flushed());
  }

  /** Every waiting client of the database looks again: it holds other data now. */
  signalDatabase(db: Database): void {
    for (const key of this.server.blocking.keysOf(db)) {
      this.staging = true;
      this.readyKeys.push({ db, key });
    }
  }

  /** What the command, or the whole EXEC, has staged for others; ready keys stay for `signalReady`. */
  takeStaged(): Staged {
    const { staged, published: messages, server } = this;
    this.staging = false;
    if (staged.length > 0) this.staged = [];
    if (messages.length > 0) this.published = [];
    const events: StagedEvent[] = [];
    for (const effect of staged) {
      if (typeof effect === 'function') effect();
      else {
        events.push(effect);
        if (effect.changed) server.keyspace.changed(effect.db, effect.key);
      }
    }
    return { events, messages };
  }

  /** Sends keyspace events and published messages to their subscribers. */
  announce({ events, messages }: Staged): void {
    const { server } = this;
    for (const { db, key, eventClass, event } of events) server.keyspace.notify(db, key, eventClass, event);
    for (const { channel, message, sharded } of messages) server.pubsub.publish(channel, message, sharded);
  }

  /** Tells waiting clients of the keys that are ready. */
  signalReady(): void {
    const { readyKeys } = this;
    if (readyKeys.length === 0) return;
    this.readyKeys = [];
    for (const { db, key } of readyKeys) this.server.blocking.signal(db, key);
  }
}
