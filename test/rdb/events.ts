/** What a visitor is told, as text, one line a call. */
import type { Slice } from '../../src/bytes/slice.ts';
import {
  RDB_VALUE_NAMES,
  RdbVisitor,
  type RdbKey,
  type StreamConsumer,
  type StreamGroup,
  type StreamState,
} from '../../src/rdb/visitor.ts';

const id = (slice: Slice): string =>
  `${slice.u8.readBigUInt64BE(slice.start)}-${slice.u8.readBigUInt64BE(slice.start + 8)}`;

/** Bytes as text; long ones by their beginning and length. */
function show(slice: Slice): string {
  const text = slice.latin1();
  return text.length > 60 ? `${text.slice(0, 3)}..${text.length}` : text;
}

export class Events extends RdbVisitor {
  readonly lines: string[] = [];

  private add(...words: (string | number)[]): void {
    this.lines.push(words.join(' '));
  }

  override begin(version: number): void {
    this.add('version', version);
  }
  override aux(name: Slice, value: Slice): void {
    this.add('aux', show(name), show(value));
  }
  override library(code: Slice): void {
    this.add('library', show(code).split('\n')[0]);
  }
  override moduleAux(name: string): void {
    this.add('module aux', name);
  }
  override resize(db: number, keys: number, expiring: number): void {
    this.add('resize', db, keys, expiring);
  }
  override beginKey(key: RdbKey): void {
    const { db, type, count, expiresAt, idleSeconds, frequency, moduleName } = key;
    this.add(RDB_VALUE_NAMES[type], show(key.key), count);
    if (db !== 0) this.add('in', db);
    if (expiresAt >= 0) this.add('expires', expiresAt);
    if (idleSeconds >= 0) this.add('idle', idleSeconds);
    if (frequency >= 0) this.add('frequency', frequency);
    if (moduleName !== '') this.add('of', moduleName);
  }
  override stringPart(bytes: Slice): void {
    this.add('=', show(bytes));
  }
  override element(bytes: Slice): void {
    this.add('+', show(bytes));
  }
  override field(field: Slice, value: Slice, expiresAt: number): void {
    this.add('+', show(field), '=', show(value), ...(expiresAt < 0 ? [] : ['until', expiresAt]));
  }
  override member(member: Slice, score: number): void {
    this.add('+', show(member), score);
  }
  override streamEntry(entry: Slice, fields: readonly Slice[], count: number): void {
    this.add('+', id(entry), ...fields.slice(0, count).map(show));
  }
  override streamEnd(state: StreamState): void {
    const { length, lastId, firstId, maxDeletedId, entriesAdded, groups } = state;
    this.add('length', length, 'last', id(lastId), 'first', id(firstId));
    this.add('deleted', id(maxDeletedId), 'added', entriesAdded, 'groups', groups);
  }
  override streamGroup(group: StreamGroup): void {
    this.add(
      'group',
      show(group.name),
      id(group.lastId),
      'read',
      group.entriesRead,
      'pending',
      group.pending,
    );
  }
  override streamPending(entry: Slice, deliveredAt: number, deliveries: number): void {
    this.add('pending', id(entry), deliveredAt, deliveries);
  }
  override streamConsumers(count: number): void {
    this.add('consumers', count);
  }
  override streamConsumer(consumer: StreamConsumer): void {
    this.add('consumer', show(consumer.name), consumer.seenAt, consumer.activeAt, consumer.pending);
  }
  override streamOwned(entry: Slice): void {
    this.add('owns', id(entry));
  }
  override endKey(): void {
    this.add('.');
  }
  override end(): void {
    this.add('end');
  }
}
