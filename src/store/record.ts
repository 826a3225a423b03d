/**
 * A record: a key with its type, deadline and value, in one block of the arena.
 *
 * ```
 * word 0   kind 31..30 | type 29..27 | deadline 26 | persisted 25 | tree 24 | damaged 23 | - 22..16 | key length 15..0
 * word 1   keyspace 31..16 | payload length 15..0
 * word 2   encoding 31..24 | access clock 23..0, seconds
 * [2 words deadline, float64, Unix ms: only with the deadline flag]
 * key, padded to whole words
 * payload, from a word boundary on
 * ```
 *
 * Without the tree flag the payload is the value itself: a string's bytes, or a small collection
 * packed. With it the payload is the root of a collection: word 0 its slot in the collection table
 * (volatile), words 1 and 2 its id (low, high), and from word 3 on the descriptor of its tree.
 *
 * *Persisted* says that the engine may hold a row of this key, so that a removal needs a delete row:
 * until that is written the record stays, with type None. It and the access clock change without `touch`.
 *
 * *Damaged* says that rows of this value cannot be read: nothing of it is served, and its type and
 * payload mean nothing, but that with the tree flag the payload names the collection whose pages go with it.
 */
import { Slice } from '../bytes/slice.ts';
import { Kind, KIND_SHIFT, type Arena } from './arena.ts';
import type { CollectionTable } from './collection-table.ts';
import type { Hasher } from './hash.ts';
import type { TreeAhead } from './tree-ahead.ts';

export const RECORD_HEADER_BYTES = 12;
export const TYPE_SHIFT = 27;
export const TYPE_MASK = 7;
export const FLAG_DEADLINE = 1 << 26;
export const FLAG_PERSISTED = 1 << 25;
export const FLAG_TREE = 1 << 24;
export const FLAG_DAMAGED = 1 << 23;
export const KEY_LENGTH_MASK = 0xffff;
export const PAYLOAD_LENGTH_MASK = 0xffff;

/** Longest key, by the width of the key length. */
export const MAX_KEY_BYTES = 0xffff;
/** Longest payload of a record, by the width of the payload length. */
export const MAX_PAYLOAD_BYTES = 0xffff;

/** Type of the hidden records that hold a keyspace's own trees; beyond the types of values. */
export const TYPE_SYSTEM = 7;

/** First bytes of a tree's payload, before the tree's own descriptor. */
export const TREE_PREFIX_BYTES = 12;
/** Word of a tree's payload that holds the number after its last page: after slot, id, root, height and count. */
export const NEXT_PAGE_WORD = 6;

/** First word of a record. */
export function recordHead(type: number, flags: number, keyLength: number): number {
  return (Kind.Record << KIND_SHIFT) | (type << TYPE_SHIFT) | flags | keyLength;
}

/** Offset of the key from the record's start, given the record's first word. */
export function keyOffset(head: number): number {
  return RECORD_HEADER_BYTES + ((head & FLAG_DEADLINE) >>> 23);
}

/** Offset of the payload from the record's start, given the record's first word. */
export function payloadOffset(head: number): number {
  return keyOffset(head) + (((head & KEY_LENGTH_MASK) + 3) & ~3);
}

/** Bytes that a copy into the arena makes word by word; above it a call of Buffer.copy is faster. */
const WORD_COPY_MAX = 160;

/** Copies a slice to a word boundary of a chunk. Writes whole words: up to 3 bytes more. */
export function copyIn(arena: Arena, chunk: number, at: number, from: Slice): void {
  const { view, start, end } = from;
  if (end - start > WORD_COPY_MAX) {
    from.u8.copy(arena.u8[chunk], at, start, end);
    return;
  }
  const i32 = arena.i32[chunk];
  for (let word = at >>> 2, byte = start; byte < end; byte += 4) i32[word++] = view.getInt32(byte, true);
}

