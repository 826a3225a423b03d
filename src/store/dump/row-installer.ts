/** Takes records and pages that come as items into keyspaces that nothing leads to yet. */
import { Slice, viewOf } from '../../bytes/slice.ts';
import { showKey } from '../../rdb/error.ts';
import { PAGE_BYTES } from '../arena.ts';
import type { WorkingSet } from '../api.ts';
import type { Keyspace } from '../keyspace.ts';
import { FLAG_TREE, writeRoot } from '../record.ts';
import type { Tier } from '../tier.ts';
import { ITEM_RECORD, PAGE_ITEM_BYTES, RECORD_ITEM_BYTES } from './row-items.ts';

/** A key stands twice in what is imported. */
export class TwinKeyError extends Error {
  override readonly name = 'TwinKeyError';

  constructor(key: Slice, database: number) {
    super(`key ${showKey(key.u8.subarray(key.start, key.end))} in database ${database} occurs twice`);
  }
}

/** Keys of a message that are asked for together when one may have left memory. */
const KEYS_AHEAD = 1024;

export class RowInstaller {
  private readonly tier: Tier;
  private readonly stagedFor: (database: number) => Keyspace;
  private readonly key = new Slice();
  private readonly payload = new Slice();
  private slot = 0;
  /** Root of the tree whose pages come; it must not leave memory, though they may. */
  private root = 0;
  private u8: Buffer = Buffer.alloc(0);
  private view: DataView = viewOf(this.u8.buffer as ArrayBuffer);
  private pos = 0;
  private endAt = 0;
  /** The item that was rolled back, for which its working set may borrow memory. */
  private again = -1;

  /** @param stagedFor the keyspace for a database */
  constructor(tier: Tier, stagedFor: (database: number) => Keyspace) {
    this.tier = tier;
    this.stagedFor = stagedFor;
  }

  /** Items to take, from the beginning of some memory. */
  open(memory: ArrayBuffer, length: number): void {
    this.u8 = Buffer.from(memory);
    this.view = viewOf(memory);
    this.pos = 0;
    this.endAt = length;
    this.again = -1;
  }

  get done(): boolean {
    return this.pos >= this.endAt;
  }

  /**
   * Takes items for about `budgetMs`, each as a unit of work. Throws RowFault when one needs what is not in memory;
   * `set` then goes on with it; OutOfTierError, TwinKeyError.
   */
  take(set: WorkingSet | null, budgetMs: number): void {
    const { tier } = this;
    const until = performance.now() + budgetMs;
    for (let items = 1; !this.done; items++) {
      const { slot, pos } = this;
      tier.begin(this.again === pos ? set : null);
      try {
        this.pos = this.isRecord(pos) ? this.record(pos) : this.page(pos);
        tier.commit();
      } catch (error) {
        tier.rollback();
        this.slot = slot;
        this.again = pos;
        throw error;
      }
      if ((items & 63) === 0 && performance.now() >= until) break;
    }
  }

  private isRecord(pos: number): boolean {
    return (this.view.getUint32(pos, true) & 0xff) === ITEM_RECORD;
  }

  /** Points `key` at that of a record; returns the offset after the record. */
  private keyOf(pos: number): number {
    const { u8, view, key } = this;
    const start = pos + RECORD_ITEM_BYTES;
    const end = start + view.getUint32(pos + 20, true);
    key.set(u8, view, start, end);
    return (((end + 3) & ~3) + view.getUint32(pos + 24, true) + 3) & ~3;
  }

  private keyspaceOf(pos: number): Keyspace {
    return this.stagedFor(this.view.getUint32(pos + 4, true));
  }

  /** A key must not be there, nor in the engine, where an earlier one may have gone. Whether a record waits for it. */
  private refuseTwin(pos: number, keyspace: Keyspace, hash: number): boolean {
    const { key } = this;
    const ref = keyspace.table.find(hash, key.view, key.start, key.end);
    if (ref === 0 && keyspace.away.mayHave(hash)) this.wantKeys(pos);
    if (ref !== 0 && keyspace.type(ref) !== 0)
      throw new TwinKeyError(key, this.view.getUint32(pos + 4, true));
    return ref !== 0;
  }

  /** Wants all keys of the message from `pos` on that the engine may have. */
  private wantKeys(pos: number): never {
    const { residents } = this.tier;
    for (; pos < this.endAt && residents.wanted.length < KEYS_AHEAD;) {
      if (!this.isRecord(pos)) {
        pos += PAGE_ITEM_BYTES + this.view.getUint32(pos + 4, true);
        continue;
      }
      const keyspace = this.keyspaceOf(pos);
      const hash = this.view.getInt32(pos + 16, true);
      pos = this.keyOf(pos);
      const { key } = this;
      const absent = keyspace.table.find(hash, key.view, key.start, key.end) === 0;
      if (absent && keyspace.away.mayHave(hash)) residents.wantKey(keyspace, key, hash);
    }
    return residents.fault();
  }

  private record(pos: number): number {
    const { view, u8, key, payload } = this;
    this.pinRoot(0);
    const head = view.getUint32(pos, true);
    const deadline = view.getFloat64(pos + 8, true);
    const hash = view.getInt32(pos + 16, true);
    const keyspace = this.keyspaceOf(pos);
    const next = this.keyOf(pos);
    const waiting = this.refuseTwin(pos, keyspace, hash);
    const length = view.getUint32(pos + 24, true);
    const start = (key.end + 3) & ~3;
    payload.set(u8, view, start, start + length);
    const type = (head >>> 8) & 0xff;
    let ref = waiting
      ? keyspace.createRecord(key, hash, type, length)
      : keyspace.insertRecord(key, hash, type, length);
    keyspace.fill(ref, payload);
    keyspace.setEncoding(ref, head >>> 24);
    const tree = ((head >>> 16) & 1) !== 0;
    if (tree) this.openTree(keyspace, ref);
    if (deadline !== 0) ref = keyspace.setDeadline(ref, hash, deadline);
    if (tree) this.pinRoot(ref);
    return next;
  }

  private pinRoot(ref: number): void {
    const { residents } = this.tier;
    if (this.root !== 0) residents.unpin(this.root);
    this.root = ref;
    if (ref !== 0) residents.pin(ref);
  }

  private openTree(keyspace: Keyspace, ref: number): void {
    const { arena, collections } = this.tier;
    const slot = collections.open(ref);
    const i32 = arena.i32[ref >>> arena.chunkShift];
    i32[(ref & arena.unitMask) << 2] |= FLAG_TREE;
    const root = keyspace.payloadWord(ref) << 2;
    writeRoot(arena.view[ref >>> arena.chunkShift], root, slot, collections.id[slot]);
    this.slot = slot;
  }

  private page(pos: number): number {
    const { u8, view } = this;
    const { arena, collections } = this.tier;
    const length = view.getUint32(pos + 4, true);
    const start = pos + PAGE_ITEM_BYTES;
    arena.reserve(length);
    const ref = length === PAGE_BYTES ? arena.allocPage() : arena.alloc(length);
    const at = (ref & arena.unitMask) << 4;
    u8.copy(arena.u8[ref >>> arena.chunkShift], at, start, start + length);
    const i32 = arena.i32[ref >>> arena.chunkShift];
    i32[(at >>> 2) + 3] = this.slot;
    arena.touch(ref);
    collections.place(this.slot, i32[(at >>> 2) + 2], ref);
    return start + length;
  }

  /** Nothing more comes. */
  end(): void {
    this.pinRoot(0);
  }
}
