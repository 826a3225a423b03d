/**
 * Channels, patterns and shard channels. A message is written once for each protocol version and
 * pattern; all its receivers' output refers to the same bytes.
 */
import { matchGlob } from '../bytes/glob.ts';
import { Slice } from '../bytes/slice.ts';
import { Gate, type Client } from './client.ts';
import type { Reply } from './reply.ts';
import type { Server } from './server.ts';

/** Names are kept as one character a byte. */
type Name = string;

export type SubscriptionKind = 'channel' | 'pattern' | 'shard';

/** The words of the pushes, for each kind. */
const WORDS = {
  channel: { subscribed: 'subscribe', unsubscribed: 'unsubscribe' },
  pattern: { subscribed: 'psubscribe', unsubscribed: 'punsubscribe' },
  shard: { subscribed: 'ssubscribe', unsubscribed: 'sunsubscribe' },
} as const;

export class PubSub {
  private readonly server: Server;
  readonly channels = new Map<Name, Set<Client>>();
  readonly patterns = new Map<Name, Set<Client>>();
  /** The patterns as slices, to match with. */
  private readonly patternSlices = new Map<Name, Slice>();
  readonly shards = new Map<Name, Set<Client>>();

  constructor(server: Server) {
    this.server = server;
  }

  private table(kind: SubscriptionKind): Map<Name, Set<Client>> {
    return kind === 'channel' ? this.channels : kind === 'pattern' ? this.patterns : this.shards;
  }

  /** What the counts in pushes are: channels and patterns together, shard channels apart. */
  private count(client: Client, kind: SubscriptionKind): number {
    const { channel, pattern, shard } = client.subscriptions;
    return kind === 'shard' ? shard.size : channel.size + pattern.size;
  }

  subscribe(client: Client, kind: SubscriptionKind, name: Name, reply: Reply): void {
    const names = client.subscriptions[kind];
    if (!names.has(name)) {
      names.add(name);
      const table = this.table(kind);
      const clients = table.get(name);
      if (clients === undefined) {
        table.set(name, new Set([client]));
        if (kind === 'pattern') this.patternSlices.set(name, Slice.from(Buffer.from(name, 'latin1')));
      } else clients.add(client);
    }
    writeSubscription(reply, WORDS[kind].subscribed, name, this.count(client, kind));
    client.subscribed = true;
    this.updateGate(client);
  }

  /** Without a name: all of the kind. */
  unsubscribe(client: Client, kind: SubscriptionKind, names: readonly Name[], reply: Reply): void {
    const word = WORDS[kind].unsubscribed;
    const gone = names.length > 0 ? names : [...client.subscriptions[kind]];
    for (const name of gone) {
      this.remove(client, kind, name);
      writeSubscription(reply, word, name, this.count(client, kind));
    }
    if (gone.length === 0) writeSubscription(reply, word, null, this.count(client, kind));
    const { channel, pattern, shard } = client.subscriptions;
    if (channel.size + pattern.size + shard.size === 0) client.subscribed = false;
    this.updateGate(client);
  }

  private remove(client: Client, kind: SubscriptionKind, name: Name): void {
    if (!client.subscriptions[kind].delete(name)) return;
    const table = this.table(kind);
    const clients = table.get(name)!;
    clients.delete(client);
    if (clients.size > 0) return;
    table.delete(name);
    if (kind === 'pattern') this.patternSlices.delete(name);
  }

  /** Drops all subscriptions without a word. */
  forget(client: Client): void {
    for (const kind of ['channel', 'pattern', 'shard'] as const)
      for (const name of [...client.subscriptions[kind]]) this.remove(client, kind, name);
    client.subscribed = false;
    this.updateGate(client);
  }

  /** A subscribed client in RESP2 may send few commands; call it when either changes. */
  updateGate(client: Client): void {
    client.setGate(Gate.Subscribed, client.subscribed && client.protocol === 2);
  }

  /** How many clients a message to the channel reaches now. */
  receivers(channel: Buffer, sharded: boolean): number {
    const name = channel.latin1Slice();
    if (sharded) return this.shards.get(name)?.size ?? 0;
    let count = this.channels.get(name)?.size ?? 0;
    if (this.patterns.size === 0) return count;
    const slice = Slice.from(channel);
    for (const [pattern, clients] of this.patterns)
      if (matchGlob(this.patternSlices.get(pattern)!, slice)) count += clients.size;
    return count;
  }

  publish(channel: Buffer, message: Buffer, sharded: boolean): void {
    const name = channel.latin1Slice();
    const clients = (sharded ? this.shards : this.channels).get(name);
    if (clients !== undefined)
      this.server.output.pushToAll(clients, (reply) => {
        reply.push(3);
        reply.bulkString(sharded ? 'smessage' : 'message');
        reply.bulkBytes(channel);
        reply.bulkBytes(message);
      });
    if (sharded || this.patterns.size === 0) return;
    const slice = Slice.from(channel);
    for (const [pattern, subscribers] of this.patterns) {
      if (!matchGlob(this.patternSlices.get(pattern)!, slice)) continue;
      this.server.output.pushToAll(subscribers, (reply) => {
        reply.push(4);
        reply.bulkString('pmessage');
        reply.bulkBytes(Buffer.from(pattern, 'latin1'));
        reply.bulkBytes(channel);
        reply.bulkBytes(message);
      });
    }
  }
}

function writeSubscription(reply: Reply, word: string, name: Name | null, count: number): void {
  reply.push(3);
  reply.bulkString(word);
  if (name === null) reply.null();
  else reply.bulkBytes(Buffer.from(name, 'latin1'));
  reply.integer(count);
}
