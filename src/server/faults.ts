/**
 * Work that met what is not in memory: it was rolled back, and runs again from its start, with the same
 * time and the same dice, when that has been fetched. Only the connection whose command it is waits.
 *
 * A fault of a command also asks for all keys that its arguments name (for an EXEC those of the whole
 * queue), the first one for those of the requests behind it, too.
 */
import { Slice } from '../bytes/slice.ts';
import { parseRequest, type RequestTarget } from '../resp/request-parser.ts';
import { OutOfTierError, type Database, type WorkingSet } from '../store/api.ts';
import type { Client } from './client.ts';
import type { CommandEntry } from './command-entry.ts';
import type { Context } from './context.ts';
import { keyPositions } from './key-positions.ts';
import type { Server } from './server.ts';
import { storeRequest, type StoredRequest } from './stored-request.ts';

/** A command whose client waits for rows. */
export interface Rerun {
  request: StoredRequest;
  /** Unix ms at which it ran first. */
  now: number;
  /** State of the dice before it. */
  dice: number;
  set: WorkingSet;
  /** See `Context.progress`. */
  progress: unknown;
}

/** Fetches after which a command is given up. Each brings a row or very many: only what is wrong needs so many. */
const ROUNDS_MAX = 100_000;
/** Requests behind a faulting one whose keys are fetched with it. */
const REQUESTS_AHEAD = 256;

/** Why a command was given up after ROUNDS_MAX fetches. */
class RoundsError extends Error {}

/** Where requests are parsed that do not run yet. */
class Ahead implements RequestTarget {
  readonly args: Slice[] = Array.from({ length: 256 }, () => new Slice());
  argc = 0;
  requestMemory: Buffer = Buffer.alloc(0);
  requestStart = -1;
  requestEnd = -1;
}

export class Faults {
  /** Clients that wait for rows. */
  readonly waiting = new Set<Client>();
  /** Commands that were given up. */
  givenUp = 0;
  private readonly server: Server;
  private readonly ahead = new Ahead();

  constructor(server: Server) {
    this.server = server;
  }

  /** The command of `context` met what is not in memory and was rolled back: its client waits. */
  suspend(context: Context, client: Client, entry: CommandEntry): void {
    let set = context.set!;
    if (context.advanced) {
      set.release();
      set = this.server.store.workingSet();
    }
    const rerun: Rerun = {
      request: storeRequest(context, entry),
      now: this.server.store.now,
      dice: context.dice,
      set,
      progress: context.progress,
    };
    context.set = null;
    context.progress = null;
    context.advanced = false;
    client.rerun = rerun;
    // Not only the first time: what was there then may have left.
    this.wantKeys(set, client, rerun.request);
    // What is replayed from the log waits by itself.
    if (client.socket === null) return;
    if (set.rounds === 0) this.wantAhead(set, context);
    this.waiting.add(client);
    this.await(set, (error) => {
      if (client.rerun !== rerun) return;
      if (error === null) this.run(client, rerun);
      else this.giveUp(client, rerun, error);
    });
  }

  /** Calls `then` when what the set wants is in memory, or with the reason why it cannot be. */
  await(set: WorkingSet, then: (error: Error | null) => void): void {
    const { server } = this;
    const finish = (error: Error | null): void => {
      if (server.ending) return;
      server.turns.begin();
      then(error);
    };
    const fetched = set.rounds < ROUNDS_MAX ? set.fetch() : Promise.reject(new RoundsError());
    fetched.then(() => finish(null), finish);
  }

  /** The client is gone or waits no more. */
  forget(client: Client): void {
    client.rerun?.set.release();
    client.rerun = null;
    this.waiting.delete(client);
  }

  /** The error reply for work whose rows could not be had. */
  reason(error: Error): string {
    this.givenUp++;
    if (error instanceof RoundsError)
      return `ERR the command was given up: ${ROUNDS_MAX} times what it needed was not in memory`;
    this.server.logger.warn(`rows could not be fetched: ${error.message}`);
    return `${error instanceof OutOfTierError ? 'OOM' : 'ERR'} ${error.message}`;
  }

  private run(client: Client, rerun: Rerun): void {
    const { server } = this;
    const { context, store } = server;
    client.rerun = null;
    this.waiting.delete(client);
    const { now } = store;
    store.now = rerun.now;
    const dice = context.resume(rerun);
    server.input.runStored(client, rerun.request);
    context.rested(dice);
    store.now = now;
    if (this.rerunOf(client)?.set !== rerun.set) rerun.set.release();
    server.input.proceed(client);
  }

  /** As it is now; for the compiler, which believes that nothing has changed it. */
  private rerunOf(client: Client): Rerun | null {
    return client.rerun;
  }

  private giveUp(client: Client, rerun: Rerun, error: Error): void {
    this.forget(client);
    this.server.input.refuseStored(client, rerun.request, this.reason(error));
    this.server.input.proceed(client);
  }

  /** Asks for the keys that a request names. */
  private wantKeys(set: WorkingSet, client: Client, { entry, args }: StoredRequest): void {
    if (entry.fullName === 'exec' && client.transaction !== null) {
      let { db } = client;
      for (const queued of client.transaction.requests) {
        if (queued.entry.fullName === 'select') db = this.selected(queued.args[1]) ?? db;
        else this.wantArguments(set, db, queued.entry, queued.args, queued.args.length);
      }
    } else {
      this.wantArguments(set, client.db, entry, args, args.length);
    }
  }

  private wantArguments(
    set: WorkingSet,
    db: Database,
    { command }: CommandEntry,
    args: readonly Slice[],
    argc: number,
  ): void {
    if (command.keys === undefined && command.getKeys === undefined) return;
    for (const { index } of keyPositions(command, args, argc) ?? []) set.want(db, args[index]);
  }

  private selected(index: Slice): Database | undefined {
    const { store } = this.server;
    const number = Number(index.latin1());
    return number >= 0 && number < store.databaseCount ? store.database(number) : undefined;
  }

  /** Asks for the keys of requests that have come already and run later. */
  private wantAhead(set: WorkingSet, context: Context): void {
    const { requestMemory, requestEnd, client, args } = context;
    const { end } = this.server.input;
    if (end > requestEnd) this.wantRequests(set, client.db, requestMemory, args[0].view, requestEnd, end);
  }

  /** Asks for the keys of the first requests of [pos, end); returns how many these were. */
  wantRequests(
    set: WorkingSet,
    db: Database,
    memory: Buffer,
    view: DataView,
    pos: number,
    end: number,
  ): number {
    const { ahead, server } = this;
    let count = 0;
    for (; count < REQUESTS_AHEAD && pos < end; count++) {
      pos = parseRequest(ahead, memory, view, pos, end);
      if (pos < 0) break;
      const { args, argc } = ahead;
      let entry = server.lookup.find(args[0]);
      if (entry !== undefined && entry.subcommands !== null && argc > 1)
        entry = entry.subcommands.get(args[1].latin1().toLowerCase());
      if (entry === undefined || argc < Math.abs(entry.arity)) continue;
      if (entry.fullName === 'select') db = this.selected(args[1]) ?? db;
      else this.wantArguments(set, db, entry, args, argc);
    }
    return count;
  }
}
