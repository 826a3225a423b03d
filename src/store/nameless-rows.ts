/**
 * Damaged rows of one keyspace that do not tell their key: those of long keys, whose row has the key in
 * its value, and those whose own key is damaged. What they have left are hashes. A key of such a hash that
 * somebody asks for and that is not there is taken to be the row's: its value is a damaged one from then on.
 */
import type { ByteSink } from '../bytes/sink.ts';
import { DELETE_LENGTH } from '../engines/engine.ts';

/** A damaged row that does not tell its key. */
export interface NamelessRow {
  /** Its own key in the engine. */
  row: Buffer;
  /** Hashes that its key may have. */
  hashes: number[];
}

export class NamelessRows {
  /** Keys that the rows stand for. There may be more rows: of some it is not known whether they are of this keyspace. */
  count: number;

  private readonly byHash = new Map<number, NamelessRow>();
  /** Rows in the engine whose keys are known now and have rows of their own: to be deleted. */
  private superseded: Buffer[] = [];
  /** How many of these the current cut deletes. */
  private inCut = 0;

  constructor(rows: readonly NamelessRow[], count: number) {
    this.count = count;
    for (const row of rows) for (const hash of row.hashes) this.byHash.set(hash, row);
  }

  /** The row that a key of this hash may have, undefined when there is none. */
  find(hash: number): NamelessRow | undefined {
    return this.count === 0 ? undefined : this.byHash.get(hash);
  }

  /** Nothing is left to be done. */
  get settled(): boolean {
    return this.count === 0 && this.superseded.length === 0;
  }

  /** The row's key has been found; `ownRow` is the key of the row that it has. Returns what takes that back. */
  named(row: NamelessRow, ownRow: Buffer): () => void {
    const { byHash } = this;
    this.count--;
    for (const hash of row.hashes) if (byHash.get(hash) === row) byHash.delete(hash);
    const before = this.superseded;
    if (!row.row.equals(ownRow)) this.superseded = [...before, row.row];
    return () => {
      this.count++;
      for (const hash of row.hashes) byHash.set(hash, row);
      this.superseded = before;
    };
  }

  /** Writes the rows that delete what has been superseded; returns how many. */
  beginCut(sink: ByteSink): number {
    for (const row of this.superseded) {
      sink.u32(row.length);
      sink.u32(DELETE_LENGTH);
      sink.copy(row, 0, row.length);
    }
    this.inCut = this.superseded.length;
    return this.inCut;
  }

  endCut(applied: boolean): void {
    if (applied) this.superseded = this.superseded.slice(this.inCut);
    this.inCut = 0;
  }
}
