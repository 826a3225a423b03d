/** Takes records and pages that come as items into keyspaces that nothing leads to yet. */
import { Slice, viewOf } from '../../bytes/slice.ts';
import { PAGE_BYTES } from '../arena.ts';
import type { Keyspace } from '../keyspace.ts';
import { FLAG_TREE } from '../record.ts';
import type { Tier } from '../tier.ts';
import { ITEM_RECORD, PAGE_ITEM_BYTES, RECORD_ITEM_BYTES } from './row-items.ts';

/** A key stands twice in what is imported. */
export class TwinKeyError extends Error {
  override readonly name = 'TwinKeyError';
}

export class RowInstaller {
  private readonly tier: Tier;
  private readonly stagedFor: (database: number) => Keyspace;
  private readonly key = new Slice();
  private readonly payload = new Slice();
  private slot = 0;

  /** @param stagedFor the keyspace for a database */
  constructor(tier: Tier, stagedFor: (database: number) => Keyspace) {
    this.tier = tier;
    this.stagedFor = stagedFor;
  }

  /** Takes items from `pos` on, for about `budgetMs`; returns where it stopped. Throws OutOfTierError, TwinKeyError. */
  take(memory: ArrayBuffer, pos: number, end: number, budgetMs: number): number {
    const u8 = Buffer.from(memory);
    const view = viewOf(memory);
    const until = performance.now() + budgetMs;
    for (let items = 1; pos < end; items++) {
      pos =
        (view.getUint32(pos, true) & 0xff) === ITEM_RECORD
          ? this.record(u8, view, pos)
          : this.page(u8, view, pos);
      if ((items & 63) === 0 && performance.now() >= until) break;
    }
    return pos;
  }

  private record(u8: Buffer, view: DataView, pos: number): number {
    const { key, payload } = this;
    const head = view.getUint32(pos, true);
    const database = view.getUint32(pos + 4, true);
    const deadline = view.getFloat64(pos + 8, true);
    const hash = view.getInt32(pos + 16, true);
    const keyStart = pos + RECORD_ITEM_BYTES;
    const keyEnd = keyStart + view.getUint32(pos + 20, true);
    const start = (keyEnd + 3) & ~3;
    const end = start + view.getUint32(pos + 24, true);
    key.set(u8, view, keyStart, keyEnd);
    payload.set(u8, view, start, end);
    const keyspace = this.stagedFor(database);
    if (keyspace.table.find(hash, view, keyStart, keyEnd) !== 0)
      throw new TwinKeyError(`key ${JSON.stringify(key.latin1())} of database ${database} occurs twice`);
    let ref = keyspace.insertRecord(key, hash, (head >>> 8) & 0xff, end - start);
    keyspace.fill(ref, payload);
    keyspace.setEncoding(ref, head >>> 24);
    if (((head >>> 16) & 1) !== 0) this.openTree(keyspace, ref);
    if (deadline !== 0) ref = keyspace.setDeadline(ref, hash, deadline);
    return (end + 3) & ~3;
  }

  private openTree(keyspace: Keyspace, ref: number): void {
    const { arena, collections } = this.tier;
    const slot = collections.open(ref);
    const id = collections.id[slot];
    const i32 = arena.i32[ref >>> arena.chunkShift];
    i32[(ref & arena.unitMask) << 2] |= FLAG_TREE;
    const word = keyspace.payloadWord(ref);
    i32[word] = slot;
    i32[word + 1] = id | 0;
    i32[word + 2] = Math.floor(id / 2 ** 32);
    this.slot = slot;
  }

  private page(u8: Buffer, view: DataView, pos: number): number {
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
}
