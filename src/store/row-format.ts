/**
 * Rows of records and pages as they stand in the engine and in redo files. docs/memory-tier.md has
 * the layout; numbers in keys are big-endian, so that rows sort by them, in values little-endian.
 */
import type { ByteSink } from '../bytes/sink.ts';
import { Slice } from '../bytes/slice.ts';
import type { Range } from '../engines/engine.ts';
import type { Arena } from './arena.ts';
import type { Hasher } from './hash.ts';
import { pageRowBytes } from './page.ts';
import {
  FLAG_DAMAGED,
  FLAG_DEADLINE,
  FLAG_TREE,
  KEY_LENGTH_MASK,
  keyOffset,
  PAYLOAD_LENGTH_MASK,
  payloadOffset,
  RECORD_HEADER_BYTES,
  TREE_PREFIX_BYTES,
  TYPE_MASK,
  TYPE_SHIFT,
} from './record.ts';

/** First bytes of row keys. Expiry indexes sort before keys, keys before pages, so that owners are read before their pages. */
export const RowKind = {
  ExpiryIndex: 0x65, // e
  LongKey: 0x6a, // j
  Key: 0x6b, // k
  Meta: 0x6d, // m
  Page: 0x70, // p
} as const;

/** Keys of the meta row and of its copy, which is the first of all rows so that damage seldom meets both. */
export const META_KEY = Buffer.from('m');
export const META_COPY_KEY = Buffer.from('M');

/** Whether a row's key, at bytes [start, end), is that of the meta row or of its copy. */
export function isMetaKey(bytes: Uint8Array, start: number, end: number): boolean {
  return end - start === 1 && (bytes[start] === META_KEY[0] || bytes[start] === META_COPY_KEY[0]);
}

/** Longer keys stand in the value of their row, which is named by 96 bits of hash. LMDB's keys end at 1,978 bytes. */
export const MAX_ROW_KEY_BYTES = 1024;

/** Bytes of a key row's key before the key itself: kind, database id, hash. */
export const KEY_ROW_PREFIX = 9;
export const LONG_KEY_ROW_BYTES = 17;
export const EXPIRY_ROW_BYTES = 5;
export const PAGE_ROW_BYTES = 11;

/** Bytes of a key row's value before deadline, long key and payload: type, flags, encoding, 0. */
export const VALUE_HEADER_BYTES = 4;
export const VALUE_FLAG_DEADLINE = 1;
export const VALUE_FLAG_TREE = 2;
/** A sound row that says that rows of this value have been damaged. */
export const VALUE_FLAG_DAMAGED = 4;

/** Key of the row of a page. */
export function pageRowKey(collectionId: number, number: number): Buffer {
  const key = Buffer.alloc(PAGE_ROW_BYTES);
  key[0] = RowKind.Page;
  key.writeUIntBE(collectionId, 1, 6);
  key.writeUInt32BE(number, 7);
  return key;
}

/** Id of the collection whose root is in a key's or expiry index's row, [start, valueStart) and [valueStart, end); 0 when there is none. */
export function ownedCollection(row: Buffer, start: number, valueStart: number, end: number): number {
  let at = valueStart;
  if (row[start] !== RowKind.ExpiryIndex) {
    if (end - at < VALUE_HEADER_BYTES || (row[at + 1] & VALUE_FLAG_TREE) === 0) return 0;
    at += VALUE_HEADER_BYTES;
    if ((row[valueStart + 1] & VALUE_FLAG_DEADLINE) !== 0) at += 8;
    if (row[start] === RowKind.LongKey) at += end - at < 4 ? end : 4 + row.readUInt32LE(at);
  }
  return end - at < TREE_PREFIX_BYTES ? 0 : row.readUInt32LE(at + 4) + row.readUInt32LE(at + 8) * 2 ** 32;
}

/** Deadline in the value of a key row, 0 when it has none. */
export function deadlineOfRow(row: Buffer, valueStart: number, end: number): number {
  if (end - valueStart < VALUE_HEADER_BYTES + 8 || (row[valueStart + 1] & VALUE_FLAG_DEADLINE) === 0)
    return 0;
  return row.readDoubleLE(valueStart + VALUE_HEADER_BYTES);
}

/** All rows of one kind. */
export function kindRange(kind: number): Range {
  return { start: Uint8Array.of(kind), end: Uint8Array.of(kind + 1) };
}

/** All rows of the pages of a collection. */
export function pageRange(collectionId: number): Range {
  return { start: pageRowKey(collectionId, 0), end: pageRowKey(collectionId + 1, 0) };
}

