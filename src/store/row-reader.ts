/**
 * Recovery: takes rows of the engine into memory, clean. Rows whose owner is gone are passed
 * over, and their ranges reported, so that they are purged: most are on the purge list already, but a
 * database may have been flushed without its collections having been listed one by one.
 */
import { SLICE_PADDING, Slice, viewOf } from '../bytes/slice.ts';
import { KIND_SHIFT, Kind, PAGE_BYTES } from './arena.ts';
import type { Keyspace, KeyspaceGround } from './keyspace.ts';
import { HEADER_BYTES, pageRowBytes } from './page.ts';
import { FLAG_TREE, TREE_PREFIX_BYTES, TYPE_SYSTEM } from './record.ts';
import {
  EXPIRY_ROW_BYTES,
  KEY_ROW_PREFIX,
  LONG_KEY_ROW_BYTES,
  MAX_ROW_KEY_BYTES,
  PAGE_ROW_BYTES,
  RowKind,
  VALUE_FLAG_DEADLINE,
  VALUE_FLAG_TREE,
  VALUE_HEADER_BYTES,
} from './row-format.ts';
import { RowError } from './row-source.ts';

/** What the meta row says of a database, to be compared with the rows. */
export interface ExpectedCounts {
  index: number;
  size: number;
  expiring: number;
}

const KNOWN_VALUE_FLAGS = VALUE_FLAG_DEADLINE | VALUE_FLAG_TREE;

export class RowReader {
  private readonly ground: KeyspaceGround;
  private readonly keyspaces: readonly Keyspace[];
  private readonly expected: readonly ExpectedCounts[];
  private readonly byId = new Map<number, Keyspace>();
  /** Slot of each collection whose root has been read, by id. */
  private readonly slots = new Map<number, number>();
  private readonly key = new Slice();
  private readonly payload = new Slice();
  /** A row's key and value, in padded memory as slices must be. */
  private memory = Buffer.from(new ArrayBuffer(4096 + SLICE_PADDING), 0, 4096);

  /** Called once for each id, in the order of rows, that has rows and no owner. */
  private readonly onOrphan: (kind: number, id: number) => void;
  private orphanKind = 0;
  private orphanId = -1;

  constructor(
    ground: KeyspaceGround,
    keyspaces: readonly Keyspace[],
    expected: readonly ExpectedCounts[],
    onOrphan: (kind: number, id: number) => void,
  ) {
    this.ground = ground;
    this.onOrphan = onOrphan;
    this.keyspaces = keyspaces;
    this.expected = expected;
    for (const keyspace of keyspaces) this.byId.set(keyspace.id, keyspace);
  }

  install(
    key: Uint8Array,
    keyStart: number,
    keyEnd: number,
    value: Uint8Array,
    valueStart: number,
    valueEnd: number,
  ): void {
    const keyLength = keyEnd - keyStart;
    const length = keyLength + valueEnd - valueStart;
    if (length > this.memory.length) {
      this.memory = Buffer.from(new ArrayBuffer(2 * length + SLICE_PADDING), 0, 2 * length);
    }
    const u8 = this.memory;
    u8.set(key.subarray(keyStart, keyEnd), 0);
    u8.set(value.subarray(valueStart, valueEnd), keyLength);
    switch (u8[0]) {
      case RowKind.Key:
      case RowKind.LongKey:
        this.installKey(keyLength, length);
        break;
      case RowKind.Page:
        this.installPage(keyLength, length);
        break;
      case RowKind.ExpiryIndex:
        this.installExpiryIndex(keyLength, length);
        break;
      case RowKind.Meta:
        break;
      default:
        throw this.damaged(keyLength, 'of no known kind');
    }
  }

  private orphan(id: number): void {
    if (this.memory[0] === this.orphanKind && id === this.orphanId) return;
    this.orphanKind = this.memory[0];
    this.orphanId = id;
    this.onOrphan(this.orphanKind, id);
  }

  private damaged(keyLength: number, what: string): RowError {
    return new RowError(`row ${this.memory.toString('hex', 0, Math.min(keyLength, 64))}: ${what}`);
  }

