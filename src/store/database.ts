/**
 * A logical database: the store's contract over a keyspace, with time. A key whose deadline has passed
 * is removed, and the server told, before anything here sees it.
 */
import { Slice } from '../bytes/slice.ts';
import { DamagedValueError, ROW_FAULT, Type, WrongTypeError, type Database } from './api.ts';
import type { Arena } from './arena.ts';
import type { HandlePool } from './handle-pool.ts';
import type { HashHandle } from './hash-value.ts';
import type { Hasher } from './hash.ts';
import type { Keyspace } from './keyspace.ts';
import type { ListHandle } from './list.ts';
import {
  FLAG_DAMAGED,
  FLAG_DEADLINE,
  FLAG_TREE,
  PAYLOAD_LENGTH_MASK,
  payloadOffset,
  TREE_PREFIX_BYTES,
  TYPE_MASK,
  TYPE_SHIFT,
  type ValueHandle,
} from './record.ts';
import type { SetHandle } from './set.ts';
import type { StreamHandle } from './stream.ts';
import { INLINE_STRING_MAX, type StringHandle } from './string-value.ts';
import type { Tier } from './tier.ts';
import type { ZSetHandle } from './zset.ts';

/** Access clocks are 24 bits of seconds. */
const CLOCK_MASK = 0xffffff;
/** Keys among which a random one is picked when they are not all in memory. */
const RANDOM_KEYS = 64;
/** What of a record's head says how its payload is to be read. */
const SHAPE_MASK = (TYPE_MASK << TYPE_SHIFT) | FLAG_DEADLINE | FLAG_TREE | FLAG_DAMAGED;
/** What a key costs beside its record's block: its slot, in segments that are 0.41 to 0.82 full. */
const SLOT_BYTES = 13;
/** Picks of RANDOMKEY among keys that are all hidden. */
const RANDOM_TRIES = 100;

/** Memory that a byte of a long string takes at most: pages, and the tree above them. */
const EXTENT_ROOM = 1.05;

export class TierDatabase implements Database {
  readonly index: number;
  keyspace: Keyspace;

  private readonly tier: Tier;
  private readonly arena: Arena;
  private readonly hasher: Hasher;
  /** Hash of the key that the last lookup was for. */
  private lookedUp = 0;
  private readonly found = new Slice();

  constructor(tier: Tier, index: number, keyspace: Keyspace) {
    this.tier = tier;
    this.index = index;
    this.keyspace = keyspace;
    this.arena = tier.arena;
    this.hasher = tier.hasher;
  }

  get size(): number {
    const { size, merge } = this.keyspace;
    return merge === null ? size : size + merge.from.size;
  }

  get expiring(): number {
    const { expiring, merge } = this.keyspace;
    return merge === null ? expiring : expiring + merge.from.expiring;
  }

  get damaged(): number {
    return this.keyspace.damaged;
  }

  settle(): void {
    const { merge } = this.keyspace;
    if (merge === null || merge.from.size === 0) return;
    const { residents } = this.tier;
    residents.wanted.push({ kind: 'merge', merge });
    residents.fault();
  }

  prefetch(keys: readonly Slice[], count: number): void {
    this.tier.lookAhead.begin(this.keyspace.table, keys, count);
  }

  prefetchMembers(key: Slice, members: readonly Slice[], count: number): void {
    const { arena, tier, keyspace } = this;
    if (tier.residents.tracking) return;
    const ref = keyspace.table.find(this.hasher.hash32(key), key.view, key.start, key.end);
    if (ref === 0) return;
    const head = keyspace.head(ref);
    const type = (head >>> TYPE_SHIFT) & TYPE_MASK;
    if ((type !== Type.Hash && type !== Type.Set) || (head & (FLAG_TREE | FLAG_DAMAGED)) !== FLAG_TREE)
      return;
    const payload = keyspace.payloadWord(ref);
    const descriptor = payload + (TREE_PREFIX_BYTES >>> 2);
    tier.ahead.begin(arena.i32[ref >>> arena.chunkShift], payload, descriptor, members, count);
  }

