/**
 * A start that leaves the keys in the engine: which rows it needs before anything is served. These are the
 * expiry indexes; one of which a row is damaged or missing is made anew from the deadlines of its keys.
 */
import type { Range } from '../engines/engine.ts';
import type { Arena } from './arena.ts';
import type { CollectionTable } from './collection-table.ts';
import type { Keyspace } from './keyspace.ts';
import { deadlineOfRow, EXPIRY_ROW_BYTES, hashRange, kindRange, pageRange, RowKind } from './row-format.ts';
import type { RowReader } from './row-reader.ts';
import { RowError } from './row-source.ts';
import type { RowWalk } from './row-walk.ts';

export interface ColdGround {
  readonly arena: Arena;
  readonly collections: CollectionTable;
  /** No more should be in memory. */
  readonly full: boolean;
}

export class ColdStart {
  private readonly ground: ColdGround;
  private readonly reader: RowReader;
  private readonly keyspaces: readonly Keyspace[];
  private readonly ranges = this.needed();
  /** Pages of the index that is being read. */
  private pages = 0;
  /** Whose index is being made anew. */
  private remade: Keyspace | null = null;

  constructor(ground: ColdGround, keyspaces: readonly Keyspace[], reader: RowReader) {
    this.ground = ground;
    this.keyspaces = keyspaces;
    this.reader = reader;
  }

  /** The rows to be taken next; null when there are no more. */
  next(): Range | null {
    const step = this.ranges.next();
    return step.done === true ? null : step.value;
  }

  private *needed(): Generator<Range, undefined> {
    const { collections } = this.ground;
    yield kindRange(RowKind.ExpiryIndex);
    for (const keyspace of this.keyspaces) {
      const { record } = keyspace.expiry;
      if (record === 0) continue;
      this.pages = 0;
      yield pageRange(collections.id[keyspace.collection(record)]);
      if (this.pages !== keyspace.nextPage(record) - 1) this.reader.unordered.add(keyspace);
    }
    for (const keyspace of this.reader.unorderedOf(this.keyspaces)) {
      keyspace.expiry.drop();
      this.remade = keyspace;
      for (const kind of [RowKind.LongKey, RowKind.Key]) yield hashRange(kind, keyspace.id);
    }
    return undefined;
  }

  /** Takes a row of such a range. Throws RowError when it is damaged. */
  take(walk: RowWalk): void {
    const { bytes, keyStart, valueStart, end } = walk;
    if (walk.damaged) throw new RowError('its checksum does not match');
    if (this.remade !== null) {
      const deadline = deadlineOfRow(bytes, valueStart, end);
      if (deadline !== 0) this.remade.expiry.add(deadline, bytes.readInt32BE(keyStart + EXPIRY_ROW_BYTES));
      return;
    }
    const page = bytes[keyStart] === RowKind.Page;
    // Of an index that is larger than memory the rest is fetched when it is needed.
    if (!page || !this.ground.full) this.reader.install(bytes, keyStart, valueStart, bytes, valueStart, end);
    if (page) this.pages++;
  }

  /** As RowSource.damagedRow. */
  damaged(key: Uint8Array, keyStart: number, keyEnd: number): boolean {
    // A deadline that nobody knows; what else is wrong is found when the key is fetched.
    if (this.remade !== null) return key[keyStart] === RowKind.Key;
    return this.reader.damaged(key, keyStart, keyEnd);
  }
}
