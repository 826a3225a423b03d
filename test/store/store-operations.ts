/**
 * Changes of a store as data, so that they can be done to the real store and to the model, written to a
 * log as JSON and replayed from it. All are deterministic on the same state.
 */
import { Slice } from '../../src/bytes/slice.ts';
import { ByteSink } from '../../src/bytes/sink.ts';
import {
  Type,
  WrongTypeError,
  type Database,
  type PendingEntry,
  type Store,
  type Stream,
} from '../../src/store/api.ts';
import { cloneId, formatId, incrementId, newStreamId } from '../../src/store/stream-id.ts';
import type { Random } from './random.ts';

export type Operation =
  | ['set', number, string, string]
  | ['write', number, string, number, string]
  | ['remove', number, string]
  | ['expire', number, string, number]
  | ['rename' | 'copy', number, string, number, string]
  | ['push', number, string, 'left' | 'right', string[]]
  | ['list-set' | 'list-insert', number, string, number, string]
  | ['list-remove', number, string, number, number]
  | ['set-add' | 'set-remove' | 'zset-remove' | 'hash-remove', number, string, string[]]
  | ['hash-set', number, string, [string, string][]]
  | ['zset-set', number, string, [string, number][]]
  /** Each entry has the id that many sequence numbers after the last one. */
  | ['stream-add', number, string, number, string[][]]
  | ['stream-remove' | 'stream-trim', number, string, number, number]
  | ['group', number, string, string, 'create' | 'destroy']
  /** A consumer is handed entries from a rank on, or acknowledges them, or goes. */
  | ['deliver' | 'acknowledge', number, string, string, string, number, number]
  | ['consumer-remove', number, string, string, string]
  | ['flush', number]
  | ['swap', number, number]
  /** Looks at every key, which removes what has expired. */
  | ['touch'];

const text = (value: string): Slice => Slice.from(Buffer.from(value, 'latin1'));

/** Does the operation; one on a key of another type does nothing. */
export function run(store: Store, operation: Operation): void {
  try {
    change(store, operation);
  } catch (error) {
    if (!(error instanceof WrongTypeError)) throw error;
  }
}

function change(store: Store, operation: Operation): void {
  if (operation[0] === 'touch') {
    touch(store);
    return;
  }
  if (operation[0] === 'swap') {
    store.swap(operation[1], operation[2]);
    return;
  }
  const db = store.database(operation[1]);
  if (operation[0] === 'flush') {
    store.flush(operation[1]);
    return;
  }
  const key = text(operation[2]);
  switch (operation[0]) {
    case 'set':
      db.setString(key, text(operation[3]));
      break;
    case 'write':
      db.string(key, true).write(operation[3], text(operation[4]));
      break;
    case 'remove':
      db.remove(key);
      break;
    case 'expire':
      if (db.type(key) !== Type.None) db.setExpiry(key, operation[3]);
      break;
    case 'rename':
    case 'copy':
      if (db.type(key) !== Type.None && !(operation[1] === operation[3] && operation[2] === operation[4])) {
        db[operation[0]](key, store.database(operation[3]), text(operation[4]));
      }
      break;
    case 'push': {
      const list = db.list(key, true);
      for (const element of operation[4]) {
        if (operation[3] === 'left') list.pushLeft(text(element));
        else list.pushRight(text(element));
      }
      break;
    }
    case 'list-set': {
      const list = db.list(key);
      if (list !== null) list.set(operation[3] % list.length, text(operation[4]));
      break;
    }
    case 'list-insert': {
      const list = db.list(key);
      if (list !== null) list.insert(operation[3] % (list.length + 1), text(operation[4]));
      break;
    }
    case 'list-remove': {
      const list = db.list(key);
      if (list === null) break;
      const from = operation[3] % list.length;
      list.remove(from, Math.min(operation[4], list.length - from));
      break;
    }
    case 'set-add': {
      const set = db.set(key, true);
      for (const member of operation[3]) set.add(text(member));
      break;
    }
    case 'set-remove': {
      for (const member of operation[3]) db.set(key)?.remove(text(member));
      break;
    }
    case 'hash-set': {
      const hash = db.hash(key, true);
      for (const [field, value] of operation[3]) hash.set(text(field), text(value));
      break;
    }
    case 'hash-remove': {
      for (const field of operation[3]) db.hash(key)?.remove(text(field));
      break;
    }
    case 'zset-set': {
      const zset = db.zset(key, true);
      for (const [member, score] of operation[3]) zset.set(text(member), score);
      break;
    }
    case 'zset-remove': {
      for (const member of operation[3]) db.zset(key)?.remove(text(member));
      break;
    }
    case 'stream-add':
      for (const fields of operation[4]) {
        const stream = db.stream(key, true);
        const id = cloneId(stream.lastId);
        for (let i = 0; i < operation[3]; i++) incrementId(id);
        stream.append(id, fields.map(text), 0, fields.length);
      }
      break;
    case 'stream-trim': {
      const stream = db.stream(key);
      stream?.removeRange(operation[3] % (stream.length + 1), operation[4]);
      break;
    }
    default: {
      const stream = db.stream(key);
      if (stream !== null) changeStream(stream, operation);
    }
  }
}

