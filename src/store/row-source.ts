/**
 * What checkpoints and recovery see of the memory tier: rows out, rows in.
 *
 * Rows go out packed as an engine's batch is (`PackedBatch`: u32 key length, u32 value length or
 * DELETE_LENGTH, key, value). They are absolute, and no key occurs in more than one row of a cut.
 */
import type { ByteSink } from '../bytes/sink.ts';
import type { PackedRows, Range } from '../engines/engine.ts';
import type { FilteredKeys } from './filter-files.ts';
import type { EngineLink } from './residents.ts';
import type { RowWalk } from './row-walk.ts';

/** Rows of the engine that belong to nothing any more, to be given to `deleteRange`. */
export interface PurgeRange {
  start: Uint8Array;
  /** Exclusive. */
  end: Uint8Array;
  /**
   * Of rows that name rows of others which nobody else may know of: the ranges that a chunk of them names,
   * to be deleted before the chunk is, and where it ends.
   */
  owned?(chunk: PackedRows): { ranges: Range[]; end: Uint8Array };
}

export interface RowSource {
  /** Bytes that a cut begun now would copy out, about; and those of the current cut not copied out yet. */
  readonly dirtyBytes: number;
  readonly cutBytes: number;
  /** A checkpoint should begin when this is dirty, whatever its own limit is; writers are slowed up to twice as much. */
  readonly dirtyShare?: number;

  /**
   * Takes a cut: the state as it is now will be copied out to `sink`, whatever changes meanwhile.
   * Returns what the meta row must hold of the tier (`restoreMeta`), a copy. The previous cut must have ended.
   */
  beginCut(sink: ByteSink): Buffer;
  /** Where rows go from now on; also calls that change the store write rows there, before the change. */
  cutSink: ByteSink;
  /** Rows written since `beginCut`. */
  readonly cutRows: number;
  /** Copies rows to the sink for about `budgetMs` or `maxBytes`; true when the cut is complete. */
  copyCut(budgetMs: number, maxBytes: number): boolean;
  /**
   * Ends the cut. `applied`: all its rows and the meta row are in the engine. Otherwise the cut is
   * given up and its rows are dirty again; also allowed before it was complete. What was applied is gone through for
   * about `budgetMs`, as long as it takes unless given; false when there is more to do, by another call.
   */
  endCut(applied: boolean, budgetMs?: number): boolean;

  /**
   * Ranges whose owners were gone already at the last applied cut. `purged` takes one off the list
   * when the engine has deleted it; the list is in the meta row, so that it survives a crash.
   */
  purgeRanges(): PurgeRange[];
  purged(range: PurgeRange): void;

  /** Recovery, in this order, on a new tier: the meta row's part, then rows in any order of which key rows come before page rows, then `recovered`. */
  restoreMeta(meta: Uint8Array): void;
  /** Takes a row of the engine into memory, clean. Rows of owners that are gone are ignored. Throws `RowError` when it is damaged. */
  installRow(
    key: Uint8Array,
    keyStart: number,
    keyEnd: number,
    value: Uint8Array,
    valueStart: number,
    valueEnd: number,
  ): void;
  /**
   * A row of the engine is not what was written: its value is not served any more. False when the row
   * does not tell whose it is: a key that is asked for and may be the row's is taken to be it.
   */
  damagedRow(key: Uint8Array, keyStart: number, keyEnd: number): boolean;
  /** All rows were given that had to be. Throws `RowError` when they are not those that the meta row counts. */
  recovered(): void;
  /**
   * In place of all rows only those of the ranges that `next` names, one after the other, are given to `take`,
   * which is as `installRow`; the others are fetched when they are needed.
   */
  leaveKeys?(): { next(): Range | null; take(walk: RowWalk): void };
  /** So many bytes of log are about to be replayed: brings into memory what it would cost more to fetch meanwhile. */
  beforeReplay?(logBytes: number): Promise<void>;
  /** The keyspaces of the databases, whose filters of absent keys are kept. */
  served?(): readonly FilteredKeys[];
  /** Where rows are fetched from. Before recovery without a checkpoint: then limits do not hold yet. */
  link?(link: EngineLink): void;
}

/** Damaged rows are all counted, and so many named. */
export const DAMAGED_NAMED_MAX = 20;
/** What is added to the name of a damaged row that does not tell its key. */
export const NAMELESS = '; it does not tell its key, which is found when it is asked for';

/** What becomes of values with so many damaged rows. */
export function damagedRowsMessage(rows: number): string {
  return `${rows} damaged rows: the values that they belong to are not served, DEL removes them`;
}

/** A row of the engine that cannot be what was written. */
export class RowError extends Error {
  override readonly name = 'RowError';
}
