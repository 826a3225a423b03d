/** Recovery's side of the server: the commands of log frames, run again. */
import { Slice } from '../bytes/slice.ts';
import { parseRequest, RequestReader } from '../resp/request-parser.ts';
import type { WorkingSet } from '../store/api.ts';
import type { ImportMode } from '../store/merge.ts';
import { Client } from './client.ts';
import type { CommandEntry } from './command-entry.ts';
import { dispatch } from './dispatch.ts';
import { DAMAGED } from './errors.ts';
import { keyPositions } from './key-positions.ts';
import type { Server } from './server.ts';
import { loadRequest } from './stored-request.ts';

/** How an import begins in the log: id of the copy, what becomes of keys that exist, database or -1, Unix ms. */
const IMPORT_HEAD = '*5\r\n$6\r\nIMPORT\r\n';
const MINUS = 45;
/** Requests of the log whose keys are fetched together: as many as one call of the engine takes. */
const REQUESTS_AHEAD = 1024;

export class Replay {
  private readonly server: Server;
  /** Stands for whoever sent what is replayed. */
  private readonly client: Client;
  /** What of the frame is still to be run, as far as it parses in place. */
  private readonly ahead = new Slice();

  constructor(server: Server) {
    this.server = server;
    this.client = new Client(server, 0, null);
  }

  /** Runs what is in a frame; an import, which is the first of its frame, takes longer than this call. */
  run(payload: Slice, following: Iterable<Slice>): Promise<void> | undefined {
    const { u8, start } = payload;
    if (u8.latin1Slice(start, start + IMPORT_HEAD.length) === IMPORT_HEAD) return this.import(payload);
    return this.commands(payload, following);
  }

  private async import(payload: Slice): Promise<void> {
    const { context, options } = this.server;
    const own = payload.clone();
    const next = parseRequest(context, own.u8, own.view, own.start, own.end);
    const [id, mode, database, now] = context.args.slice(1, 5).map((arg) => arg.latin1());
    if (next < 0 || options.imports === undefined) throw new Error('log: an import that cannot be repeated');
    await options.imports.replay(id, {
      mode: mode as ImportMode,
      database: Number(database),
      now: Number(now),
    });
    if (next === own.end) return;
    own.start = next;
    await this.commands(own, []);
  }

  /**
   * Runs the commands of a frame: no replies, nothing is logged, no limits, no expiry by the clock. Returns
   * a promise when one of them met what is not in memory; the rest runs before it resolves.
   */
  private commands(payload: Slice, following: Iterable<Slice>): Promise<void> | undefined {
    this.client.db = this.server.store.database(0);
    const requests = this.requests(payload);
    return this.goOn(requests) ? undefined : this.rest(requests, following);
  }

  private async rest(requests: Generator<void>, following: Iterable<Slice>): Promise<void> {
    const { client, server } = this;
    do {
      const { request, set } = client.rerun!;
      if (set.rounds === 0) this.wantAhead(set, following);
      await set.fetch();
      client.rerun = null;
      this.quietly(() => {
        const { context } = server;
        context.set = set;
        loadRequest(context, request);
        this.request();
        context.set = null;
      });
      // Another fault keeps the set.
      if (this.faulted?.set !== set) set.release();
    } while (this.faulted !== null || !this.goOn(requests));
  }

  /** Asks for the keys of requests that come next, also those of the next frames. */
  private wantAhead(set: WorkingSet, following: Iterable<Slice>): void {
    const { faults, store } = this.server;
    const { u8, view, start, end } = this.ahead;
    let left = REQUESTS_AHEAD - faults.wantRequests(set, this.client.db, u8, view, start, end);
    for (const frame of following) {
      if (left <= 0) return;
      left -= faults.wantRequests(set, store.database(0), frame.u8, frame.view, frame.start, frame.end);
    }
  }

  /** As it is now; for the compiler, which believes that nothing has changed it. */
  private get faulted(): Client['rerun'] {
    return this.client.rerun;
  }

  /** Runs requests until there are no more; false when one waits for rows. */
  private goOn(requests: Generator<void>): boolean {
    return this.quietly(() => {
      while (requests.next().done !== true) {
        this.request();
        if (this.client.rerun !== null) return false;
      }
      return true;
    });
  }

  /** Runs something with nobody to answer to. */
  private quietly<T>(work: () => T): T {
    const { server } = this;
    const { context, effects, gates, store } = server;
    const { now } = store;
    server.effects = null;
    server.gates = 0;
    // What was due was removed by a logged DEL: here time stands still.
    store.now = 0;
    context.mayBlock = false;
    server.output.open(this.client);
    const mark = context.reply.pos;
    try {
      return work();
    } finally {
      server.effects = effects;
      server.gates = gates;
      store.now = now;
      context.mayBlock = true;
      context.reply.pos = mark;
      server.output.close();
    }
  }

  /** Each request of the frame in turn, in the context. */
  private *requests(payload: Slice): Generator<void> {
    const { context } = this.server;
    const { u8, view, end } = payload;
    let pos = payload.start;
    while (pos < end) {
      const next = parseRequest(context, u8, view, pos, end);
      if (next < 0) break;
      pos = next;
      this.ahead.set(u8, view, pos, end);
      yield;
    }
    this.ahead.start = this.ahead.end;
    if (pos === end) return;
    // Requests with very many arguments do not parse in place.
    const reader = new RequestReader({ bulkLengthMax: Number.MAX_SAFE_INTEGER });
    reader.push(u8, pos, end);
    while (reader.next(context)) yield;
    if (reader.pending > 0) throw new Error(`log: ${reader.pending} bytes of a frame are no request`);
  }

  private request(): void {
    const { server, client } = this;
    const { context } = server;
    // A frame is one step as a whole: the borders of transactions in it mean nothing here.
    if (context.is(0, 'multi') || context.is(0, 'exec')) return;
    const { reply } = context;
    const mark = reply.pos;
    dispatch(server, context, client);
    if (reply.u8[mark] === MINUS && reply.pos > mark) {
      const error = reply.written(mark).latin1Slice(1).trim();
      if (!error.startsWith(DAMAGED)) throw new Error(`log: ${context.word(0)}: ${error}`);
      if (!context.unit(() => this.spreadDamage()))
        server.faults.suspend(context, client, client.lastCommand as CommandEntry);
    }
    reply.pos = mark;
  }

  /** The effect needs a value that is damaged, so what it would have made of its keys is lost as well. */
  private spreadDamage(): void {
    const { client } = this;
    const { context } = this.server;
    const { args, argc } = context;
    const { command } = client.lastCommand as CommandEntry;
    for (const { index, access } of keyPositions(command, args, argc) ?? []) {
      if (command.getKeys !== undefined || !access.includes('RO')) client.db.damage(args[index]);
    }
  }
}