  need(count: number, keyAt: (index: number) => Slice | null): void {
    const { keyspace, hasher } = this;
    const { residents } = this.tier;
    const { merge } = keyspace;
    if (!residents.tracking || (keyspace.complete && merge === null)) return;
    for (let i = 0; i < count; i++) {
      const key = keyAt(i);
      if (key === null) continue;
      const hash = hasher.hash32(key);
      if (merge?.concerns(hash) === true) merge.want(key, hash);
      const absent = keyspace.table.find(hash, key.view, key.start, key.end) === 0;
      if (absent && keyspace.away.mayHave(hash)) residents.wantKey(keyspace, key, hash);
    }
    if (residents.wanted.length > 0) residents.fault();
  }

  needReads(count: number, read: (index: number) => void): void {
    const { residents } = this.tier;
    if (!residents.tracking) return;
    const { faults } = residents;
    for (let i = 0; i < count; i++) {
      try {
        read(i);
      } catch (error) {
        if (error !== ROW_FAULT) throw error;
      }
    }
    if (residents.faults === faults) return;
    residents.faults = faults;
    residents.fault();
  }

  /** The record of the key, 0 when it has no value. Throws when that is damaged, unless it will be given up. */
  private lookup(key: Slice, givenUp = false): number {
    const hash = this.tier.lookAhead.hashOf(key);
    this.lookedUp = hash;
    let ref = this.keyspace.table.find(hash, key.view, key.start, key.end);
    if (this.tier.residents.tracking) ref = this.track(ref, key, hash);
    if (ref === 0) return 0;
    const { arena } = this;
    const head = arena.i32[ref >>> arena.chunkShift][(ref & arena.unitMask) << 2];
    if (((head >>> TYPE_SHIFT) & TYPE_MASK) === Type.None) return 0;
    if ((head & (FLAG_DEADLINE | FLAG_DAMAGED)) !== 0 && this.isGone(ref, hash, givenUp)) return 0;
    return ref;
  }

  private isGone(ref: number, hash: number, givenUp: boolean): boolean {
    const head = this.keyspace.head(ref);
    if ((head & FLAG_DEADLINE) !== 0 && this.expireIfDue(ref, hash)) return true;
    if ((head & FLAG_DAMAGED) !== 0 && !givenUp) throw new DamagedValueError(this.tier.nameOfRow(ref));
    return false;
  }

  damage(key: Slice): void {
    const { keyspace } = this;
    let ref = this.lookup(key, true);
    if (ref !== 0 && (keyspace.head(ref) & FLAG_DAMAGED) !== 0) return;
    ref = keyspace.overwrite(ref, key, this.lookedUp, Type.String, 0, false);
    keyspace.markDamaged(ref);
  }

  /**
   * After a look-up while the table need not lead to every key: a fault when the engine may have it.
   * Returns the key's record, which is another than the table's when the key is one that had no name.
   */
  private track(ref: number, key: Slice, hash: number): number {
    const { keyspace } = this;
    const { residents } = this.tier;
    residents.access('k', keyspace.id, hash);
    if (keyspace.merge?.concerns(hash) === true) {
      keyspace.merge.bring(key, hash);
      ref = keyspace.table.find(hash, key.view, key.start, key.end);
    }
    if (ref !== 0) this.arena.use(ref);
    else if (keyspace.away.mayHave(hash)) residents.missKey(keyspace, key, hash);
    if (keyspace.nameless === null || (ref !== 0 && keyspace.type(ref) !== Type.None)) return ref;
    return keyspace.name(key, hash) || ref;
  }

  /** The hash that the key is found by. */
  hashOf(key: Slice): number {
    return this.hasher.hash32(key);
  }

