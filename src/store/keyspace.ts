/**
 * The keys and records of one database, without a clock: how records come into being, change their
 * shape and vanish, with the key table, the expiry index, collections and counts kept in step.
 *
 * A keyspace is what a database's number leads to; FLUSHDB gives the database another one and this one
 * is dropped, SWAPDB exchanges two. Its id names its rows and is never used again; its number is small
 * and stands in its records.
 */
import { Slice } from '../bytes/slice.ts';
import { Type } from './api.ts';
import type { Arena } from './arena.ts';
import { AwayKeys } from './away-keys.ts';
import { copyBytes } from './page.ts';
import { ExpiryIndex, type DeadlineTree } from './expiry-index.ts';
import { KeyTable } from './key-table.ts';
import type { Merge } from './merge.ts';
import { NamelessRows, type NamelessRow } from './nameless-rows.ts';
import {
  copyIn,
  FLAG_DAMAGED,
  FLAG_DEADLINE,
  FLAG_PERSISTED,
  FLAG_TREE,
  KEY_LENGTH_MASK,
  keyOffset,
  MAX_KEY_BYTES,
  MAX_PAYLOAD_BYTES,
  NEXT_PAGE_WORD,
  PAYLOAD_LENGTH_MASK,
  payloadOffset,
  RECORD_HEADER_BYTES,
  recordHead,
  TYPE_MASK,
  TYPE_SHIFT,
  type Ground,
  type RecordOwner,
  writeRecord,
} from './record.ts';
import { databaseOfKeyRow, withDatabase, type RowWriter } from './row-format.ts';

/** Room that is made sure of before a record is doubled, for its key and its place in the expiry index. */
const TWIN_ROOM = 128 * 1024;

const KEYS_A_STEP = 1000;

/** Moved collections after which those are looked for, at first, that need not be known any more. */
const MOVED_KEPT = 1000;

/** What a record's head says of its value alone. */
const VALUE_FLAGS = FLAG_TREE | FLAG_DAMAGED;

/** A key is longer than a record can hold. */
export class KeyTooLongError extends Error {
  override readonly name = 'KeyTooLongError';
}

/** What a keyspace needs of the tier beyond what values need. */
export interface KeyspaceGround extends Ground {
  /** Seconds, for access clocks. */
  readonly clockSeconds: number;
  readonly deadlines: DeadlineTree;
  readonly rows: RowWriter;
  /** Cuts begun so far, and the last of them that is in the engine. */
  readonly cutNumber: number;
  readonly appliedCut: number;
  /** Makes `record`, whose payload is that of another tree's record, the root of a copy of that tree. */
  copyCollection(from: number, record: number): void;
}

export class Keyspace implements RecordOwner {
  readonly ground: KeyspaceGround;
  readonly arena: Arena;
  readonly table: KeyTable;
  readonly expiry: ExpiryIndex;
  /** Names this keyspace in its records; 16 bits. */
  readonly number: number;
  /** Names this keyspace in rows; 32 bits. */
  readonly id: number;
  /** Cuts that had been begun when this keyspace came into being: with none since, no row of it exists. */
  readonly bornAt: number;
  /** Keys that have a value, nameless ones included. The table also holds records that wait for their delete row. */
  size = 0;
  /** Keys with a deadline. */
  expiring = 0;
  /** Keys whose value is damaged. */
  damaged = 0;
  /** Keys that are known by their hash alone; null when there are none. */
  nameless: NamelessRows | null = null;
  readonly away: AwayKeys;
  /** Keys that are on their way into this keyspace. */
  merge: Merge | null = null;
  /** Working sets that count on all keys of some hashes: while there are any, no key leaves memory. */
  held = 0;
  /** The first cut that must not contain anything of this keyspace; 0 while it is in use. */
  droppedAt = 0;
  /**
   * Collections that this keyspace's rows in the engine may still name, though they have been moved to
   * another: the number of cuts begun before.
   */
  private readonly movedAway = new Map<number, number>();
  private movedKept = MOVED_KEPT;
  /** The unit of work whose journal knows the counts. */
  private noted = 0;
  private readonly found = new Slice();

