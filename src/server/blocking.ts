/**
 * Clients that wait for keys (BLPOP and its like): first come, first served. A wait is the command
 * itself, run again from the start when one of its keys is ready.
 */
import { Slice } from '../bytes/slice.ts';
import { Type, type Database } from '../store/api.ts';
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
}

export class Blocking {
  private readonly server: Server;
  /** For each database, key to waiting clients in the order in which they came. */
  private readonly queues: Map<string, Set<Client>>[];
  private readonly clients = new Set<Client>();
  private ready: { db: Database; key: string }[] = [];

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
    };
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

  /** Runs the waiting commands whose keys are ready, and those that become ready thereby. */
  serve(): void {
    while (this.ready.length > 0) {
      const { db, key } = this.ready.shift()!;
      const clients = this.queues[db.index].get(key);
      if (clients === undefined) continue;
      const slice = Slice.from(Buffer.from(key, 'latin1'));
      for (const client of [...clients]) {
        if (db.type(slice) === Type.None) break;
        if (client.wait !== null) this.retry(client, client.wait);
      }
    }
  }

  private retry(client: Client, wait: Wait): void {
    const { server } = this;
    const context = server.context;
    server.output.open(client);
    loadRequest(context, wait.request);
    context.db = wait.db;
    context.resumed = true;
    context.run(wait.request.entry);
    context.resumed = false;
    if (context.blocked === null) {
      this.end(client);
      client.unblocked = true;
      server.turns.resume(client);
    }
    context.blocked = null;
    server.output.close();
    if (client.wait === null) server.tracking.remember(context, client, wait.request.entry);
    context.announce(context.takeStaged());
    server.tracking.flushPending(client);
    context.signalReady();
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
    server.output.push(client, write);
    server.turns.resume(client);
  }
}
