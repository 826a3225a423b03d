/**
 * Recovery: takes rows of the engine into memory, clean. Rows whose owner is gone are passed
 * over, and their ranges reported, so that they are purged: most are on the purge list already, but a
 * database may have been flushed without its collections having been listed one by one.
 *
 * A damaged row makes its key's value a damaged one. An expiry index is made anew from the deadlines of
 * the keys.
 */
import { SLICE_PADDING, Slice, viewOf } from '../bytes/slice.ts';
import { KIND_SHIFT, Kind, PAGE_BYTES } from './arena.ts';
import type { Keyspace, KeyspaceGround } from './keyspace.ts';
import type { NamelessRow } from './nameless-rows.ts';
import { HEADER_BYTES, pageRowBytes } from './page.ts';
import { Type } from './api.ts';
import {
  collectionOfRoot,
  FLAG_TREE,
  NEXT_PAGE_WORD,
  TREE_PREFIX_BYTES,
  TYPE_MASK,
  TYPE_SHIFT,
  TYPE_SYSTEM,
} from './record.ts';
import {
  EXPIRY_ROW_BYTES,
  KEY_ROW_PREFIX,
  LONG_KEY_ROW_BYTES,
  MAX_ROW_KEY_BYTES,
  PAGE_ROW_BYTES,
  RowKind,
  VALUE_FLAG_DAMAGED,
  VALUE_FLAG_DEADLINE,
  VALUE_FLAG_TREE,
  VALUE_HEADER_BYTES,
} from './row-format.ts';
import { RowError } from './row-source.ts';

/** What the meta row says of a keyspace, to be compared with the rows. */
export interface ExpectedCounts {
  keyspace: Keyspace;
  /** What it is called when it is not so. */
  name: string;
  size: number;
  expiring: number;
}

const KNOWN_VALUE_FLAGS = VALUE_FLAG_DEADLINE | VALUE_FLAG_TREE | VALUE_FLAG_DAMAGED;