  constructor(ground: KeyspaceGround, number: number, id: number, bornAt = 0) {
    this.bornAt = bornAt;
    this.ground = ground;
    this.arena = ground.arena;
    this.number = number;
    this.id = id;
    this.table = new KeyTable(ground.arena);
    this.expiry = new ExpiryIndex(ground, number, ground.deadlines);
    this.away = new AwayKeys(ground.collections.residents);
  }

  /** All its keys are in memory: what the table does not lead to is not there. */
  get complete(): boolean {
    return this.away.count === 0;
  }

  /** Keys that have a name, by which they can be found. */
  get named(): number {
    return this.size - (this.nameless?.count ?? 0);
  }

  /** `count` of these rows are keys that nobody can name. */
  addNameless(rows: Iterable<NamelessRow>, count: number): void {
    this.nameless ??= new NamelessRows();
    this.nameless.add(rows, count);
    this.size += count;
    this.damaged += count;
  }

  /** The keys that are not in memory are those of some of these rows. */
  nameAway(rows: readonly NamelessRow[]): void {
    const { count } = this.away;
    this.away.notLoaded(0);
    this.size -= count;
    this.addNameless(rows, count);
  }

  /** Gives up the keys that nobody can name; returns how many they were. */
  dropNameless(): number {
    const count = this.nameless?.count ?? 0;
    this.size -= count;
    this.damaged -= count;
    this.nameless = null;
    return count;
  }

  /**
   * The keys that nobody can name become another's. So do their rows, with the next cut; of those that stand where no
   * rows of this keyspace belong nobody knows whose they are.
   */
  moveNameless(into: Keyspace): void {
    const { nameless } = this;
    if (nameless === null) return;
    const target = (into.nameless ??= new NamelessRows());
    const rows = Array.from(nameless.rows, (row) =>
      databaseOfKeyRow(row.row) === this.id ? target.rename(row, withDatabase(row.row, into.id)) : row,
    );
    into.addNameless(rows, this.dropNameless());
  }

  /** The record of a key that is not there but may be that of a damaged row; 0 when it cannot. Its value is damaged. */
  name(key: Slice, hash: number): number {
    const { nameless, arena } = this;
    const row = nameless?.find(hash);
    if (row === undefined) return 0;
    const ref = this.createRecord(key, hash, Type.String, 0);
    arena.i32[ref >>> arena.chunkShift][(ref & arena.unitMask) << 2] |= FLAG_PERSISTED;
    this.away.written(hash);
    this.markDamaged(ref);
    // They have been counted all along.
    this.size--;
    this.damaged--;
    const undo = nameless!.named(row, this.ground.rows.keyRowKey(this.id, hash, key));
    arena.journal?.onRollback(undo);
    return ref;
  }

  /** Before the counts change. */
  private note(): void {
    const { journal } = this.arena;
    if (journal === null || journal.unit === this.noted) return;
    this.noted = journal.unit;
    const { size, expiring, damaged } = this;
    journal.onRollback(() => {
      this.size = size;
      this.expiring = expiring;
      this.damaged = damaged;
    });
  }

  /** First word of a record. */
  head(ref: number): number {
    const { arena } = this;
    return arena.i32[ref >>> arena.chunkShift][(ref & arena.unitMask) << 2];
  }

  type(ref: number): number {
    return (this.head(ref) >>> TYPE_SHIFT) & TYPE_MASK;
  }

  deadline(ref: number): number {
    if ((this.head(ref) & FLAG_DEADLINE) === 0) return 0;
    const { arena } = this;
    return arena.view[ref >>> arena.chunkShift].getFloat64(
      ((ref & arena.unitMask) << 4) + RECORD_HEADER_BYTES,
      true,
    );
  }

