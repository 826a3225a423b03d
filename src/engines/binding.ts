import type { EngineStats, PackedBatch, PackedKeys, PackedRows, Range } from './engine.ts';
import type { Lane } from './pace.ts';

/** What a binding is opened with, in the engine's thread. */
export interface Site {
  directory: string;
  /** The directory holds no engine yet: make one. Otherwise a missing file is damage. */
  fresh: boolean;
  /** Keep of damaged files what can be read, where the engine can. */
  salvage: boolean;
  /** What was written since the last sync is about to be written again: it may be damaged. */
  redone: boolean;
  /** Every option of the engine, by its name without the engine's prefix. */
  options: Readonly<Record<string, number | string | boolean>>;
  /** Writes are let through one at a time; a binding enters it for what must not meet a write. */
  writes: Lane;
  /** So are compactions and backups. */
  maintenance: Lane;
}

/** A consistent view being read in key order. */
export interface Scan {
  /** About `chunkBytes` of rows; undefined at the end. */
  next(chunkBytes: number): Promise<PackedRows | undefined>;
  close(): Promise<void>;
}

/**
 * One engine's binding behind the few calls that the engine's thread needs. Thin: it translates and
 * packs; order, pacing and the threads' protocol are the host's (host.ts).
 *
 * None of it may keep the thread for longer than a slice (pace.ts), and at most one call each of
 * write, scan (or getMany) and compact (or backup) may occupy a thread of the process's libuv pool,
 * so that of its four threads one is always left for the log's fsync.
 */
export interface Binding {
  /** Largest batch of applyRows, for a binding that a larger one would keep for too long, or cost too much memory. */
  readonly applyBytesMax: number;
  /** A row that cannot be read has the value UNREADABLE. */
  getMany(keys: PackedKeys): Promise<PackedRows>;
  /** Called in the writes lane. Atomic; readable by getMany when it resolves. */
  write(batch: PackedBatch): Promise<void>;
  /** Called in the writes lane. Puts everything written before on disk. */
  sync(): Promise<void>;
  /** With `salvage` what cannot be read is passed over and told in the rows' `gaps`; else it is an error. */
  scan(range: Range, keysOnly: boolean, salvage?: boolean): Promise<Scan>;
  deleteRange(range: Range): Promise<void>;
  compact(): Promise<void>;
  /** Fills an empty directory; the host adds the identity file. */
  backup(directory: string): Promise<void>;
  stats(): Promise<Omit<EngineStats, 'diskBytes'>>;
  /** Makes the write under way fail soon. Absent where a write cannot be stopped. */
  abandonWrite?(): void;
  close(): Promise<void>;
}
