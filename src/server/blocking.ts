/**
 * Clients that wait for keys (BLPOP and its like): first come, first served. A wait is the command
 * itself, run again from the start when one of its keys is ready.
 */
import { Slice } from '../bytes/slice.ts';
import { Type, type Database, type WorkingSet } from '../store/api.ts';
import type { Client } from './client.ts';
import type { CommandEntry } from './command-entry.ts';
import type { BlockOptions, Context } from './context.ts';
import type { Reply } from './reply.ts';
import type { Server } from './server.ts';
import { loadRequest, storeRequest, type StoredRequest } from './stored-request.ts';

export interface Wait {
  request: StoredRequest;
  db: Database;
  /** One character a byte. */
  keys: string[];
  /** Unix ms; 0: never. */
  deadline: number;
  onTimeout: (reply: Reply) => void;
  /** See BlockOptions. */
  withoutKey: boolean;
}

export class Blocking {
  /** Clients that must hear of it when a key is gone. */
  keyless = 0;
  private readonly server: Server;
  /** For each database, key to waiting clients in the order in which they came. */
  private readonly queues: Map<string, Set<Client>>[];
  private readonly clients = new Set<Client>();
  private ready: { db: Database; key: string }[] = [];
  /** Serving waits for rows: those in `set`, for the client `next`. */
  private fetching = false;
  private set: WorkingSet | null = null;
  private next: Client | null = null;
  /** Clients whose replies wait for it. */
  private held: { client: Client; bytes: Buffer }[] = [];

  constructor(server: Server) {
    this.server = server;
    this.queues = Array.from({ length: server.store.databaseCount }, () => new Map<string, Set<Client>>());
  }

  get anyone(): boolean {
    return this.clients.size > 0;
  }

  get count(): number {
    return this.clients.size;
  }

  /** The command that `context` has just run waits. */
  begin(context: Context, entry: CommandEntry, options: BlockOptions): void {
    const client = context.client;
    const wait: Wait = {
      request: storeRequest(context, entry),
      db: context.db,
      keys: [...new Set(options.keys.map((key) => key.latin1()))],
      deadline: options.timeoutMs > 0 ? context.now + options.timeoutMs : 0,
      onTimeout: options.onTimeout,
      withoutKey: options.withoutKey === true,
    };
    if (wait.withoutKey) this.keyless++;
    client.wait = wait;
    this.clients.add(client);
    const queue = this.queues[wait.db.index];
    for (const key of wait.keys) {
      const clients = queue.get(key);
      if (clients === undefined) queue.set(key, new Set([client]));
      else clients.add(client);
    }
  }

  /** The client waits no more: served, timed out, unblocked or gone. */
  end(client: Client): void {
    const wait = client.wait;
    if (wait === null) return;
    client.wait = null;
    if (wait.withoutKey) this.keyless--;
    this.clients.delete(client);
    const queue = this.queues[wait.db.index];
    for (const key of wait.keys) {
      const clients = queue.get(key);
      clients?.delete(client);
      if (clients?.size === 0) queue.delete(key);
    }
  }

  /** The key may serve somebody. */
  signal(db: Database, key: string): void {
    if (this.queues[db.index].has(key)) this.ready.push({ db, key });
  }

  /** Keys of the database that somebody waits for. */
  keysOf(db: Database): IterableIterator<string> {
    return this.queues[db.index].keys();
  }

  get pending(): boolean {
    return this.ready.length > 0;
  }

  /**
   * Runs the waiting commands whose keys are ready, and those that become ready thereby. False when one of
   * them met what is not in memory: all wait for it then, so that the order of service stays what it is.
   */
  serve(): boolean {
    if (this.fetching) return false;
    const { context, faults } = this.server;
    const outer = context.set;
    context.set = this.set;
    while (this.ready.length > 0) {
      const { db, key } = this.ready[0];
      if (!this.serveKey(db, key)) {
        this.fetching = true;
        this.set = context.set!;
        faults.await(this.set, (error) => this.serveAgain(error));
        break;
      }
      this.ready.shift();
      this.next = null;
    }
    context.set = outer;
    if (this.fetching) return false;
    this.set?.release();
    this.set = null;
    return true;
  }

  private serveKey(db: Database, key: string): boolean {
    const clients = this.queues[db.index].get(key);
    if (clients === undefined) return true;
    const slice = Slice.from(Buffer.from(key, 'latin1'));
    for (const client of [...clients]) {
      this.next = client;
      const type = this.server.context.peek(db, slice);
      if (type === -1) return false;
      if (type === Type.None && client.wait?.withoutKey !== true) continue;
      if (client.wait !== null && !this.retry(client, client.wait, slice)) return false;
    }
    return true;
  }

  /** The rows are there that kept the clients from being served, or `error` says why not. */
  private serveAgain(error: Error | null): void {
    this.fetching = false;
    const { next, server } = this;
    if (error !== null && next !== null && next.wait !== null) {
      next.wait.request.entry.failed++;
      this.finish(next, (reply) => reply.error(server.faults.reason(error)));
    }
    if (!this.serve()) return;
    const { held } = this;
    this.held = [];
    for (const { client, bytes } of held) server.proceed(client, (reply) => reply.raw(bytes));
  }

  /**
   * The client's command made keys ready whose waiting clients could not be served at once: its reply,
   * and what it sends next, wait until they are, as it would see otherwise what they are about to take.
   */
  hold(client: Client, bytes: Buffer): void {
    this.server.suspend(client);
    this.held.push({ client, bytes });
  }

  private retry(client: Client, wait: Wait, key: Slice): boolean {
    const { server } = this;
    const context = server.context;
    server.output.open(client);
    const mark = context.reply.pos;
    loadRequest(context, wait.request);
    context.db = wait.db;
    context.readyKey = key;
    const done = context.run(wait.request.entry);
    context.readyKey = null;
    if (!done) {
      server.output.close();
      return false;
    }
    // It was counted when it came.
    wait.request.entry.calls--;
    if (context.blocked === null) {
      if (client.unanswered) context.reply.pos = mark;
      client.unanswered = false;
      this.end(client);
      client.unblocked = true;
      server.turns.resume(client);
    }
    context.blocked = null;
    server.output.close();
    if (client.wait === null)
      server.tracking.remember(context.args, context.argc, client, wait.request.entry);
    context.announce(context.takeStaged());
    server.tracking.flushPending(client);
    context.signalReady();
    return true;
  }

  /** Ends the waits whose time is up. */
  expire(now: number): void {
    for (const client of [...this.clients]) {
      const wait = client.wait!;
      if (wait.deadline !== 0 && wait.deadline <= now) this.finish(client, wait.onTimeout);
    }
  }

  /** Milliseconds until the next wait is over; Infinity when none is. */
  nextDeadline(): number {
    let next = Infinity;
    for (const client of this.clients) {
      const { deadline } = client.wait!;
      if (deadline !== 0 && deadline < next) next = deadline;
    }
    return next;
  }

  /** Ends a wait with a reply of another kind: a timeout's or CLIENT UNBLOCK's error. */
  finish(client: Client, write: (reply: Reply) => void): void {
    const { server } = this;
    this.end(client);
    client.unblocked = true;
    server.output.answer(client, write);
    server.turns.resume(client);
  }
}