  /** `lookup`, noting that the value is used. */
  private use(key: Slice): number {
    const ref = this.lookup(key);
    if (ref === 0) return 0;
    const { arena } = this;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const at = ((ref & arena.unitMask) << 2) + 2;
    const clock = this.tier.clockSeconds & CLOCK_MASK;
    const word = i32[at];
    if ((word & CLOCK_MASK) !== clock) i32[at] = (word & ~CLOCK_MASK) | clock;
    return ref;
  }

  /** Removes the record's key, or only hides it (`keepsDue`), if its deadline has passed. */
  expireIfDue(ref: number, hash: number): boolean {
    if (this.keyspace.deadline(ref) > this.tier.now) return false;
    if (this.tier.keepsDue) return true;
    this.keyspace.key(ref, this.found);
    this.tier.onExpired(this, this.found);
    this.keyspace.removeRecord(ref, hash);
    return true;
  }

  private wantType(ref: number, type: Type): void {
    if (this.keyspace.type(ref) !== type) throw wrongType();
  }

  type(key: Slice): Type {
    const ref = this.lookup(key);
    return ref === 0 ? Type.None : (this.keyspace.type(ref) as Type);
  }

  remove(key: Slice): boolean {
    const ref = this.lookup(key, true);
    if (ref === 0) return false;
    this.keyspace.removeRecord(ref, this.lookedUp);
    return true;
  }

  expiry(key: Slice): number {
    const ref = this.lookup(key);
    return ref === 0 ? 0 : this.keyspace.deadline(ref);
  }

  setExpiry(key: Slice, deadlineMs: number): void {
    const ref = this.lookup(key);
    if (ref !== 0) this.keyspace.setDeadline(ref, this.lookedUp, deadlineMs);
  }

  rename(key: Slice, target: Database, to: Slice): void {
    const destination = target as TierDatabase;
    if (destination === this && key.equals(to)) return;
    if (this.lookup(key) === 0) return;
    destination.remove(to);
    const toHash = destination.lookedUp;
    const ref = this.lookup(key);
    this.keyspace.move(ref, this.lookedUp, destination.keyspace, to, toHash);
  }

  copy(key: Slice, target: Database, to: Slice): void {
    const destination = target as TierDatabase;
    if (destination === this && key.equals(to)) return;
    if (this.lookup(key) === 0) return;
    destination.remove(to);
    const toHash = destination.lookedUp;
    this.keyspace.copy(this.lookup(key), destination.keyspace, to, toHash);
  }

  encoding(key: Slice): number {
    const ref = this.lookup(key);
    return ref === 0 ? 0 : this.keyspace.encoding(ref);
  }

  setEncoding(key: Slice, encoding: number): void {
    const ref = this.lookup(key);
    if (ref !== 0) this.keyspace.setEncoding(ref, encoding);
  }

  idleSeconds(key: Slice): number {
    const ref = this.lookup(key);
    if (ref === 0) return 0;
    const { arena } = this;
    const word = arena.i32[ref >>> arena.chunkShift][((ref & arena.unitMask) << 2) + 2];
    return (this.tier.clockSeconds - word) & CLOCK_MASK;
  }

  setIdle(key: Slice, seconds: number): void {
    const ref = this.lookup(key);
    if (ref === 0) return;
    const { arena } = this;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const at = ((ref & arena.unitMask) << 2) + 2;
    const clock = (this.tier.clockSeconds - Math.min(seconds, CLOCK_MASK)) & CLOCK_MASK;
    i32[at] = (i32[at] & ~CLOCK_MASK) | clock;
  }

  memoryUsage(key: Slice): number {
    const ref = this.lookup(key);
    if (ref === 0) return 0;
    const tree = (this.keyspace.head(ref) & FLAG_TREE) !== 0;
    return (
      this.arena.sizeOf(ref) +
      SLOT_BYTES +
      (tree ? this.tier.collectionBytes(this.keyspace.collection(ref), this.keyspace.nextPage(ref)) : 0)
    );
  }