/**
 * Writes a record with all that belongs to it into a new block, without marks, in no table. Returns its place.
 * @param clock access clock in seconds
 * @param deadline 0 for none; its flag need not be among `flags`
 */
export function writeRecord(
  arena: Arena,
  keyspace: number,
  key: Slice,
  type: number,
  flags: number,
  clock: number,
  encoding: number,
  deadline: number,
  payload: Slice,
): number {
  const length = payload.end - payload.start;
  const head = recordHead(type, deadline === 0 ? flags : flags | FLAG_DEADLINE, key.end - key.start);
  const ref = arena.alloc(payloadOffset(head) + length);
  const chunk = ref >>> arena.chunkShift;
  const i32 = arena.i32[chunk];
  const word = (ref & arena.unitMask) << 2;
  i32[word] = head;
  i32[word + 1] = (keyspace << 16) | length;
  i32[word + 2] = (encoding << 24) | (clock & 0xffffff);
  if (deadline !== 0) arena.view[chunk].setFloat64((word << 2) + RECORD_HEADER_BYTES, deadline, true);
  copyIn(arena, chunk, (word << 2) + keyOffset(head), key);
  copyIn(arena, chunk, (word << 2) + payloadOffset(head), payload);
  return ref;
}

/** Writes the first words of a tree's root: its slot and the id of its collection. */
export function writeRoot(view: DataView, start: number, slot: number, id: number): void {
  view.setInt32(start, slot, true);
  view.setInt32(start + 4, id | 0, true);
  view.setInt32(start + 8, Math.floor(id / 2 ** 32), true);
}

/** The id of the collection whose tree's root begins there. */
export function collectionOfRoot(view: DataView, start: number): number {
  return view.getUint32(start + 4, true) + view.getUint32(start + 8, true) * 2 ** 32;
}

/** What values are made in and of; the tier. */
export interface Ground {
  readonly arena: Arena;
  readonly hasher: Hasher;
  readonly collections: CollectionTable;
  readonly ahead: TreeAhead;
  /** The collection is no value any more: its id goes to the purge list, its pages are freed in slices. */
  dropCollection(slot: number): void;
}

/** The keys of one database as a value needs them: to come into being, to move and to vanish. */
export interface RecordOwner {
  /** A new record for the absent key, with room for `payloadLength` bytes, dirty. */
  createRecord(key: Slice, hash: number, type: number, payloadLength: number): number;
  /** Changes the payload's length, keeping what fits; returns the record's place, which may be new. Dirty afterwards. */
  resizeRecord(ref: number, hash: number, payloadLength: number): number;
  /** Removes the key with its value. */
  removeRecord(ref: number, hash: number): void;
}

const NO_MEMORY = new Slice();
const NO_WORDS = new Int32Array(0);

/**
 * The place of one key's value, held by an open handle (a list, a set, …). Recycled; the tier points
 * it at a record, or at a key that is absent (`ref` 0, an empty payload): then the record comes into
 * being with the first `resize` or `makeTree`.
 *
 * Whoever changes payload bytes in place calls `touch` first. `resize`, `makeTree`, `makePacked` and
 * `removeKey` do it themselves; after them the fields show the new place.
 */
export class ValueRef {
  readonly ground: Ground;
  /** The record; 0 while the key is absent. */
  ref = 0;
  hash = 0;
  type = 0;
  /** Memory of the record's chunk. */
  u8: Buffer = NO_MEMORY.u8;
  view: DataView = NO_MEMORY.view;
  i32: Int32Array = NO_WORDS;
  /** Byte offset of the payload in the chunk; a multiple of four. */
  start = 0;
  /** Bytes of payload. */
  length = 0;
  /** The payload is the root of a tree. */
  isTree = false;

  private owner: RecordOwner | null = null;
  private readonly key = new Slice();

  constructor(ground: Ground) {
    this.ground = ground;
  }