  private installKey(keyLength: number, end: number): void {
    const u8 = this.memory;
    const view = viewOf(u8.buffer);
    const long = u8[0] === RowKind.LongKey;
    if (long ? keyLength !== LONG_KEY_ROW_BYTES : keyLength < KEY_ROW_PREFIX)
      throw this.damaged(keyLength, 'key cut off');
    const keyspace = this.byId.get(view.getUint32(1));
    if (keyspace === undefined) {
      this.orphan(view.getUint32(1));
      return;
    }
    let pos = keyLength;
    if (end - pos < VALUE_HEADER_BYTES) throw this.damaged(keyLength, 'value cut off');
    const type = u8[pos];
    const flags = u8[pos + 1];
    const encoding = u8[pos + 2];
    if (type === 0 || type >= TYPE_SYSTEM || (flags & ~KNOWN_VALUE_FLAGS) !== 0) {
      throw this.damaged(keyLength, `type ${type}, flags ${flags}`);
    }
    pos += VALUE_HEADER_BYTES;
    let deadline = 0;
    if ((flags & VALUE_FLAG_DEADLINE) !== 0) {
      if (end - pos < 8) throw this.damaged(keyLength, 'value cut off');
      deadline = view.getFloat64(pos, true);
      pos += 8;
    }
    const { key, payload } = this;
    if (long) {
      const bytes = end - pos < 4 ? 0 : view.getUint32(pos, true);
      pos += 4;
      if (bytes <= MAX_ROW_KEY_BYTES || end - pos < bytes) throw this.damaged(keyLength, 'long key cut off');
      key.set(u8, view, pos, pos + bytes);
      pos += bytes;
    } else {
      key.set(u8, view, KEY_ROW_PREFIX, keyLength);
    }
    const hash = this.ground.hasher.hash32(key);
    if (hash !== view.getInt32(5)) throw this.damaged(keyLength, 'the hash is not that of the key');
    if (end - pos > 0xffff) throw this.damaged(keyLength, 'value too long');
    payload.set(u8, view, pos, end);

    const ref = keyspace.install(key, hash, type, payload, encoding, deadline);
    if ((flags & VALUE_FLAG_TREE) !== 0) {
      if (end - pos < TREE_PREFIX_BYTES) throw this.damaged(keyLength, 'root of a tree cut off');
      this.openCollection(ref, view.getUint32(pos + 4, true) + view.getUint32(pos + 8, true) * 2 ** 32);
    }
  }

  /** Makes a record the root of the collection with that id. */
  private openCollection(ref: number, id: number): void {
    const { arena, collections } = this.ground;
    const slot = collections.add(id, ref);
    const word = (ref & arena.unitMask) << 2;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    i32[word] |= FLAG_TREE;
    i32[this.keyspaces[0].payloadWord(ref)] = slot;
    this.slots.set(id, slot);
  }

  private installExpiryIndex(keyLength: number, end: number): void {
    const view = viewOf(this.memory.buffer);
    if (keyLength !== EXPIRY_ROW_BYTES) throw this.damaged(keyLength, 'key cut off');
    const keyspace = this.byId.get(view.getUint32(1));
    if (keyspace === undefined) {
      this.orphan(view.getUint32(1));
      return;
    }
    this.payload.set(this.memory, view, keyLength, end);
    const ref = keyspace.expiry.install(this.payload);
    if (ref === 0) throw this.damaged(keyLength, 'value cut off');
    this.openCollection(
      ref,
      view.getUint32(keyLength + 4, true) + view.getUint32(keyLength + 8, true) * 2 ** 32,
    );
  }

  private installPage(keyLength: number, end: number): void {
    const u8 = this.memory;
    const view = viewOf(u8.buffer);
    if (keyLength !== PAGE_ROW_BYTES) throw this.damaged(keyLength, 'key cut off');
    const id = view.getUint16(1) * 2 ** 32 + view.getUint32(3);
    const slot = this.slots.get(id);
    if (slot === undefined) {
      this.orphan(id);
      return;
    }
    const number = view.getUint32(7);
    const length = end - keyLength;
    const head = length < HEADER_BYTES ? 0 : view.getInt32(keyLength, true);
    if (
      head >>> KIND_SHIFT !== Kind.Page ||
      length !== pageRowBytes(head, PAGE_BYTES) ||
      view.getUint32(keyLength + 8, true) !== number
    ) {
      throw this.damaged(keyLength, 'not the page that its key says');
    }
    const { arena, collections } = this.ground;
    const earlier = collections.find(slot, number);
    if (earlier !== 0) arena.free(earlier);
    const ref = length === PAGE_BYTES ? arena.allocPage() : arena.alloc(length);
    const at = (ref & arena.unitMask) << 4;
    u8.copy(arena.u8[ref >>> arena.chunkShift], at, keyLength, end);
    arena.i32[ref >>> arena.chunkShift][(at >>> 2) + 3] = slot;
    collections.place(slot, number, ref);
  }

  /** All rows have been read. Throws when their number is not what the meta row says. */
  finish(): void {
    for (const { index, size, expiring } of this.expected) {
      const keyspace = this.keyspaces[index];
      if (keyspace.size !== size || keyspace.expiring !== expiring) {
        throw new RowError(
          `database ${index}: ${keyspace.size} keys, ${keyspace.expiring} with a deadline; the meta row says ${size} and ${expiring}`,
        );
      }
    }
  }
}