  getString(key: Slice, into: Slice): boolean {
    const ref = this.use(key);
    if (ref === 0) return false;
    const { arena } = this;
    const chunk = ref >>> arena.chunkShift;
    const i32 = arena.i32[chunk];
    const word = (ref & arena.unitMask) << 2;
    const head = i32[word];
    if (((head >>> TYPE_SHIFT) & TYPE_MASK) !== Type.String) throw wrongType();
    if ((head & FLAG_TREE) !== 0) {
      this.handle(this.tier.strings.take(), key, Type.String, ref).whole(into);
      return true;
    }
    const start = (word << 2) + payloadOffset(head);
    into.set(arena.u8[chunk], arena.view[chunk], start, start + (i32[word + 1] & PAYLOAD_LENGTH_MASK));
    return true;
  }

  setString(key: Slice, value: Slice): void {
    const { arena, keyspace } = this;
    const length = value.end - value.start;
    const hash = this.tier.lookAhead.hashOf(key);
    let ref = keyspace.table.find(hash, key.view, key.start, key.end);
    if (this.tier.residents.tracking) ref = this.track(ref, key, hash);
    if (length <= INLINE_STRING_MAX) {
      if (ref === 0) {
        keyspace.fill(keyspace.insertRecord(key, hash, Type.String, length), value);
        return;
      }
      const i32 = arena.i32[ref >>> arena.chunkShift];
      const word = (ref & arena.unitMask) << 2;
      const head = i32[word];
      // A plain string is overwritten where it lies.
      if (
        (head & SHAPE_MASK) === Type.String << TYPE_SHIFT &&
        arena.sizeFor(payloadOffset(head) + length) === arena.sizeOf(ref)
      ) {
        arena.touch(ref);
        i32[word + 1] = (i32[word + 1] & ~PAYLOAD_LENGTH_MASK) | length;
        i32[word + 2] = this.tier.clockSeconds & CLOCK_MASK;
        keyspace.fill(ref, value);
        return;
      }
    }
    this.storeString(key, value, false);
  }

  replaceString(key: Slice, value: Slice): void {
    this.storeString(key, value, true);
  }

  private storeString(key: Slice, value: Slice, keepDeadline: boolean): void {
    const length = value.end - value.start;
    let ref = this.lookup(key, !keepDeadline);
    if (ref !== 0 && keepDeadline) this.wantType(ref, Type.String);
    if (length <= INLINE_STRING_MAX) {
      ref = this.keyspace.overwrite(ref, key, this.lookedUp, Type.String, length, keepDeadline);
      this.keyspace.fill(ref, value);
      return;
    }
    this.arena.reserve(Math.ceil(length * EXTENT_ROOM));
    ref = this.keyspace.overwrite(ref, key, this.lookedUp, Type.String, 0, keepDeadline);
    this.handle(this.tier.strings.take(), key, Type.String, ref).write(0, value);
  }

  private handle<T extends ValueHandle>(handle: T, key: Slice, type: Type, ref: number): T {
    handle.value.open(this.keyspace, key, this.lookedUp, type, ref);
    handle.opened();
    return handle;
  }

  string(key: Slice): StringHandle | null;
  string(key: Slice, create: true): StringHandle;
  string(key: Slice, create = false): StringHandle | null {
    return this.open(this.tier.strings, Type.String, key, create);
  }

  list(key: Slice): ListHandle | null;
  list(key: Slice, create: true): ListHandle;
  list(key: Slice, create = false): ListHandle | null {
    return this.open(this.tier.lists, Type.List, key, create);
  }

  set(key: Slice): SetHandle | null;
  set(key: Slice, create: true): SetHandle;
  set(key: Slice, create = false): SetHandle | null {
    return this.open(this.tier.sets, Type.Set, key, create);
  }

  hash(key: Slice): HashHandle | null;
  hash(key: Slice, create: true): HashHandle;
  hash(key: Slice, create = false): HashHandle | null {
    return this.open(this.tier.hashes, Type.Hash, key, create);
  }