/** What of a stream is no entry, and XDEL. */
function changeStream(stream: Stream, operation: Operation): void {
  const { groups } = stream;
  const ids = (from: number, count: number): Slice[] =>
    Array.from({ length: count }, (_, i) => {
      const id = newStreamId();
      stream.idAt((from + i) % (stream.length + 1), id);
      return id;
    });
  switch (operation[0]) {
    case 'stream-remove':
      for (const id of ids(operation[3], operation[4])) stream.remove(id);
      break;
    case 'group':
      if (operation[4] === 'create') groups.create(text(operation[3]), cloneId(stream.lastId), -1);
      else groups.destroy(text(operation[3]));
      break;
    case 'deliver':
    case 'acknowledge':
    case 'consumer-remove': {
      const group = groups.get(text(operation[3]));
      if (group === null) break;
      const name = text(operation[4]);
      const known = groups.consumer(group, name);
      if (operation[0] === 'consumer-remove') {
        if (known !== null) groups.removeConsumer(group, known);
        break;
      }
      for (const id of ids(operation[5], operation[6])) {
        if (operation[0] === 'acknowledge') {
          groups.removePending(group, id);
          continue;
        }
        const consumer = groups.consumer(group, name) ?? groups.createConsumer(group, name, operation[5]);
        const deliveries = (groups.pending(group, id)?.deliveries ?? 0) + 1;
        groups.setPending(group, id, { consumer: consumer.number, deliveredAt: operation[5], deliveries });
        groups.setSeen(group, consumer, operation[6]);
        groups.update(text(operation[3]), { ...group, lastId: id, entriesRead: operation[5] });
      }
    }
  }
}

function keysOf(db: Database): string[] {
  const keys: string[] = [];
  let cursor = 0;
  do {
    cursor = db.scan(cursor, 1000, (key) => keys.push(key.latin1()));
  } while (cursor !== 0);
  return keys.sort();
}

function touch(store: Store): void {
  for (let index = 0; index < store.databaseCount; index++) {
    const db = store.database(index);
    for (const key of keysOf(db)) db.type(text(key));
  }
}

/** All that the store holds, as text to compare. */
export function contentOf(store: Store): string {
  touch(store);
  const lines: string[] = [];
  for (let index = 0; index < store.databaseCount; index++) {
    const db = store.database(index);
    const keys = keysOf(db);
    for (const key of keys) lines.push(`${index} ${key} ${db.expiry(text(key))} ${valueOf(db, text(key))}`);
    lines.push(`${index}: ${db.size} keys, ${db.expiring} with a deadline`);
  }
  return lines.join('\n');
}

function valueOf(db: Database, key: Slice): string {
  const items: string[] = [];
  switch (db.type(key)) {
    case Type.String: {
      const value = db.string(key)!;
      const bytes = new ByteSink();
      value.read(0, value.length, bytes);
      return `string ${bytes.written().latin1Slice()}`;
    }
    case Type.List:
      db.list(key)!.forEachFrom(0, 1, (element) => items.push(element.latin1()) > 0);
      return `list ${items.join(',')}`;
    case Type.Set:
      db.set(key)!.forEachFrom(0, (member) => items.push(member.latin1()) > 0);
      return `set ${items.sort().join(',')}`;
    case Type.Hash:
      db.hash(key)!.forEachFrom(0, (field, value) => items.push(`${field.latin1()}=${value.latin1()}`) > 0);
      return `hash ${items.sort().join(',')}`;
    case Type.ZSet:
      db.zset(key)!.forEachFrom(0, 1, (member, score) => items.push(`${member.latin1()}=${score}`) > 0);
      return `zset ${items.join(',')}`;
    case Type.Stream:
      return `stream ${streamOf(db.stream(key)!)}`;
    default:
      return 'none';
  }
}