export class RowReader {
  private readonly ground: KeyspaceGround;
  private readonly expected: readonly ExpectedCounts[];
  private readonly byId = new Map<number, Keyspace>();
  /** Slot of each collection whose root has been read, by id. */
  private readonly slots = new Map<number, number>();
  /** Key rows whose deadlines and collections nobody knows, by keyspace. */
  private readonly unreadable = new Map<Keyspace, number>();
  /** Keyspaces whose expiry index is damaged. */
  readonly unordered = new Set<Keyspace>();
  /** Damaged rows that do not tell their key, and their keyspaces; undefined where that is damaged too. */
  private readonly strays: { row: NamelessRow; keyspace: Keyspace | undefined }[] = [];
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
    expected: readonly ExpectedCounts[],
    onOrphan: (kind: number, id: number) => void,
  ) {
    this.ground = ground;
    this.onOrphan = onOrphan;
    this.expected = expected;
    for (const { keyspace } of expected) this.byId.set(keyspace.id, keyspace);
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
    const length = this.copyRow(key, keyStart, keyEnd, value, valueStart, valueEnd);
    switch (this.memory[0]) {
      case RowKind.Key:
      case RowKind.LongKey:
        this.loadKey(keyLength, length);
        break;
      case RowKind.Page:
        this.loadPage(keyLength, length);
        break;
      case RowKind.ExpiryIndex:
        this.installExpiryIndex(keyLength, length);
        break;
      case RowKind.Meta:
        break;
      default:
        throw this.wrong(keyLength, 'of no known kind');
    }
  }

  /** Takes a key's row that was fetched, unless the key is in memory; returns its record. */
  fetchedKey(keyspace: Keyspace, row: Buffer, keyStart: number, valueStart: number, end: number): number {
    this.copyRow(row, keyStart, valueStart, row, valueStart, end);
    return this.installKey(keyspace, valueStart - keyStart, end - keyStart, false);
  }

  /** Takes a page's row that was fetched; returns its block. */
  fetchedPage(
    slot: number,
    number: number,
    row: Buffer,
    keyStart: number,
    valueStart: number,
    end: number,
  ): number {
    this.copyRow(row, keyStart, valueStart, row, valueStart, end);
    return this.installPage(slot, number, valueStart - keyStart, end - keyStart);
  }

  private orphan(id: number): void {
    if (this.memory[0] === this.orphanKind && id === this.orphanId) return;
    // They may be of a collection whose own row is damaged.
    if (this.memory[0] === RowKind.Page && this.unreadable.size + this.strays.length > 0) return;
    this.orphanKind = this.memory[0];
    this.orphanId = id;
    this.onOrphan(this.orphanKind, id);
  }

  /** Marks the value of a key whose row was fetched and is damaged; returns its record. */
  fetchedDamagedKey(keyspace: Keyspace, key: Slice, hash: number): number {
    this.payload.set(this.memory, viewOf(this.memory.buffer), 0, 0);
    const ref = keyspace.install(key, hash, Type.String, this.payload, 0, 0, false);
    keyspace.markDamaged(ref);
    return ref;
  }

  /** See RowSource.damagedRow. */
  damaged(key: Uint8Array, keyStart: number, keyEnd: number): boolean {
    const length = keyEnd - keyStart;
    const u8 = this.memory;
    u8.set(key.subarray(keyStart, Math.min(keyEnd, keyStart + u8.length)));
    const view = viewOf(u8.buffer);
    if (u8[0] === RowKind.Page && length === PAGE_ROW_BYTES) return this.damagedPage(pageOwner(view));
    if (u8[0] === RowKind.ExpiryIndex && length === EXPIRY_ROW_BYTES) {
      const keyspace = this.byId.get(view.getUint32(1));
      if (keyspace !== undefined) this.unordered.add(keyspace);
      return keyspace !== undefined;
    }
    return length >= KEY_ROW_PREFIX && this.damagedKey(view, length);
  }

  /** A damaged row that may be a key's. */
  private damagedKey(view: DataView, length: number): boolean {
    const { key, payload } = this;
    const keyspace = this.byId.get(view.getUint32(1));
    key.set(this.memory, view, KEY_ROW_PREFIX, length);
    const hash = this.ground.hasher.hash32(key);
    const told = view.getInt32(5);
    if (this.memory[0] !== RowKind.Key || keyspace === undefined || hash !== told) {
      const row = Buffer.from(this.memory.subarray(0, length));
      const hashes = this.memory[0] === RowKind.LongKey ? [told] : [hash, told];
      this.strays.push({ row: { row, hashes }, keyspace });
      return false;
    }
    payload.set(this.memory, view, 0, 0);
    keyspace.markDamaged(keyspace.install(key, hash, Type.String, payload, 0, 0, true));
    this.unreadable.set(keyspace, (this.unreadable.get(keyspace) ?? 0) + 1);
    return true;
  }

  private damagedPage(id: number): boolean {
    const slot = this.slots.get(id);
    // Of a collection that is gone, or whose own row is damaged.
    if (slot !== undefined) this.markCollection(slot);
    return true;
  }

  private markCollection(slot: number): void {
    const { arena, collections } = this.ground;
    const record = collections.record[slot];
    const i32 = arena.i32[record >>> arena.chunkShift];
    const word = (record & arena.unitMask) << 2;
    const keyspace = this.byNumber(i32[word + 1] >>> 16);
    if (((i32[word] >>> TYPE_SHIFT) & TYPE_MASK) === TYPE_SYSTEM) this.unordered.add(keyspace);
    else keyspace.markDamaged(record);
  }

  private byNumber(number: number): Keyspace {
    return (this.expected.find(({ keyspace }) => keyspace.number === number) as ExpectedCounts).keyspace;
  }

  private wrong(keyLength: number, what: string): RowError {
    return new RowError(`row ${this.memory.toString('hex', 0, Math.min(keyLength, 64))}: ${what}`);
  }

  private copyRow(
    key: Uint8Array,
    keyStart: number,
    keyEnd: number,
    value: Uint8Array,
    valueStart: number,
    valueEnd: number,
  ): number {
    const keyLength = keyEnd - keyStart;
    const length = keyLength + valueEnd - valueStart;
    if (length > this.memory.length) {
      this.memory = Buffer.from(new ArrayBuffer(2 * length + SLICE_PADDING), 0, 2 * length);
    }
    this.memory.set(key.subarray(keyStart, keyEnd), 0);
    this.memory.set(value.subarray(valueStart, valueEnd), keyLength);
    return length;
  }

  private loadKey(keyLength: number, end: number): void {
    if (keyLength < KEY_ROW_PREFIX) throw this.wrong(keyLength, 'key cut off');
    const id = viewOf(this.memory.buffer).getUint32(1);
    const keyspace = this.byId.get(id);
    if (keyspace === undefined) this.orphan(id);
    else this.installKey(keyspace, keyLength, end, true);
  }

  /** `loading`: nothing but rows is in memory, and they are counted. */
  private installKey(keyspace: Keyspace, keyLength: number, end: number, loading: boolean): number {
    const u8 = this.memory;
    const view = viewOf(u8.buffer);
    const long = u8[0] === RowKind.LongKey;
    if (long ? keyLength !== LONG_KEY_ROW_BYTES : keyLength < KEY_ROW_PREFIX)
      throw this.wrong(keyLength, 'key cut off');
    let pos = keyLength;
    if (end - pos < VALUE_HEADER_BYTES) throw this.wrong(keyLength, 'value cut off');
    const type = u8[pos];
    const flags = u8[pos + 1];
    const encoding = u8[pos + 2];
    if (type === 0 || type >= TYPE_SYSTEM || (flags & ~KNOWN_VALUE_FLAGS) !== 0) {
      throw this.wrong(keyLength, `type ${type}, flags ${flags}`);
    }
    pos += VALUE_HEADER_BYTES;
    let deadline = 0;
    if ((flags & VALUE_FLAG_DEADLINE) !== 0) {
      if (end - pos < 8) throw this.wrong(keyLength, 'value cut off');
      deadline = view.getFloat64(pos, true);
      pos += 8;
    }
    const { key, payload } = this;
    if (long) {
      const bytes = end - pos < 4 ? 0 : view.getUint32(pos, true);
      pos += 4;
      if (bytes <= MAX_ROW_KEY_BYTES || end - pos < bytes) throw this.wrong(keyLength, 'long key cut off');
      key.set(u8, view, pos, pos + bytes);
      pos += bytes;
    } else {
      key.set(u8, view, KEY_ROW_PREFIX, keyLength);
    }
    const hash = this.ground.hasher.hash32(key);
    if (hash !== view.getInt32(5)) throw this.wrong(keyLength, 'the hash is not that of the key');
    if (end - pos > 0xffff) throw this.wrong(keyLength, 'value too long');
    payload.set(u8, view, pos, end);

    const tree = (flags & VALUE_FLAG_TREE) !== 0;
    if (tree && end - pos < TREE_PREFIX_BYTES) throw this.wrong(keyLength, 'root of a tree cut off');
    if (!loading) {
      const present = keyspace.table.find(hash, key.view, key.start, key.end);
      if (present !== 0) return present;
    }
    const ref = keyspace.install(key, hash, type, payload, encoding, deadline, loading);
    if (tree) {
      const id = collectionOfRoot(view, pos);
      const slot = this.openCollection(keyspace, ref, id);
      if (loading) this.slots.set(id, slot);
    }
    if ((flags & VALUE_FLAG_DAMAGED) !== 0) keyspace.markDamaged(ref);
    return ref;
  }

  /** Makes a record the root of the collection with that id; returns its slot. */
  private openCollection(keyspace: Keyspace, ref: number, id: number): number {
    const { arena, collections } = this.ground;
    const slot = collections.add(id, ref);
    const word = (ref & arena.unitMask) << 2;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    i32[word] |= FLAG_TREE;
    i32[keyspace.payloadWord(ref)] = slot;
    return slot;
  }

  private installExpiryIndex(keyLength: number, end: number): void {
    const view = viewOf(this.memory.buffer);
    if (keyLength !== EXPIRY_ROW_BYTES) throw this.wrong(keyLength, 'key cut off');
    const keyspace = this.byId.get(view.getUint32(1));
    if (keyspace === undefined) {
      this.orphan(view.getUint32(1));
      return;
    }
    this.payload.set(this.memory, view, keyLength, end);
    const ref = keyspace.expiry.install(this.payload);
    if (ref === 0) throw this.wrong(keyLength, 'value cut off');
    const id = collectionOfRoot(view, keyLength);
    this.slots.set(id, this.openCollection(keyspace, ref, id));
  }

  private loadPage(keyLength: number, end: number): void {
    const view = viewOf(this.memory.buffer);
    if (keyLength !== PAGE_ROW_BYTES) throw this.wrong(keyLength, 'key cut off');
    const id = pageOwner(view);
    const slot = this.slots.get(id);
    if (slot === undefined) this.orphan(id);
    else this.installPage(slot, view.getUint32(7), keyLength, end);
  }

  private installPage(slot: number, number: number, keyLength: number, end: number): number {
    const u8 = this.memory;
    const view = viewOf(u8.buffer);
    const length = end - keyLength;
    const head = length < HEADER_BYTES ? 0 : view.getInt32(keyLength, true);
    if (
      head >>> KIND_SHIFT !== Kind.Page ||
      length !== pageRowBytes(head, PAGE_BYTES) ||
      view.getUint32(keyLength + 8, true) !== number
    ) {
      throw this.wrong(keyLength, 'not the page that its key says');
    }
    const { arena, collections } = this.ground;
    const earlier = collections.find(slot, number);
    if (earlier !== 0) arena.free(earlier);
    const ref = length === PAGE_BYTES ? arena.allocPage() : arena.alloc(length);
    const at = (ref & arena.unitMask) << 4;
    u8.copy(arena.u8[ref >>> arena.chunkShift], at, keyLength, end);
    arena.i32[ref >>> arena.chunkShift][(at >>> 2) + 3] = slot;
    collections.place(slot, number, ref);
    return ref;
  }

  /** Those of `keyspaces` whose expiry index is damaged or missing. */
  unorderedOf(keyspaces: readonly Keyspace[]): Keyspace[] {
    for (const { keyspace, expiring } of this.expected)
      if (expiring > 0 && keyspace.expiry.record === 0) this.unordered.add(keyspace);
    return keyspaces.filter((keyspace) => this.unordered.has(keyspace));
  }

  /** The keys stay in the engine. */
  leaveKeys(): void {
    for (const { keyspace, size } of this.expected) {
      keyspace.away.notLoaded(size);
      keyspace.size = size;
      keyspace.expiring = keyspace.expiry.size;
    }
  }

  /** All rows have been read. Throws when their number is not what the meta row says. */
  finish(): void {
    for (const slot of this.slots.values()) this.countPages(slot);
    for (const { keyspace, name, size, expiring } of this.expected) {
      const nameless = size - keyspace.size;
      const unknown = (this.unreadable.get(keyspace) ?? 0) + nameless;
      // Deadlines without a key are those of values that are, or were, damaged.
      const missing = expiring - keyspace.expiring;
      const known = missing <= unknown || expiring === keyspace.expiry.size;
      if (nameless < 0 || missing < 0 || !known || !this.addStrays(keyspace, nameless)) {
        throw new RowError(
          `${name}: ${keyspace.size} keys, ${keyspace.expiring} with a deadline; the meta row says ${size} and ${expiring}`,
        );
      }
      keyspace.expiring = keyspace.expiry.size;
    }
    for (const keyspace of this.unordered) keyspace.orderDeadlines();
  }

  /** So many of the rows that do not tell their key are keys of this keyspace; false when there are not so many. */
  private addStrays(keyspace: Keyspace, count: number): boolean {
    const strays = this.strays.filter((stray) => (stray.keyspace ?? keyspace) === keyspace);
    if (count > strays.length) return false;
    if (count > 0) {
      keyspace.addNameless(
        strays.map(({ row }) => row),
        count,
      );
    }
    return true;
  }

  /** Every number that a collection has used is a page or a free page: one that is missing is damage. */
  private countPages(slot: number): void {
    const { arena, collections } = this.ground;
    const record = collections.record[slot];
    const next =
      arena.i32[record >>> arena.chunkShift][this.expected[0].keyspace.payloadWord(record) + NEXT_PAGE_WORD];
    if (collections.resident[slot] !== next - 1) this.markCollection(slot);
  }
}

/** Id of the collection that a page row's key names. */
function pageOwner(view: DataView): number {
  return view.getUint16(1) * 2 ** 32 + view.getUint32(3);
}
