/** Where the records and pages go that a file is read for. */
import type { Slice } from '../../bytes/slice.ts';
import type { Tier } from '../tier.ts';

/** A tree whose pages follow its record. */
export const PAGES_FOLLOW = -1;

export interface RowTarget {
  /** Where values are put together, in its first database, which is empty between two keys. */
  readonly tier: Tier;
  /** So many keys of a database, at most, will come. */
  expect(database: number, keys: number): void;
  /** Between two keys: passes on what was made if that is enough; returns where the next key goes. */
  settle(): RowTarget;
  /**
   * A key. `slot`: 0, or the collection of `tier` whose root the payload is, which is given away with its pages, or
   * what `openTree` has returned.
   */
  record(
    database: number,
    key: Slice,
    type: number,
    slot: number,
    encoding: number,
    deadline: number,
    payload: Slice,
  ): void;
  /** Before a record whose payload, which may be changed, is the root of a tree elsewhere; its pages follow. */
  openTree(payload: Slice): number;
  page(slot: number, u8: Buffer, start: number, length: number): void;
  /** Passes on all that was made. */
  flush(): void;
}