/** The rows of one kind of a database's keys, those whose hashes, unsigned, are in [from, to). */
export function hashRange(kind: number, databaseId: number, from = 0, to = 2 ** 32): Range {
  return {
    start: hashPrefix(kind, databaseId, from),
    end:
      to < 2 ** 32
        ? hashPrefix(kind, databaseId, to)
        : hashPrefix(kind, databaseId + 1, 0).subarray(0, EXPIRY_ROW_BYTES),
  };
}

/** Id of the database whose key a row is of, -1 when it is of none. */
export function databaseOfKeyRow(row: Buffer): number {
  return row[0] === RowKind.Key || row[0] === RowKind.LongKey ? row.readUInt32BE(1) : -1;
}

/** The key of a key's row as another database has it. */
export function withDatabase(row: Buffer, databaseId: number): Buffer {
  const other = Buffer.from(row);
  other.writeUInt32BE(databaseId, 1);
  return other;
}

/** What the rows of all keys of one hash, unsigned, begin with. */
export function hashPrefix(kind: number, databaseId: number, hash: number): Buffer {
  const key = Buffer.alloc(KEY_ROW_PREFIX);
  key[0] = kind;
  key.writeUInt32BE(databaseId, 1);
  key.writeUInt32BE(hash, 5);
  return key;
}

/** In place of a value's length in a batch: the row is deleted. */
const DELETED = -1;

export class RowWriter {
  private readonly arena: Arena;
  private readonly hasher: Hasher;
  /** Two more hashes, for the rows of long keys. */
  private readonly longHashers: readonly [Hasher, Hasher];
  private readonly key = new Slice();

  constructor(arena: Arena, hasher: Hasher) {
    this.arena = arena;
    this.hasher = hasher;
    this.longHashers = [hasher.derive(1), hasher.derive(2)];
  }

  /** Hash of a record's key. */
  hashOf(ref: number): number {
    const { arena } = this;
    const word = (ref & arena.unitMask) << 2;
    const head = arena.i32[ref >>> arena.chunkShift][word];
    const start = (word << 2) + keyOffset(head);
    return this.hasher.hashRange(
      arena.view[ref >>> arena.chunkShift],
      start,
      start + (head & KEY_LENGTH_MASK),
    );
  }

  /** Key of the row of a key. */
  keyRowKey(databaseId: number, hash: number, key: Slice): Buffer {
    const long = key.length > MAX_ROW_KEY_BYTES;
    const row = Buffer.alloc(long ? LONG_KEY_ROW_BYTES : KEY_ROW_PREFIX + key.length);
    row[0] = long ? RowKind.LongKey : RowKind.Key;
    row.writeUInt32BE(databaseId, 1);
    row.writeInt32BE(hash, 5);
    if (long) {
      row.writeInt32BE(this.longHashers[0].hash32(key), 9);
      row.writeInt32BE(this.longHashers[1].hash32(key), 13);
    } else {
      key.u8.copy(row, KEY_ROW_PREFIX, key.start, key.end);
    }
    return row;
  }

  /** The row of a record that holds a value; returns the key's hash. */
  put(sink: ByteSink, ref: number, databaseId: number): number {
    const { arena } = this;
    const chunk = ref >>> arena.chunkShift;
    const i32 = arena.i32[chunk];
    const word = (ref & arena.unitMask) << 2;
    const head = i32[word];
    const base = word << 2;
    const keyLength = head & KEY_LENGTH_MASK;
    const payload = base + payloadOffset(head);
    const payloadLength = i32[word + 1] & PAYLOAD_LENGTH_MASK;
    const deadline = (head & FLAG_DEADLINE) !== 0;
    const tree = (head & FLAG_TREE) !== 0;
    const long = keyLength > MAX_ROW_KEY_BYTES;
    const valueLength = VALUE_HEADER_BYTES + (deadline ? 8 : 0) + (long ? 4 + keyLength : 0) + payloadLength;
    const hash = this.rowKey(sink, ref, databaseId, valueLength);

    sink.ensure(valueLength);
    const { u8, view } = sink;
    let pos = sink.pos;
    u8[pos] = (head >>> TYPE_SHIFT) & TYPE_MASK;
    u8[pos + 1] =
      (deadline ? VALUE_FLAG_DEADLINE : 0) |
      (tree ? VALUE_FLAG_TREE : 0) |
      ((head & FLAG_DAMAGED) === 0 ? 0 : VALUE_FLAG_DAMAGED);
    u8[pos + 2] = i32[word + 2] >>> 24;
    u8[pos + 3] = 0;
    pos += VALUE_HEADER_BYTES;
    if (deadline) {
      view.setInt32(pos, i32[word + RECORD_HEADER_BYTES / 4], true);
      view.setInt32(pos + 4, i32[word + RECORD_HEADER_BYTES / 4 + 1], true);
      pos += 8;
    }
    sink.pos = pos;
    if (long) {
      sink.u32(keyLength);
      sink.copy(arena.u8[chunk], base + keyOffset(head), base + keyOffset(head) + keyLength);
    }
    const payloadAt = sink.pos;
    sink.copy(arena.u8[chunk], payload, payload + payloadLength);
    // The collection's slot means nothing on disk.
    if (tree) sink.view.setInt32(payloadAt, 0, true);
    return hash;
  }

