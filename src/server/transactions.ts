/** MULTI's queue of a client, and the keys that clients watch. */
import type { Slice } from '../bytes/slice.ts';
import type { Database } from '../store/api.ts';
import type { Client } from './client.ts';
import type { StoredRequest } from './stored-request.ts';

export class Transaction {
  readonly requests: StoredRequest[] = [];
  /** A command could not be queued: EXEC refuses. */
  failed = false;
  /** Flags of the queued commands, together. */
  flags = 0;
  bytes = 0;
}

interface WatchedKey {
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
    const name = key.latin1();
    const watchers = this.watchers[db.index];
    let clients = watchers.get(name);
    if (clients === undefined) watchers.set(name, (clients = new Set()));
    if (clients.has(client)) return;
    clients.add(client);
    const keys = this.watched.get(client);
    if (keys === undefined) this.watched.set(client, [{ db, key: name }]);
    else keys.push({ db, key: name });
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

  keysOf(client: Client): readonly WatchedKey[] {
    return this.watched.get(client) ?? [];
  }

  changed(db: Database, key: string): void {
    const clients = this.watchers[db.index].get(key);
    if (clients !== undefined) for (const client of clients) client.watchBroken = true;
  }

  /** Every watched key of the database for which `touched` holds has changed. */
  databaseChanged(db: Database, touched: (key: string) => boolean): void {
    for (const [key, clients] of this.watchers[db.index]) {
      if (touched(key)) for (const client of clients) client.watchBroken = true;
    }
  }
}
