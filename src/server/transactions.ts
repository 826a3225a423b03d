/** MULTI's queue of a client, and the keys that clients watch. */
import { Slice } from '../bytes/slice.ts';
import type { Database } from '../store/api.ts';
import type { Client } from './client.ts';
import type { StoredRequest } from './stored-request.ts';

export class Transaction {
  readonly requests: StoredRequest[] = [];
  /** A command could not be queued: EXEC refuses. */
  failed = false;
  /** Flags that some queued command has. */
  flags = 0;
  /** Flags that all queued commands have. */
  commonFlags = -1;
  /** Memory of the queued requests. */
  bytes = 0;

  add(request: StoredRequest): void {
    this.requests.push(request);
    this.flags |= request.entry.flags;
    this.commonFlags &= request.entry.flags;
    this.bytes += request.bytes;
  }
}

export interface WatchedKey {
  db: Database;
  key: string;
}

/** WATCH: which clients are to be told of a key's change. */
export class Watches {
  /** For each database, key to the clients that watch it. */
  private readonly watchers: Map<string, Set<Client>>[];
  private readonly watched = new Map<Client, WatchedKey[]>();

  constructor(databases: number) {
    this.watchers = Array.from({ length: databases }, () => new Map<string, Set<Client>>());
  }

  get anyone(): boolean {
    return this.watched.size > 0;
  }

  watch(client: Client, db: Database, key: Slice): void {
    this.add(client, db, key.latin1());
  }

  /** @param name one character a byte */
  add(client: Client, db: Database, name: string): void {
    const watchers = this.watchers[db.index];
    let clients = watchers.get(name);
    if (clients === undefined) watchers.set(name, (clients = new Set()));
    if (clients.has(client)) return;
    clients.add(client);
    const keys = this.watched.get(client);
    if (keys === undefined) this.watched.set(client, [{ db, key: name }]);
    else keys.push({ db, key: name });
  }

  /** What the client watches. */
  of(client: Client): readonly WatchedKey[] {
    return this.watched.get(client) ?? [];
  }

  unwatch(client: Client): void {
    client.watchBroken = false;
    for (const { db, key } of this.watched.get(client) ?? []) {
      const watchers = this.watchers[db.index];
      const clients = watchers.get(key);
      clients?.delete(client);
      if (clients?.size === 0) watchers.delete(key);
    }
    this.watched.delete(client);
  }

  /** Lets watched keys whose time is up expire, which breaks their watches. */
  expire(client: Client): void {
    for (const { db, key } of this.watched.get(client) ?? []) db.type(Slice.from(Buffer.from(key, 'latin1')));
  }

  changed(db: Database, key: string): void {
    const clients = this.watchers[db.index].get(key);
    if (clients !== undefined) for (const client of clients) client.watchBroken = true;
  }

  /** Who watches keys of the database for which `touched` holds. */
  touchedBy(db: Database, touched: (key: string) => boolean): Client[] {
    const found: Client[] = [];
    for (const [key, clients] of this.watchers[db.index]) if (touched(key)) found.push(...clients);
    return found;
  }

  /** Keys that the clients watch have changed. */
  break(clients: readonly Client[]): void {
    for (const client of clients) client.watchBroken = true;
  }
}
