import type { Slice } from '../bytes/slice.ts';
import type { Keyspace } from './keyspace.ts';
import type { Merge } from './merge.ts';

/** What a unit of work lacks. */
export type RowWant =
  | { kind: 'key'; keyspace: Keyspace; hash: number; key: Slice }
  /** `next`: the collection's page numbers end before it; `ahead`: it is only likely that there is such a page, and that it is needed. */
  | { kind: 'page'; slot: number; id: number; number: number; next: number; ahead: boolean }
  /** All keys of one hash. */
  | { kind: 'hash'; keyspace: Keyspace; hash: number }
  /** About `count` keys whose hashes, unsigned, come next from `from` on. */
  | { kind: 'keys'; keyspace: Keyspace; from: number; count: number }
  /** All keys of a database, some of which are still in the keyspace that is merged into it. */
  | { kind: 'merge'; merge: Merge }
  /** Memory for a change. */
  | { kind: 'room'; bytes: number };
