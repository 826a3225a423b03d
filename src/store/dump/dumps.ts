/** Copies of the data beside the data directory, of one moment each. */
import type { PersistentStore } from '../persistent-store.ts';
import type { Tier } from '../tier.ts';
import { backup, type BackupResult } from './backup.ts';
import type { Imports } from './imports.ts';
import { RowSave } from './save-rows.ts';
import { SlabSave, type SaveOptions, type SaveResult } from './save-slabs.ts';

/** What a writer is held up for when a dump's memory is at its end. */
const WRITER_DELAY_MS_MAX = 100;

/** A copy that is being made. */
export interface DumpUnderWay {
  done: Promise<SaveResult>;
  /** How much of the data it has, 0 to 1. */
  readonly fraction: number;
  /** Bytes of memory that hold what has changed since it began. */
  readonly keptBytes: number;
  /** Gives it up: `done` rejects, and nothing is left of it. */
  abandon(): void;
}

export class Dumps {
  private readonly store: PersistentStore<Tier>;
  private readonly imports: Imports;

  constructor(store: PersistentStore<Tier>, imports: Imports) {
    this.store = store;
    this.imports = imports;
  }

  /** Milliseconds by which writers are to be held up, so that a dump under way can follow. */
  get writerDelayMs(): number {
    const pressure = this.store.store.arena.snapshot?.pressure ?? 0;
    return pressure ** 3 * WRITER_DELAY_MS_MAX;
  }

  /** Writes a file of the data as they are now. One at a time. */
  save(options: SaveOptions): DumpUnderWay {
    if (!this.store.store.isWhole) return new RowSave(this.store, options);
    return new SlabSave(this.store.store, options);
  }

  /** Makes a data directory of the data as they are at one moment of the call. */
  backup(to: string): Promise<BackupResult> {
    return backup(this.store, this.imports, to);
  }
}
