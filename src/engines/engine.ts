import type { MessagePort } from 'node:worker_threads';

/**
 * An ordered key-value store on disk: what the server's checkpoints write to and the engine-level
 * bench drives. Keys and values are byte strings, ordered as memcmp. An engine knows nothing of Redis.
 *
 * Everything is asynchronous and runs outside the caller's thread; `getMany` is served while a large
 * write, scan, compaction or backup runs. Bytes cross in packed form, one ArrayBuffer a call, which is
 * transferred and so gone for the caller.
 */

/** Option values by their full name, e.g. `leveldb.block-cache-size`; sizes in bytes. */
export type EngineOptions = Readonly<Record<string, string | number | boolean>>;

/**
 * Rows to write in one atomic step, packed: for each row u32 key length, u32 value length
 * (DELETE_LENGTH: the row is deleted), key, value; little endian, no padding.
 */
export interface PackedBatch {
  bytes: ArrayBuffer;
  /** Bytes used in `bytes`. */
  length: number;
  rows: number;
}

/** In place of a value's length: the row is deleted (batches), or absent (results of getMany). */
export const DELETE_LENGTH = 0xffffffff;
/** In place of a value's length in what is read: the row is there, but not as it was written. */
export const DAMAGED_LENGTH = 0xfffffffe;

/** Rows found, packed like a batch. */
export interface PackedRows extends PackedBatch {
  /** Of a scan that salvages: why rows before, among or right after these cannot be read. */
  gaps?: string[];
}

/** Keys to look up, packed: u32 length, key. */
export interface PackedKeys {
  bytes: ArrayBuffer;
  length: number;
  count: number;
}

/** Half-open range of keys. */
export interface Range {
  start: Uint8Array;
  /** Exclusive; absent: to the end. */
  end?: Uint8Array;
}

export interface ScanOptions extends Range {
  /** At most this many bytes a chunk (rounded up to a whole row). */
  chunkBytes?: number;
  keysOnly?: boolean;
  /** Passes over what cannot be read, and tells it in `gaps`; otherwise that is an ENGINE_DAMAGED error. */
  salvage?: boolean;
}

export interface OpenEngineOptions {
  /**
   * LevelDB and RocksDB: make a state anew of the files that can be read; what cannot be is gone, and older
   * values may have come back, and files that cannot be read are removed. Not for an engine that opens without.
   */
  salvage?: boolean;
  /**
   * What was written since the last sync is about to be written again, so that a power failure may have left anything
   * of it. Otherwise damage to the engine's log is an ENGINE_DAMAGED error.
   */
  redone?: boolean;
}

export interface EngineStats {
  /** Bytes of the engine's files. */
  diskBytes: number;
  /** Bytes of memory the engine holds or may hold: caches and write buffers. */
  memoryBytes: number;
  /** The engine's own figures under its own names. */
  details: Record<string, string | number>;
}

export interface ApplyOptions {
  /** Bytes of rows that are held and put in order at a time; an atomic batch has at most so many. Default 4 MB. */
  batchBytes?: number;
  sync?: boolean;
}

export interface CloseOptions {
  abandon?: boolean;
}

export interface Engine {
  readonly name: EngineName;
  /** Rows in the order of `keys`; absent rows have DELETE_LENGTH and no value, those that cannot be read DAMAGED_LENGTH. */
  getMany(keys: PackedKeys): Promise<PackedRows>;
  /** All rows whose keys begin with one of `prefixes`, in that order; for prefixes that few rows have. */
  getPrefixed(prefixes: PackedKeys): Promise<PackedRows>;
  /** Atomic. With `sync` it is on disk when the promise resolves, and so is all that was written before. */
  write(batch: PackedBatch, options?: { sync?: boolean }): Promise<void>;
  /**
   * Reads rows packed like a batch from `length` bytes at `offset` of the file `path`, in the engine's
   * thread, and writes them in atomic batches, about in the order of their keys (rows of one key in
   * the order they have), the last row of all last. It holds `batchBytes` of rows at a time; a larger
   * row is a batch of its own. Not atomic as a whole; repeat after a crash. With `sync` everything is on disk when the promise resolves. A row that does not end within the region, or
   * with an empty key, is an ENGINE_IO error that names the file and the row's offset in it; the
   * rows before it may be written. Resolves to the number of rows.
   */
  applyRows(path: string, offset: number, length: number, options?: ApplyOptions): Promise<number>;
  /** Rows of one consistent view, that of the moment the first chunk is asked for, in chunks. Ending the iteration releases it. */
  scan(options: ScanOptions): AsyncIterable<PackedRows>;
  /** Paced: other calls are served meanwhile. Not atomic; repeat after a crash. */
  deleteRange(range: Range): Promise<void>;
  compact(): Promise<void>;
  /** Copies the engine's files, as one consistent state, into a new directory. Hard links where files are immutable. */
  backup(directory: string): Promise<void>;
  stats(): Promise<EngineStats>;
  /**
   * A way to the same engine for another thread: transfer the port there and give it to
   * `connectEngine` (src/engines/open.ts). Closing that client ends only the connection.
   */
  connect(): MessagePort;
  /**
   * Rejects what is pending with ENGINE_DEAD after finishing the write under way; releases the
   * directory's lock. With `abandon` that write is given up if the engine can (nothing of its batch is
   * then there): for an end that must be soon.
   */
  close(options?: CloseOptions): Promise<void>;
}

export const ENGINE_NAMES = ['leveldb', 'lmdb', 'rocksdb'] as const;
export type EngineName = (typeof ENGINE_NAMES)[number];

/** Why an engine could not do something; `message` names the path and the next step. */
export class EngineError extends Error {
  readonly code:
    | 'ENGINE_MISSING'
    | 'ENGINE_LOCKED'
    | 'ENGINE_DAMAGED'
    | 'ENGINE_FORMAT'
    | 'ENGINE_MISMATCH'
    | 'ENGINE_FULL'
    | 'ENGINE_OPTION'
    | 'ENGINE_DEAD'
    | 'ENGINE_IO';

  constructor(code: EngineError['code'], message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'EngineError';
    this.code = code;
  }
}
