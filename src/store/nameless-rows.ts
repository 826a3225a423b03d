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
  count = 0;

  private readonly byHash = new Map<number, NamelessRow>();
  /** Rows, by their keys in hex, for the next cut: to be deleted, or to be written without a value, which no key's row is. */
  private changes = new Map<string, 'delete' | 'write'>();
  /** Those of the current cut. */
  private inCut = new Map<string, 'delete' | 'write'>();

  add(rows: Iterable<NamelessRow>, count: number): void {
    for (const row of rows) for (const hash of row.hashes) this.byHash.set(hash, row);
    this.count += count;
  }

  get rows(): Set<NamelessRow> {
    return new Set(this.byHash.values());
  }

  /** The row that a key of this hash may have, undefined when there is none. */
  find(hash: number): NamelessRow | undefined {
    return this.count === 0 ? undefined : this.byHash.get(hash);
  }

  /** Nothing is left to be done. */
  get settled(): boolean {
    return this.count === 0 && this.changes.size === 0 && this.inCut.size === 0;
  }

  /** The row's key has been found; `ownRow` is the key of the row that it has. Returns what takes that back. */
  named(row: NamelessRow, ownRow: Buffer): () => void {
    const { byHash, changes } = this;
    this.count--;
    for (const hash of row.hashes) if (byHash.get(hash) === row) byHash.delete(hash);
    this.changes = new Map(changes);
    if (row.row.equals(ownRow)) this.changes.delete(row.row.toString('hex'));
    else this.changes.set(row.row.toString('hex'), 'delete');
    return () => {
      this.count++;
      for (const hash of row.hashes) byHash.set(hash, row);
      this.changes = changes;
    };
  }

  /** The engine is to have the row under another key, and as one that is damaged. */
  rename(row: NamelessRow, to: Buffer): NamelessRow {
    this.changes.set(row.row.toString('hex'), 'delete');
    this.changes.set(to.toString('hex'), 'write');
    return { row: to, hashes: row.hashes };
  }

  /** Writes the changed rows; returns how many. */
  beginCut(sink: ByteSink): number {
    this.inCut = this.changes;
    this.changes = new Map();
    for (const [hex, change] of this.inCut) {
      const row = Buffer.from(hex, 'hex');
      sink.u32(row.length);
      sink.u32(change === 'delete' ? DELETE_LENGTH : 0);
      sink.copy(row, 0, row.length);
    }
    return this.inCut.size;
  }

  endCut(applied: boolean): void {
    if (!applied) this.changes = new Map([...this.inCut, ...this.changes]);
    this.inCut = new Map();
  }
}
