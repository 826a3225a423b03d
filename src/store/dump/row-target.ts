/** Where the records and pages go that a file is read for. */
import type { Slice } from '../../bytes/slice.ts';
import type { Tier } from '../tier.ts';

export interface RowTarget {
  /** Where values are put together, in its first database, which is empty between two keys. */
  readonly tier: Tier;
  /** So many keys of a database, at most, will come. */
  expect(database: number, keys: number): void;
  /** Between two keys: passes on what was made if that is enough; returns where the next key goes. */
  settle(): RowTarget;
  /**
   * A key. `slot`: 0, or the collection of `tier` whose root the payload is, which is given away with its pages.
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
  /** Passes on all that was made. */
  flush(): void;
}
