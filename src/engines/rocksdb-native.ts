import { createRequire } from 'node:module';

/** The part of rocksdb-native (3.18) that is used; the package has no types of its own. */
export interface RocksDB {
  ready(): Promise<void>;
  close(options?: { force?: boolean }): Promise<void>;
  /** A session over the state of now. */
  snapshot(): RocksDB;
  iterator(
    range: { gte?: Buffer; gt?: Buffer; lt?: Buffer },
    options: { limit: number; capacity: number; values: boolean },
  ): AsyncIterable<{ key: Buffer; value: Buffer | null }>;
  read(options: { capacity: number }): ReadBatch;
  write(options: { capacity: number }): WriteBatch;
  compactRange(start: Buffer | null, end: Buffer | null, options: CompactOptions): Promise<void>;
  approximateSize(start: Buffer, end: Buffer, options: { includeMemtables: boolean }): Promise<number>;
  getProperty(name: string): Promise<string | number | null>;
}

/** Takes a batch's keys and values by reference; they must not change until `flush` resolves. */
export interface WriteBatch {
  tryPut(key: Uint8Array, value: Uint8Array): void;
  tryDelete(key: Uint8Array): void;
  tryDeleteRange(start: Uint8Array, end: Uint8Array): void;
  flush(): Promise<void>;
  destroy(): void;
}

export interface ReadBatch {
  get(key: Uint8Array): Promise<Buffer | null>;
  flush(): Promise<void>;
  destroy(): void;
}

export interface CompactOptions {
  exclusive?: boolean;
  bottommostLevelCompaction?: number;
}

export interface RocksOptions {
  createIfMissing: boolean;
  /** Opens to the newest state of which all files are whole. */
  bestEffortsRecovery: boolean;
  maxBackgroundJobs: number;
  maxOpenFiles: number;
  bytesPerSync: number;
  writeBufferSize: number;
  maxWriteBufferNumber: number;
  tableBlockSize: number;
  blockCache: boolean;
  tableCacheIndexAndFilterBlocks: boolean;
  topLevelIndexPinningTier: number;
  partitionPinningTier: number;
  unpartitionedPinningTier: number;
}

interface RocksModule {
  new (path: string, options: RocksOptions): RocksDB;
  constants: {
    pinningTier: Record<'NONE' | 'FLUSHED_AND_SIMILAR' | 'ALL', number>;
    bottommostLevelCompaction: Record<'NONE' | 'SKIP' | 'FORCE', number>;
  };
}

/** @throws when the package or its prebuilt library for this platform is missing */
export function loadRocksDb(): RocksModule {
  return createRequire(import.meta.url)('rocksdb-native') as RocksModule;
}