  /** The row that deletes a record's row; returns the key's hash. */
  delete(sink: ByteSink, ref: number, databaseId: number): number {
    return this.rowKey(sink, ref, databaseId, DELETED);
  }

  /** Lengths and key of a record's row; returns the key's hash. */
  private rowKey(sink: ByteSink, ref: number, databaseId: number, valueLength: number): number {
    const { arena, key } = this;
    const chunk = ref >>> arena.chunkShift;
    const word = (ref & arena.unitMask) << 2;
    const head = arena.i32[chunk][word];
    const keyLength = head & KEY_LENGTH_MASK;
    const start = (word << 2) + keyOffset(head);
    const hash = this.hasher.hashRange(arena.view[chunk], start, start + keyLength);
    const long = keyLength > MAX_ROW_KEY_BYTES;
    sink.ensure(8 + LONG_KEY_ROW_BYTES);
    const { view } = sink;
    const pos = sink.pos;
    view.setInt32(pos, long ? LONG_KEY_ROW_BYTES : KEY_ROW_PREFIX + keyLength, true);
    view.setInt32(pos + 4, valueLength, true);
    view.setUint8(pos + 8, long ? RowKind.LongKey : RowKind.Key);
    view.setInt32(pos + 9, databaseId);
    view.setInt32(pos + 13, hash);
    if (!long) {
      sink.pos = pos + 8 + KEY_ROW_PREFIX;
      sink.copy(arena.u8[chunk], start, start + keyLength);
      return hash;
    }
    key.set(arena.u8[chunk], arena.view[chunk], start, start + keyLength);
    view.setInt32(pos + 17, this.longHashers[0].hash32(key));
    view.setInt32(pos + 21, this.longHashers[1].hash32(key));
    sink.pos = pos + 8 + LONG_KEY_ROW_BYTES;
    return hash;
  }

  /** The row of a database's expiry index: its root, whose slot is left out. */
  expiryIndex(sink: ByteSink, ref: number, databaseId: number): void {
    const { arena } = this;
    const word = (ref & arena.unitMask) << 2;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const start = (word << 2) + payloadOffset(i32[word]);
    const length = i32[word + 1] & PAYLOAD_LENGTH_MASK;
    sink.ensure(8 + EXPIRY_ROW_BYTES + length);
    const { view } = sink;
    const pos = sink.pos;
    view.setInt32(pos, EXPIRY_ROW_BYTES, true);
    view.setInt32(pos + 4, length, true);
    view.setUint8(pos + 8, RowKind.ExpiryIndex);
    view.setInt32(pos + 9, databaseId);
    sink.pos = pos + 8 + EXPIRY_ROW_BYTES;
    sink.copy(arena.u8[ref >>> arena.chunkShift], start, start + length);
    sink.view.setInt32(pos + 8 + EXPIRY_ROW_BYTES, 0, true);
  }

  /** The row of a page. */
  page(sink: ByteSink, ref: number, collectionId: number, pageBytes: number): void {
    const { arena } = this;
    const word = (ref & arena.unitMask) << 2;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const length = pageRowBytes(i32[word], pageBytes);
    sink.ensure(8 + PAGE_ROW_BYTES + length);
    const { view } = sink;
    const pos = sink.pos;
    view.setInt32(pos, PAGE_ROW_BYTES, true);
    view.setInt32(pos + 4, length, true);
    view.setUint8(pos + 8, RowKind.Page);
    view.setUint16(pos + 9, Math.floor(collectionId / 2 ** 32));
    view.setInt32(pos + 11, collectionId | 0);
    view.setInt32(pos + 15, i32[word + 2]);
    sink.pos = pos + 8 + PAGE_ROW_BYTES;
    sink.copy(arena.u8[ref >>> arena.chunkShift], word << 2, (word << 2) + length);
    sink.view.setInt32(pos + 8 + PAGE_ROW_BYTES + 12, 0, true);
  }
}
