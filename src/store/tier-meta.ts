/**
 * The tier's part of the meta row, little endian: u8 version, u32 u32 hash key, u32 next database id, u64 next
 * collection id, u32 databases, for each u32 id, u64 keys, u64 keys with a deadline; then the purge list.
 */
import { ByteSink } from '../bytes/sink.ts';
import type { DumpedDatabase } from './dump/slab-reader.ts';
import { RowError } from './row-source.ts';

const META_VERSION = 1;
const HEAD_BYTES = 25;
const DATABASE_BYTES = 20;

export interface TierMeta {
  hashKey: readonly [number, number];
  nextDatabaseId: number;
  nextCollectionId: number;
  /** `id` is what rows name a database by. */
  databases: { id: number; size: number; expiring: number }[];
}

/** Begins a meta part; the purge list follows. */
export function writeTierMeta({ hashKey, nextDatabaseId, nextCollectionId, databases }: TierMeta): ByteSink {
  const sink = new ByteSink(1024);
  sink.byte(META_VERSION);
  sink.u32(hashKey[0]);
  sink.u32(hashKey[1]);
  sink.u32(nextDatabaseId);
  sink.u64(nextCollectionId);
  sink.u32(databases.length);
  for (const { id, size, expiring } of databases) {
    sink.u32(id);
    sink.u64(size);
    sink.u64(expiring);
  }
  return sink;
}

/** What was written, and where the purge list begins. Throws RowError when another version wrote it. */
export function readTierMeta(view: DataView): TierMeta & { end: number } {
  if (view.getUint8(0) !== META_VERSION) {
    throw new RowError(`the meta row has version ${view.getUint8(0)}, this program reads ${META_VERSION}`);
  }
  const databases = Array.from({ length: view.getUint32(21, true) }, (_, index) => {
    const at = HEAD_BYTES + DATABASE_BYTES * index;
    return {
      id: view.getUint32(at, true),
      size: Number(view.getBigUint64(at + 4, true)),
      expiring: Number(view.getBigUint64(at + 12, true)),
    };
  });
  return {
    hashKey: [view.getInt32(1, true), view.getInt32(5, true)],
    nextDatabaseId: view.getUint32(9, true),
    nextCollectionId: Number(view.getBigUint64(13, true)),
    databases,
    end: HEAD_BYTES + DATABASE_BYTES * databases.length,
  };
}

/** The key of the hash that rows are ordered by. */
export function hashKeyOfMeta(meta: Uint8Array): readonly [number, number] {
  return readTierMeta(new DataView(meta.buffer, meta.byteOffset, meta.byteLength)).hashKey;
}

/** What a meta row's part of the tier says of the databases; `keyspace` is the id that rows name one by. */
export function databasesOfMeta(meta: Uint8Array): DumpedDatabase[] {
  return readTierMeta(new DataView(meta.buffer, meta.byteOffset, meta.byteLength)).databases.map(
    ({ id, size, expiring }, index) => ({ index, keyspace: id, keys: size, expiring }),
  );
}