  encoding(ref: number): number {
    const { arena } = this;
    return arena.i32[ref >>> arena.chunkShift][((ref & arena.unitMask) << 2) + 2] >>> 24;
  }

  setEncoding(ref: number, encoding: number): void {
    const { arena } = this;
    const at = ((ref & arena.unitMask) << 2) + 2;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    if (i32[at] >>> 24 === encoding) return;
    arena.touch(ref);
    i32[at] = (i32[at] & 0xffffff) | (encoding << 24);
  }

  /** Points `into` at a record's key. */
  key(ref: number, into: Slice): void {
    const { arena } = this;
    const chunk = ref >>> arena.chunkShift;
    const head = this.head(ref);
    const start = ((ref & arena.unitMask) << 4) + keyOffset(head);
    into.set(arena.u8[chunk], arena.view[chunk], start, start + (head & KEY_LENGTH_MASK));
  }

  /** Points `into` at a record's payload. */
  payload(ref: number, into: Slice): void {
    const { arena } = this;
    const chunk = ref >>> arena.chunkShift;
    const word = (ref & arena.unitMask) << 2;
    const i32 = arena.i32[chunk];
    const start = (word << 2) + payloadOffset(i32[word]);
    into.set(arena.u8[chunk], arena.view[chunk], start, start + (i32[word + 1] & PAYLOAD_LENGTH_MASK));
  }

  createRecord(key: Slice, hash: number, type: number, payloadLength: number): number {
    const waiting = this.table.find(hash, key.view, key.start, key.end);
    if (waiting === 0) return this.insertRecord(key, hash, type, payloadLength);
    this.arena.reserve(payloadLength);
    return this.revive(waiting, hash, type, payloadLength);
  }

  /** The same for a key that the table does not lead to. */
  insertRecord(key: Slice, hash: number, type: number, payloadLength: number): number {
    this.arena.reserve(key.end - key.start + payloadLength);
    if (this.arena.journal !== null) this.note();
    const ref = this.newRecord(key, type, payloadLength);
    this.table.insert(hash, ref);
    this.size++;
    return ref;
  }

  /** A block for a record with its header and key written, dirty, in no table. */
  private newRecord(key: Slice, type: number, payloadLength: number): number {
    checkPayload(payloadLength);
    const { arena } = this;
    const keyLength = key.end - key.start;
    if (keyLength > MAX_KEY_BYTES) throw new KeyTooLongError(`a key has at most ${MAX_KEY_BYTES} bytes`);
    const head = recordHead(type, 0, keyLength);
    const ref = arena.alloc(payloadOffset(head) + payloadLength);
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const word = (ref & arena.unitMask) << 2;
    i32[word] = head;
    i32[word + 1] = (this.number << 16) | payloadLength;
    i32[word + 2] = this.ground.clockSeconds & 0xffffff;
    copyIn(arena, ref >>> arena.chunkShift, (word << 2) + keyOffset(head), key);
    arena.touch(ref);
    return ref;
  }

  /** A record that waits for its delete row becomes a value again. */
  private revive(ref: number, hash: number, type: number, payloadLength: number): number {
    const { arena } = this;
    this.note();
    ref = this.reshape(ref, hash, false, payloadLength);
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const word = (ref & arena.unitMask) << 2;
    i32[word] = (i32[word] & ~(TYPE_MASK << TYPE_SHIFT)) | (type << TYPE_SHIFT);
    i32[word + 2] = this.ground.clockSeconds & 0xffffff;
    this.size++;
    return ref;
  }

  resizeRecord(ref: number, hash: number, payloadLength: number): number {
    // What shrinks is never refused: the bytes that stay have been moved already.
    const { arena } = this;
    const word = (ref & arena.unitMask) << 2;
    if (payloadLength > (arena.i32[ref >>> arena.chunkShift][word + 1] & PAYLOAD_LENGTH_MASK))
      arena.reserve(payloadLength);
    return this.reshape(ref, hash, (this.head(ref) & FLAG_DEADLINE) !== 0, payloadLength);
  }