function streamOf(stream: Stream): string {
  const { groups } = stream;
  const lines: string[] = [
    `${formatId(stream.lastId)} ${formatId(stream.maxDeletedId)} ${stream.entriesAdded} ${stream.length}`,
  ];
  const first = newStreamId();
  stream.forEachFrom(0, 1, (id, fields, count) => {
    const texts = fields.slice(0, count).map((field) => field.latin1());
    return lines.push(`${formatId(id)} ${texts.join('=')}`) > 0;
  });
  for (const name of groups.names()) {
    const group = groups.get(name)!;
    const counts = `${groups.consumerCount(group)} ${groups.pendingCount(group)}`;
    lines.push(`group ${name.latin1()} ${formatId(group.lastId)} ${group.entriesRead} ${counts}`);
    const pending: [string, PendingEntry][] = [];
    groups.forEachPending(group, first, (id, entry) => pending.push([formatId(id), entry]) > 0);
    for (const [id, { consumer, deliveredAt, deliveries }] of pending)
      lines.push(`${id} ${groups.consumerName(group, consumer).latin1()} ${deliveredAt} ${deliveries}`);
    for (const consumer of groups.consumers(group)) {
      const owned: string[] = [];
      groups.forEachOwned(group, consumer, first, (id) => owned.push(formatId(id)) > 0);
      const count = groups.ownedCount(group, consumer);
      lines.push(`consumer ${consumer.name.latin1()} ${consumer.seenAt} ${count} ${owned.join(' ')}`);
    }
  }
  return lines.join(',');
}

/** Mixed operations over two databases; `size` scales how large collections become. */
export function randomOperation(random: Random, now: number, size: number): Operation {
  const db = random.below(2);
  const kind = random.pick(['s', 'l', 'u', 'h', 'z', 'x']);
  const key = `${kind}${random.below(12)}${random.below(60) === 0 ? 'x'.repeat(1500) : ''}`;
  const item = (): string =>
    `${random.below(3 * size)}`.padEnd(random.below(40) === 0 ? random.below(4000) : random.below(24), '.');
  const items = (): string[] => Array.from({ length: 1 + random.below(size) }, item);
  const dice = random.below(100);
  if (dice < 4) return ['remove', db, key];
  if (dice < 10) return ['expire', db, key, random.below(4) === 0 ? 0 : now + 1 + random.below(5000)];
  if (dice < 14) {
    return [random.pick(['rename', 'copy'] as const), db, key, random.below(2), `${kind}${random.below(12)}`];
  }
  if (random.below(400) === 0) return random.below(2) === 0 ? ['flush', db] : ['swap', 0, 1];
  switch (kind) {
    case 's':
      if (random.below(2) === 0)
        return ['set', db, key, 'v'.repeat(random.below(random.below(8) === 0 ? 40_000 : 200))];
      return ['write', db, key, random.below(random.below(8) === 0 ? 40_000 : 300), item()];
    case 'l':
      if (dice < 55) return ['push', db, key, random.pick(['left', 'right'] as const), items()];
      if (dice < 65) return ['list-set', db, key, random.below(1000), item()];
      if (dice < 75) return ['list-insert', db, key, random.below(1000), item()];
      return ['list-remove', db, key, random.below(1000), random.below(size)];
    case 'u':
      return [dice < 65 ? 'set-add' : 'set-remove', db, key, items()];
    case 'h':
      if (dice < 65) return ['hash-set', db, key, items().map((field): [string, string] => [field, item()])];
      return ['hash-remove', db, key, items()];
    case 'x': {
      const group = random.pick(['g', 'group']);
      const consumer = random.pick(['a', 'b', 'c']);
      if (dice < 50) {
        const entries = Array.from({ length: 1 + random.below(size) }, () => [
          item(),
          item(),
          item(),
          item(),
        ]);
        return ['stream-add', db, key, 1 + random.below(5), entries];
      }
      if (dice < 58) return ['stream-remove', db, key, random.below(1000), random.below(size)];
      if (dice < 63)
        return ['stream-trim', db, key, random.below(3) === 0 ? random.below(1000) : 0, random.below(size)];
      if (dice < 70) return ['group', db, key, group, dice < 69 ? 'create' : 'destroy'];
      if (dice < 86) return ['deliver', db, key, group, consumer, random.below(1000), 1 + random.below(size)];
      if (dice < 96)
        return ['acknowledge', db, key, group, consumer, random.below(1000), 1 + random.below(size)];
      return ['consumer-remove', db, key, group, consumer];
    }
    default:
      if (dice < 65)
        return [
          'zset-set',
          db,
          key,
          items().map((member): [string, number] => [member, random.below(50) / 4]),
        ];
      return ['zset-remove', db, key, items()];
  }
}