  /** Points at the value of `key`, which lies in record `ref`, or is absent when `ref` is 0. The key is borrowed. */
  open(owner: RecordOwner, key: Slice, hash: number, type: number, ref: number): void {
    this.owner = owner;
    this.key.setSlice(key);
    this.hash = hash;
    this.type = type;
    this.locate(ref);
  }

  /** Points at a payload wherever it lies, on a word boundary if it is a root; it can only be read. */
  look(u8: Buffer, view: DataView, start: number, length: number, isTree: boolean): void {
    this.u8 = u8;
    this.view = view;
    if (isTree) this.i32 = new Int32Array(view.buffer, 0, view.byteLength >>> 2);
    this.start = start;
    this.length = length;
    this.isTree = isTree;
  }

  /** Shows the record's place anew. */
  private locate(ref: number): void {
    this.ref = ref;
    if (ref === 0) {
      this.u8 = NO_MEMORY.u8;
      this.view = NO_MEMORY.view;
      this.i32 = NO_WORDS;
      this.start = 0;
      this.length = 0;
      this.isTree = false;
      return;
    }
    const arena = this.ground.arena;
    const chunk = ref >>> arena.chunkShift;
    const i32 = arena.i32[chunk];
    const word = (ref & arena.unitMask) << 2;
    const head = i32[word];
    this.u8 = arena.u8[chunk];
    this.view = arena.view[chunk];
    this.i32 = i32;
    this.start = (word << 2) + payloadOffset(head);
    this.length = i32[word + 1] & PAYLOAD_LENGTH_MASK;
    this.isTree = (head & FLAG_TREE) !== 0;
  }

  /** Slot of the tree's collection. */
  get collection(): number {
    return this.i32[this.start >>> 2];
  }

  /** Index into `i32` of the tree's own descriptor. */
  get descriptor(): number {
    return (this.start + TREE_PREFIX_BYTES) >>> 2;
  }

  /** Before payload bytes are changed in place. */
  touch(): void {
    this.ground.arena.touch(this.ref);
  }

  /** Sets the payload's length; what fits is kept, what is added has undefined content. Creates an absent key. */
  resize(length: number): void {
    const owner = this.owner as RecordOwner;
    this.locate(
      this.ref === 0
        ? owner.createRecord(this.key, this.hash, this.type, length)
        : owner.resizeRecord(this.ref, this.hash, length),
    );
  }

  /**
   * Makes the payload the root of a tree in a new collection, with a descriptor of that many zero
   * bytes. The packed value is lost: keep a copy of what goes into the tree.
   */
  makeTree(descriptorBytes: number): void {
    this.resize(TREE_PREFIX_BYTES + descriptorBytes);
    const { arena, collections } = this.ground;
    const slot = collections.open(this.ref);
    this.i32[(this.ref & arena.unitMask) << 2] |= FLAG_TREE;
    this.isTree = true;
    const word = this.start >>> 2;
    this.i32.fill(0, word, (this.start + this.length + 3) >>> 2);
    writeRoot(this.view, this.start, slot, collections.id[slot]);
  }

  /**
   * Makes the payload a packed value of `length` bytes, of undefined content. The tree is dropped with
   * its pages: keep a copy of what goes into the packed value.
   */
  makePacked(length: number): void {
    const arena = this.ground.arena;
    const slot = this.collection;
    this.resize(length);
    this.i32[(this.ref & arena.unitMask) << 2] &= ~FLAG_TREE;
    this.isTree = false;
    this.ground.dropCollection(slot);
  }

  /** Removes the key, whose collection is empty or of no use any more; pages that are left are freed in slices. */
  removeKey(): void {
    if (this.ref !== 0) (this.owner as RecordOwner).removeRecord(this.ref, this.hash);
    this.locate(0);
  }
}

/**
 * A recycled object over one value: a list, a set, …. The tier makes it with `new List(ground)`, points
 * its `value` at a key, and calls `opened` before it is used. A value with an empty payload is empty.
 */
export interface ValueHandle {
  readonly value: ValueRef;
  opened(): void;
}
