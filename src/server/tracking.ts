/** Client-side caching: which clients may hold which keys, and what they are told when these change. */
import type { Slice } from '../bytes/slice.ts';
import type { Database } from '../store/api.ts';
import { Gate, type Client } from './client.ts';
import type { CommandEntry } from './command-entry.ts';
import { Flag } from './command-entry.ts';
import { keyPositions } from './key-positions.ts';
import type { Reply } from './reply.ts';
import type { Server } from './server.ts';

/** CLIENT TRACKING of a connection. */
export interface TrackingState {
  /** Client that gets the invalidations instead; 0: the client itself. */
  redirect: number;
  brokenRedirect: boolean;
  broadcast: boolean;
  optIn: boolean;
  optOut: boolean;
  noLoop: boolean;
  /** CLIENT CACHING was given for the next command. */
  caching: boolean;
  /** Of broadcasting; one character a byte. */
  prefixes: Set<string>;
}

const CHANNEL = Buffer.from('__redis__:invalidate');

export class Tracking {
  private readonly server: Server;
  private readonly clients = new Set<Client>();
  /** Key, whatever the database, to the ids of clients that have read it. */
  private readonly readers = new Map<string, Set<number>>();
  /** For each prefix the keys that changed in this turn, with the client that changed them last. */
  private readonly broadcasts = new Map<string, Map<string, Client>>();
  private readonly prefixes = new Map<string, Set<Client>>();
  /** Invalidations for the client whose command runs; they follow its reply. */
  private pending: (string | null)[] = [];
  /** Sum of the sizes of `readers`' sets. */
  items = 0;

  constructor(server: Server) {
    this.server = server;
    server.config.onChange('tracking-table-max-keys', () => this.limit());
  }

  get anyone(): boolean {
    return this.clients.size > 0;
  }

  get clientCount(): number {
    return this.clients.size;
  }

  get keyCount(): number {
    return this.readers.size;
  }

  get prefixCount(): number {
    return this.prefixes.size;
  }

  enable(client: Client, state: TrackingState): void {
    client.tracking = state;
    this.clients.add(client);
    client.setGate(Gate.Tracking, true);
    for (const prefix of state.prefixes) {
      const clients = this.prefixes.get(prefix);
      if (clients === undefined) this.prefixes.set(prefix, new Set([client]));
      else clients.add(client);
    }
    this.server.keyspace.observe();
  }

  disable(client: Client): void {
    const state = client.tracking;
    if (state === null) return;
    for (const prefix of state.prefixes) {
      const clients = this.prefixes.get(prefix);
      clients?.delete(client);
      if (clients?.size === 0) this.prefixes.delete(prefix);
    }
    client.tracking = null;
    this.clients.delete(client);
    client.setGate(Gate.Tracking, false);
    this.server.keyspace.observe();
  }

  /** The client has run a command: the keys that it read are remembered. */
  remember(args: readonly Slice[], argc: number, client: Client, entry: CommandEntry): void {
    const state = client.tracking;
    if (state === null || state.broadcast || (entry.flags & Flag.ReadOnly) === 0) return;
    if ((state.optIn && !state.caching) || (state.optOut && state.caching)) return;
    if ((entry.flags & Flag.PubSub) !== 0) return;
    for (const { index } of keyPositions(entry.command, args, argc) ?? []) {
      const key = args[index].latin1();
      let readers = this.readers.get(key);
      if (readers === undefined) this.readers.set(key, (readers = new Set()));
      if (!readers.has(client.id)) {
        readers.add(client.id);
        this.items++;
      }
    }
    this.limit();
  }

  /** Keeps the table within `tracking-table-max-keys`: the oldest keys count as changed. */
  private limit(): void {
    const max = this.server.config.number('tracking-table-max-keys');
    if (max === 0) return;
    for (const key of this.readers.keys()) {
      if (this.readers.size <= max) break;
      this.forget(key);
    }
  }

