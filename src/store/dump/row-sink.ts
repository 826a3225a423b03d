/** What takes the keys and values that a snapshot or the engine's rows are read for. */
import type { Slice } from '../../bytes/slice.ts';
import type { RdbKey } from '../../rdb/visitor.ts';

export interface RowSink {
  /** The key that is shown next; its place, database and deadline are the reader's to set. */
  readonly key: RdbKey;
  /** What the record notes of the value's encoding; set like the key. */
  encoding: number;
  /** Before the first key of a database: how many it has. */
  database(index: number, keys: number, expiring: number): void;
  /** A value whose payload, not a tree's root, lies at [start, start + length). */
  packed(type: number, u8: Buffer, view: DataView, start: number, length: number): void;
  /** Begins a tree: its root's payload. Its pages follow, in any order, free ones too, then `endTree`. */
  beginTree(type: number, payload: Slice): void;
  page(u8: Buffer, start: number): void;
  endTree(type: number): void;
}
