/**
 * Changes of a store as data, so that they can be done to the real store and to the model, written to a
 * log as JSON and replayed from it. All are deterministic on the same state.
 */
import { Slice } from '../../src/bytes/slice.ts';
import { ByteSink } from '../../src/bytes/sink.ts';
import { Type, WrongTypeError, type Database, type Store } from '../../src/store/api.ts';
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
    default:
      return 'none';
  }
}

/** Mixed operations over two databases; `size` scales how large collections become. */
export function randomOperation(random: Random, now: number, size: number): Operation {
  const db = random.below(2);
  const kind = random.pick(['s', 'l', 'u', 'h', 'z']);
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