  /**
   * Gives a record another payload length and makes or takes away the place of its deadline. Keeps
   * the key and as much of the payload as fits. Returns its place, dirty.
   */
  private reshape(ref: number, hash: number, withDeadline: boolean, payloadLength: number): number {
    checkPayload(payloadLength);
    const { arena } = this;
    arena.preserve(ref);
    const from = arena.i32[ref >>> arena.chunkShift];
    const fromWord = (ref & arena.unitMask) << 2;
    const head = from[fromWord];
    const newHead = withDeadline ? head | FLAG_DEADLINE : head & ~FLAG_DEADLINE;
    const kept = Math.min(from[fromWord + 1] & PAYLOAD_LENGTH_MASK, payloadLength);
    const source = (fromWord << 2) + keyOffset(head);
    const length = payloadOffset(head) + kept - keyOffset(head);
    const bytes = payloadOffset(newHead) + payloadLength;
    if (arena.sizeFor(bytes) === arena.sizeOf(ref)) {
      arena.touch(ref);
      if (head !== newHead) {
        const u8 = arena.u8[ref >>> arena.chunkShift];
        u8.copyWithin((fromWord << 2) + keyOffset(newHead), source, source + length);
        from[fromWord] = newHead;
      }
      from[fromWord + 1] = (from[fromWord + 1] & ~PAYLOAD_LENGTH_MASK) | payloadLength;
      return ref;
    }

    const to = arena.alloc(bytes);
    const chunk = to >>> arena.chunkShift;
    const i32 = arena.i32[chunk];
    const word = (to & arena.unitMask) << 2;
    i32[word] = newHead;
    i32[word + 1] = (from[fromWord + 1] & ~PAYLOAD_LENGTH_MASK) | payloadLength;
    i32[word + 2] = from[fromWord + 2];
    if ((head & newHead & FLAG_DEADLINE) !== 0) {
      i32[word + 3] = from[fromWord + 3];
      i32[word + 4] = from[fromWord + 4];
    }
    copyBytes(
      arena.u8[ref >>> arena.chunkShift],
      source,
      arena.u8[chunk],
      (word << 2) + keyOffset(newHead),
      length,
    );
    arena.touch(to);
    this.table.replace(hash, ref, to);
    if ((head & FLAG_TREE) !== 0)
      this.ground.collections.setRecord(from[((fromWord << 2) + payloadOffset(head)) >>> 2], to);
    arena.free(ref);
    return to;
  }

  /** Removes a key: its record, or, when the engine may have a row of it, its value. */
  removeRecord(ref: number, hash: number): void {
    this.arena.preserve(ref);
    if ((this.head(ref) & FLAG_TREE) !== 0) this.ground.dropCollection(this.collection(ref));
    this.vacate(ref, hash);
  }

  /** The same, but the value's tree lives on elsewhere. */
  private vacate(ref: number, hash: number): void {
    const { arena } = this;
    this.note();
    if ((this.head(ref) & FLAG_DEADLINE) !== 0) this.forgetDeadline(this.deadline(ref), hash);
    this.size--;
    const head = this.head(ref);
    if ((head & FLAG_DAMAGED) !== 0) this.damaged--;
    // Where the engine might have it, one that is gone must stay known to be: the unit of work that has
    // removed it would want it fetched again.
    if ((head & FLAG_PERSISTED) === 0 && !this.away.mayHave(hash)) {
      this.table.remove(hash, ref);
      arena.free(ref);
      return;
    }
    arena.touch(ref);
    const word = (ref & arena.unitMask) << 2;
    arena.i32[ref >>> arena.chunkShift][word] = head & ~((TYPE_MASK << TYPE_SHIFT) | VALUE_FLAGS);
    this.setEncoding(ref, 0);
    this.reshape(ref, hash, false, 0);
  }

