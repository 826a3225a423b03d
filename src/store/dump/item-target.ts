/** Passes records and pages on as items, which RowInstaller takes in one by one: where they may not all fit into memory. */
import { ByteSink } from '../../bytes/sink.ts';
import type { Slice } from '../../bytes/slice.ts';
import { Tier } from '../tier.ts';
import { RowItems } from './row-items.ts';
import type { RowTarget } from './row-target.ts';

const MESSAGE_BYTES = 256 * 1024;
const PAGES_A_STEP = 1000;

export class ItemTarget implements RowTarget {
  readonly tier: Tier;
  private readonly items: RowItems;

  /** @param send takes a run of items */
  constructor(
    { hashKey, chunkBytes }: { hashKey: readonly [number, number]; chunkBytes: number },
    send: (memory: ArrayBuffer, length: number) => void,
  ) {
    this.tier = new Tier({ databases: 1, hashKey, chunkBytes });
    this.items = new RowItems(MESSAGE_BYTES, (full) => {
      send(full.u8.buffer as ArrayBuffer, full.pos);
      return new ByteSink(MESSAGE_BYTES * 2);
    });
  }

  expect(): void {
    // Each key finds its place.
  }

  settle(): RowTarget {
    return this;
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
    const { items, tier } = this;
    const { arena, collections } = tier;
    const hash = tier.hasher.hash32(key);
    const { u8, start, length } = payload;
    items.record(database, key, hash, deadline, type, slot !== 0, encoding, u8, start, length);
    if (slot === 0) return;
    collections.forEachPage(slot, (_, page) =>
      items.page(arena.u8[page >>> arena.chunkShift], (page & arena.unitMask) << 4),
    );
    collections.drop(slot);
    while (collections.freeSlice(PAGES_A_STEP));
  }

  flush(): void {
    this.items.flush();
  }
}