  changed(_db: Database, key: string): void {
    this.invalidate(key);
  }

  private invalidate(key: string): void {
    for (const prefix of this.prefixes.keys()) {
      if (!key.startsWith(prefix)) continue;
      let keys = this.broadcasts.get(prefix);
      if (keys === undefined) this.broadcasts.set(prefix, (keys = new Map()));
      keys.set(key, this.server.context.client);
    }
    const changer = this.server.context.client;
    for (const client of this.takeReaders(key)) {
      if (client !== changer) this.send(client, [key]);
      else if (client.tracking?.noLoop !== true) this.delay(key);
    }
  }

  /** The table has no room for the key: its readers are told, whoever made them lose it. */
  private forget(key: string): void {
    const reader = this.server.context.client;
    for (const client of this.takeReaders(key)) {
      if (client === reader) this.delay(key);
      else this.send(client, [key]);
    }
  }

  /** Those who may hold the key; from now on they are taken not to. */
  private takeReaders(key: string): Client[] {
    const readers = this.readers.get(key);
    if (readers === undefined) return [];
    this.readers.delete(key);
    this.items -= readers.size;
    const clients: Client[] = [];
    for (const id of readers) {
      const client = this.server.clients.get(id);
      if (client !== undefined && client.tracking !== null && !client.tracking.broadcast)
        clients.push(client);
    }
    return clients;
  }

  /** A database was emptied or exchanged: no cached key can be trusted. */
  flushed(): void {
    this.readers.clear();
    this.items = 0;
    for (const client of this.clients) {
      if (client === this.server.context.client) this.delay(null);
      else this.send(client, null);
    }
  }

  /** An invalidation for the client whose command runs: it follows the reply. */
  private delay(key: string | null): void {
    this.pending.push(key);
    this.server.context.staging = true;
  }

  /** After a command's reply: what it changed itself. */
  flushPending(client: Client): void {
    if (this.pending.length === 0) return;
    const pending = this.pending;
    this.pending = [];
    for (const key of pending) this.send(client, key === null ? null : [key]);
  }

  /** At the end of the turn: one message for each prefix to each client that broadcasts for it. */
  flushBroadcasts(): void {
    if (this.broadcasts.size === 0) return;
    for (const [prefix, keys] of this.broadcasts) {
      for (const client of this.prefixes.get(prefix) ?? []) {
        const others = [...keys].filter(([, changer]) => !client.tracking!.noLoop || changer !== client);
        if (others.length > 0)
          this.send(
            client,
            others.map(([key]) => key),
          );
      }
    }
    this.broadcasts.clear();
  }

  private send(client: Client, keys: readonly string[] | null): void {
    const state = client.tracking;
    const { server } = this;
    // Tracking may have been switched off by the command that made the change.
    if (state === null) return;
    let target = client;
    if (state.redirect !== 0) {
      const other = server.clients.get(state.redirect);
      if (other === undefined) {
        state.brokenRedirect = true;
        if (client.protocol === 3)
          server.output.push(client, (reply) => {
            reply.push(2);
            reply.bulkString('tracking-redir-broken');
            reply.integer(state.redirect);
          });
        return;
      }
      target = other;
    }
    if (target.protocol === 3) {
      server.output.push(target, (reply) => {
        reply.push(2);
        reply.bulkString('invalidate');
        writeKeys(reply, keys);
      });
    } else if (target !== client && target.subscribed) {
      server.output.push(target, (reply) => {
        reply.array(3);
        reply.bulkString('message');
        reply.bulkBytes(CHANNEL);
        writeKeys(reply, keys);
      });
    }
  }
}

function writeKeys(reply: Reply, keys: readonly string[] | null): void {
  if (keys === null) {
    reply.null();
    return;
  }
  reply.array(keys.length);
  for (const key of keys) reply.bulkBytes(Buffer.from(key, 'latin1'));
}