  /** Moves a record to where `relocate` says. False when nothing leads to it. */
  moveRecord(ref: number, hash: number, relocate: (ref: number) => number): boolean {
    const to = this.table.moveRecord(hash, ref, relocate);
    if (to === 0) return false;
    if ((this.head(to) & FLAG_TREE) !== 0) this.ground.collections.setRecord(this.collection(to), to);
    return true;
  }

  /** Removes a record of type None, whose deletion the engine knows. */
  forget(ref: number, hash: number): void {
    this.table.remove(hash, ref);
    this.arena.free(ref);
  }

  /** Takes a clean record out of memory, or one of type None whose deletion the engine knows. Its tree must be unloaded. */
  evict(ref: number, hash: number, type: number): void {
    if (type !== 0) this.away.leaves(hash, this.size);
    this.forget(ref, hash);
  }

  /** Notes that the engine has no row of the key, with a record of type None that may leave at any time. */
  installAbsent(key: Slice, hash: number): number {
    const { arena } = this;
    const head = recordHead(0, 0, key.length);
    const ref = arena.alloc(payloadOffset(head));
    const chunk = ref >>> arena.chunkShift;
    const word = (ref & arena.unitMask) << 2;
    arena.i32[chunk][word] = head;
    arena.i32[chunk][word + 1] = this.number << 16;
    arena.i32[chunk][word + 2] = this.ground.clockSeconds & 0xffffff;
    copyIn(arena, chunk, (word << 2) + keyOffset(head), key);
    this.table.insert(hash, ref);
    return ref;
  }

  /** Slot of the collection whose root a record is. */
  collection(ref: number): number {
    const { arena } = this;
    return arena.i32[ref >>> arena.chunkShift][this.payloadWord(ref)];
  }

  /** Page numbers of the collection whose root a record is end before this. */
  nextPage(ref: number): number {
    const { arena } = this;
    return arena.i32[ref >>> arena.chunkShift][this.payloadWord(ref) + NEXT_PAGE_WORD];
  }

  /** Index of a record's payload in the words of its chunk. */
  payloadWord(ref: number): number {
    return ((ref & this.arena.unitMask) << 2) + (payloadOffset(this.head(ref)) >>> 2);
  }

  /**
   * Puts in a value that the engine holds, clean. With `counted`, which is for loading, it takes the
   * place of what the key has, and counts. The expiry index is not changed.
   */
  install(
    key: Slice,
    hash: number,
    type: number,
    payload: Slice,
    encoding: number,
    deadline: number,
    counted: boolean,
  ): number {
    checkPayload(payload.length);
    const { arena, table } = this;
    const earlier = counted ? table.find(hash, key.view, key.start, key.end) : 0;
    if (earlier !== 0) {
      if (this.deadline(earlier) !== 0) this.expiring--;
      if ((this.head(earlier) & FLAG_DAMAGED) !== 0) this.damaged--;
      this.size--;
      this.forget(earlier, hash);
    }
    const { clockSeconds } = this.ground;
    const ref = writeRecord(
      arena,
      this.number,
      key,
      type,
      FLAG_PERSISTED,
      clockSeconds,
      encoding,
      deadline,
      payload,
    );
    if (deadline !== 0 && counted) this.expiring++;
    table.insert(hash, ref);
    if (counted) this.size++;
    else this.away.comes();
    return ref;
  }

  /**
   * A record that was made for this keyspace elsewhere becomes a key, without its place in the expiry index.
   * False when the key is there already.
   */
  takeIn(ref: number, hash: number): boolean {
    const { table, found } = this;
    if (table.hasHash(hash)) {
      this.key(ref, found);
      if (table.find(hash, found.view, found.start, found.end) !== 0) return false;
    }
    table.insert(hash, ref);
    this.size++;
    return true;
  }

  /** The same for the deadline of such a key. */
  takeInDeadline(deadline: number, hash: number): void {
    this.expiry.add(deadline, hash);
    this.expiring++;
  }