  zset(key: Slice): ZSetHandle | null;
  zset(key: Slice, create: true): ZSetHandle;
  zset(key: Slice, create = false): ZSetHandle | null {
    return this.open(this.tier.zsets, Type.ZSet, key, create);
  }

  stream(key: Slice): StreamHandle | null;
  stream(key: Slice, create: true): StreamHandle;
  stream(key: Slice, create = false): StreamHandle | null {
    return this.open(this.tier.streams, Type.Stream, key, create);
  }

  private open<T extends ValueHandle>(
    pool: HandlePool<T>,
    type: Type,
    key: Slice,
    create: boolean,
  ): T | null {
    const ref = this.use(key);
    if (ref === 0 && !create) return null;
    if (ref !== 0) this.wantType(ref, type);
    return this.handle(pool.take(), key, type, ref);
  }

  scan(cursor: number, count: number, visit: (key: Slice, type: Type) => void): number {
    if (cursor >= 2 ** 32) return 0;
    this.settle();
    const { keyspace, found } = this;
    const end = this.knownFrom(cursor, count);
    const look = (ref: number): void => {
      const type = keyspace.type(ref);
      if (type === Type.None) return;
      if ((keyspace.head(ref) & FLAG_DEADLINE) !== 0) {
        keyspace.key(ref, found);
        if (this.expireIfDue(ref, this.hasher.hash32(found))) return;
      }
      keyspace.key(ref, found);
      visit(found, type as Type);
    };
    return keyspace.table.scan(cursor, count, look, end);
  }

  /** Up to which hash, unsigned, all keys from `position` on are in memory; a fault for about `count` keys when there are none. */
  private knownFrom(position: number, count: number): number {
    const { keyspace } = this;
    const { residents } = this.tier;
    if (keyspace.complete || position >= 2 ** 32) return 2 ** 32;
    const end = residents.set?.knownUntil(keyspace, position) ?? position;
    if (end > position) return end;
    residents.wanted.push({ kind: 'keys', keyspace, from: position, count });
    return residents.fault();
  }

  randomKey(random: number, into: Slice): boolean {
    this.settle();
    const { keyspace } = this;
    if (!keyspace.complete) return this.randomKeyFrom(Math.floor(random * 2 ** 32), into);
    // One number picks the key; a generator seeded with it makes what more the search needs.
    let state = Math.floor(random * 2 ** 32) | 0;
    const next = (): number => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
    // Where most keys are hidden, the search may as well end without one.
    for (let tries = RANDOM_TRIES; keyspace.named > 0 && (tries > 0 || !this.tier.keepsDue); tries--) {
      const ref = keyspace.table.random(next);
      if (keyspace.type(ref) === Type.None) continue;
      keyspace.key(ref, into);
      if (!this.expireIfDueKey(ref, into)) return true;
    }
    return false;
  }

  /** The same when not all keys are in memory: one of those that follow a random hash. */
  private randomKeyFrom(start: number, into: Slice): boolean {
    const { keyspace } = this;
    let position = start;
    for (let tour = 0; tour < 2 && keyspace.named > 0;) {
      const end = this.knownFrom(position, RANDOM_KEYS);
      const refs: number[] = [];
      const add = (ref: number): void => {
        if (keyspace.type(ref) !== Type.None) refs.push(ref);
      };
      keyspace.table.scan(position, Infinity, add, end);
      while (refs.length > 0) {
        const [ref] = refs.splice(start % refs.length, 1);
        keyspace.key(ref, into);
        if (!this.expireIfDueKey(ref, into)) return true;
      }
      position = end;
      if (position >= 2 ** 32) {
        position = 0;
        tour++;
      }
    }
    return false;
  }

  private expireIfDueKey(ref: number, key: Slice): boolean {
    if ((this.keyspace.head(ref) & FLAG_DEADLINE) === 0) return false;
    return this.expireIfDue(ref, this.hasher.hash32(key));
  }
}

function wrongType(): WrongTypeError {
  return new WrongTypeError('Operation against a key holding the wrong kind of value');
}
