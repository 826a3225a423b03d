/** Makes records and pages in chunks that a tier takes over: see `handover.ts`. */
import type { Slice } from '../../bytes/slice.ts';
import { FLAG_TREE, writeRecord } from '../record.ts';
import { Tier } from '../tier.ts';
import type { Borrower, HandedKeys, Handover } from './handover.ts';
import type { RowTarget } from './row-target.ts';

/** A chunk is handed over when this part of it is in use: what is left serves for what the loop adds. */
const FULL_SHARE = 0.9;
/** Buckets by which keys are put in order. */
const BUCKET_BITS = 12;

/** Keys of one database. */
class Keys {
  readonly number: number;
  private pairs = new Int32Array(2048);
  private length = 0;
  private deadlines: number[] = [];
  private readonly expected: number;

  constructor(number: number, expected: number) {
    this.number = number;
    this.expected = expected;
  }

  add(hash: number, ref: number, deadline: number): void {
    if (this.length === this.pairs.length) {
      const larger = new Int32Array(this.length * 2);
      larger.set(this.pairs);
      this.pairs = larger;
    }
    this.pairs[this.length++] = hash;
    this.pairs[this.length++] = ref;
    if (deadline !== 0) this.deadlines.push(deadline, hash);
  }

  /** What there is, and nothing is left. Entries of one segment of a key table come near each other. */
  take(database: number): HandedKeys {
    const { pairs, length } = this;
    const starts = new Int32Array((1 << BUCKET_BITS) + 1);
    for (let i = 0; i < length; i += 2) starts[(pairs[i] >>> (32 - BUCKET_BITS)) + 1] += 2;
    for (let bucket = 1; bucket < starts.length; bucket++) starts[bucket] += starts[bucket - 1];
    const sorted = new Int32Array(length);
    for (let i = 0; i < length; i += 2) {
      const bucket = pairs[i] >>> (32 - BUCKET_BITS);
      const at = starts[bucket];
      starts[bucket] = at + 2;
      sorted[at] = pairs[i];
      sorted[at + 1] = pairs[i + 1];
    }
    const deadlines = Float64Array.from(this.deadlines);
    this.length = 0;
    this.deadlines = [];
    return { database, expected: Math.max(this.expected, length / 2), keys: sorted, deadlines };
  }

  get isEmpty(): boolean {
    return this.length === 0;
  }
}

export class ChunkTarget implements RowTarget {
  /** Where values are put together. Between two handovers it has what was made and is not handed over yet. */
  readonly tier: Tier;
  private readonly borrower: Borrower;
  private readonly send: (handover: Handover) => void;
  /** Where keys go when there is no room for more chunks. */
  private readonly next: () => RowTarget;
  private readonly keys = new Map<number, Keys>();
  private readonly expected = new Map<number, number>();
  /** Slots of collections that were made. */
  private collections: number[] = [];
  private readonly full: number;
  /** While this is not 0 nothing is given away before the end. */
  held = 0;

  constructor(
    { hashKey, chunkBytes, now }: { hashKey: readonly [number, number]; chunkBytes: number; now: number },
    borrower: Borrower,
    send: (handover: Handover) => void,
    next: () => RowTarget,
  ) {
    this.borrower = borrower;
    this.send = send;
    this.next = next;
    this.tier = new Tier({ databases: 1, hashKey, chunkBytes, nextChunk: () => borrower.chunk() });
    this.tier.now = now;
    this.tier.collections.lender = () => borrower.collections();
    this.full = FULL_SHARE * chunkBytes;
  }

  expect(database: number, keys: number): void {
    this.expected.set(database, (this.expected.get(database) ?? 0) + keys);
  }

  private keysOf(database: number): Keys {
    let keys = this.keys.get(database);
    if (keys === undefined) {
      keys = new Keys(this.borrower.keyspace(database), this.expected.get(database) ?? 0);
      this.keys.set(database, keys);
    }
    return keys;
  }

  record(
    database: number,
    key: Slice,
    type: number,
    slot: number,
    encoding: number,
    deadline: number,
    payload: Slice,
  ): void {
    const { arena, clockSeconds } = this.tier;
    const number = this.numberOf(database);
    const flags = slot === 0 ? 0 : FLAG_TREE;
    const ref = writeRecord(arena, number, key, type, flags, clockSeconds, encoding, deadline, payload);
    this.add(database, key, ref, slot, deadline);
  }

  /** The number that records of a database bear. */
  numberOf(database: number): number {
    return this.keysOf(database).number;
  }

  /** Makes a record here a key. */
  add(database: number, key: Slice, ref: number, slot: number, deadline: number): void {
    const { arena, collections, hasher } = this.tier;
    arena.touch(ref);
    this.keysOf(database).add(hasher.hash32(key), ref, deadline);
    if (slot === 0) return;
    collections.setRecord(slot, ref);
    this.collections.push(slot);
  }

  settle(): RowTarget {
    if (this.held > 0 || (this.borrower.hasRoom && !this.isFull)) return this;
    this.flush();
    return this.borrower.hasRoom ? this : this.next();
  }

  get isFull(): boolean {
    return this.tier.arena.slabBytes >= this.full;
  }

  flush(): void {
    const { arena, collections } = this.tier;
    const keys = [...this.keys].filter(([, of]) => !of.isEmpty).map(([database, of]) => of.take(database));
    if (keys.length === 0) return;
    const { dirtyBytes, slabBytes } = arena;
    const handed = this.collections.map((slot) => collections.handOver(slot));
    this.collections = [];
    this.send({ chunks: arena.handOver(), dirtyBytes, slabBytes, collections: handed, keys });
  }
}