  /** Marks a record's value as damaged. Does not touch the record: where its row does not tell so already, the caller does. */
  markDamaged(ref: number): void {
    const { arena } = this;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const word = (ref & arena.unitMask) << 2;
    if ((i32[word] & FLAG_DAMAGED) !== 0) return;
    this.note();
    i32[word] |= FLAG_DAMAGED;
    this.damaged++;
  }

  /** Sets or, with 0, clears the deadline; returns the record's place, which may be new. */
  setDeadline(ref: number, hash: number, deadline: number): number {
    const old = this.deadline(ref);
    if (old === deadline) return ref;
    this.note();
    // First of all, because it is what may fail.
    if (deadline !== 0) this.expiry.add(deadline, hash);
    if (old !== 0) this.forgetDeadline(old, hash);
    ref = this.reshape(ref, hash, deadline !== 0, this.payloadLength(ref));
    if (deadline !== 0) {
      const { arena } = this;
      const at = ((ref & arena.unitMask) << 4) + RECORD_HEADER_BYTES;
      arena.view[ref >>> arena.chunkShift].setFloat64(at, deadline, true);
      this.expiring++;
    }
    return ref;
  }

  private payloadLength(ref: number): number {
    const { arena } = this;
    return arena.i32[ref >>> arena.chunkShift][((ref & arena.unitMask) << 2) + 1] & PAYLOAD_LENGTH_MASK;
  }

  /** A key of that hash does not have the deadline any more. */
  forgetDeadline(deadline: number, hash: number): void {
    this.note();
    this.expiring--;
    this.expiry.remove(deadline, hash);
  }

  /** Makes an existing record of any type a string without a deadline. Its old value must have been dropped. */
  private retype(ref: number, type: number): void {
    const { arena } = this;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const word = (ref & arena.unitMask) << 2;
    if ((i32[word] & FLAG_DAMAGED) !== 0) {
      this.note();
      this.damaged--;
    }
    i32[word] = (i32[word] & ~((TYPE_MASK << TYPE_SHIFT) | VALUE_FLAGS)) | (type << TYPE_SHIFT);
    i32[word + 2] = this.ground.clockSeconds & 0xffffff;
  }

  /**
   * A record for `key` of the given type with room for a new payload, its old value given up and its
   * encoding 0; `ref` is the key's record, of any type, or 0. With `keepDeadline` the deadline stays.
   */
  overwrite(
    ref: number,
    key: Slice,
    hash: number,
    type: number,
    payloadLength: number,
    keepDeadline: boolean,
  ): number {
    if (ref === 0) return this.createRecord(key, hash, type, payloadLength);
    this.arena.reserve(payloadLength);
    const { arena } = this;
    arena.touch(ref);
    const head = this.head(ref);
    if ((head & FLAG_TREE) !== 0) {
      this.ground.dropCollection(this.collection(ref));
    }
    this.retype(ref, type);
    const deadline = (head & FLAG_DEADLINE) !== 0;
    if (deadline && !keepDeadline) this.forgetDeadline(this.deadline(ref), hash);
    return this.reshape(ref, hash, deadline && keepDeadline, payloadLength);
  }

  /** Writes payload bytes of a fresh payload. */
  fill(ref: number, bytes: Slice): void {
    const { arena } = this;
    copyIn(
      arena,
      ref >>> arena.chunkShift,
      ((ref & arena.unitMask) << 4) + payloadOffset(this.head(ref)),
      bytes,
    );
  }

  /** Moves a value with its deadline to the absent key `to` of `target`. */
  move(ref: number, hash: number, target: Keyspace, to: Slice, toHash: number): void {
    const moved = this.twin(ref, target, to, toHash);
    this.arena.preserve(ref);
    const head = this.head(ref);
    if ((head & FLAG_DAMAGED) !== 0) target.markDamaged(moved);
    if ((head & FLAG_TREE) !== 0) {
      // The collection may have rows, whether this record has one or not.
      const { arena } = this;
      arena.i32[moved >>> arena.chunkShift][(moved & arena.unitMask) << 2] |= head & FLAG_PERSISTED;
      if ((head & FLAG_PERSISTED) !== 0) target.away.written(toHash);
      const slot = this.collection(ref);
      this.ground.collections.setRecord(slot, moved);
      if (target !== this) this.noteMoved(this.ground.collections.id[slot], target);
    }
    this.vacate(ref, hash);
  }

  /** A collection becomes one of `target`'s: the row that names it here stays until the next cut is in the engine. */
  private noteMoved(id: number, target: Keyspace): void {
    const { cutNumber } = this.ground;
    const here = this.movedAway.get(id);
    const there = target.movedAway.get(id);
    this.arena.journal?.onRollback(() => {
      if (here === undefined) this.movedAway.delete(id);
      else this.movedAway.set(id, here);
      if (there !== undefined) target.movedAway.set(id, there);
    });
    this.movedAway.set(id, cutNumber);
    target.movedAway.delete(id);
    if (this.movedAway.size <= this.movedKept) return;
    this.movedSince(this.ground.appliedCut);
    this.movedKept = Math.max(MOVED_KEPT, 2 * this.movedAway.size);
  }

  /** Collections that rows of this keyspace may name after a cut is in the engine, and that are another's. */
  movedSince(cut: number): ReadonlySet<number> {
    for (const [id, moved] of this.movedAway) if (moved < cut) this.movedAway.delete(id);
    return new Set(this.movedAway.keys());
  }

  /** Copies a value with its deadline to the absent key `to` of `target`. */
  copy(ref: number, target: Keyspace, to: Slice, toHash: number): void {
    const copied = this.twin(ref, target, to, toHash);
    if ((this.head(ref) & FLAG_TREE) !== 0) this.ground.copyCollection(this.collection(ref), copied);
  }

  /** A record under another key with the same payload, deadline and encoding. */
  private twin(ref: number, target: Keyspace, to: Slice, toHash: number): number {
    const { arena } = this;
    const head = this.head(ref);
    const length = this.payloadLength(ref);
    arena.reserve(length + TWIN_ROOM);
    let twin = target.createRecord(to, toHash, (head >>> TYPE_SHIFT) & TYPE_MASK, length);
    // Before the payload: with it the record would pass for the root of the other's tree when it moves.
    const deadline = this.deadline(ref);
    if (deadline !== 0) twin = target.setDeadline(twin, toHash, deadline);
    target.setEncoding(twin, this.encoding(ref));
    const from = ((ref & arena.unitMask) << 4) + payloadOffset(head);
    const start = ((twin & arena.unitMask) << 4) + payloadOffset(target.head(twin));
    copyBytes(arena.u8[ref >>> arena.chunkShift], from, arena.u8[twin >>> arena.chunkShift], start, length);
    arena.i32[twin >>> arena.chunkShift][(twin & arena.unitMask) << 2] |= head & FLAG_TREE;
    return twin;
  }

  /** Makes the expiry index anew from the deadlines of all keys, in one go. */
  orderDeadlines(): void {
    const { expiry, table } = this;
    const key = new Slice();
    expiry.drop();
    let cursor = 0;
    do {
      cursor = table.scan(cursor, KEYS_A_STEP, (ref) => {
        if ((this.head(ref) & FLAG_DEADLINE) === 0) return;
        this.key(ref, key);
        expiry.add(this.deadline(ref), this.ground.hasher.hash32(key));
      });
    } while (cursor !== 0);
    this.expiring = expiry.size;
  }

  /** One step of giving everything up; false when nothing was left. */
  dropStep(): boolean {
    return (
      this.table.dropSegment((ref) => {
        this.arena.preserve(ref);
        if ((this.head(ref) & FLAG_TREE) !== 0) this.ground.dropCollection(this.collection(ref));
        this.arena.free(ref);
      }) || this.expiry.drop()
    );
  }
}

function checkPayload(length: number): void {
  if (length > MAX_PAYLOAD_BYTES) throw new RangeError(`a record holds at most ${MAX_PAYLOAD_BYTES} bytes`);
}
