/**
 * The tier's part of the meta row, little endian: u8 version; u32 and u32 hash key; u32 next database id;
 * u64 next collection id; databases: u32 count, for each u32 id, u64 keys, u64 with a deadline; merges that are
 * not over: u32 count, for each u32 database, u32 id of the smaller keyspace, u64 and u64 as before, u8 whether its
 * keys win, u64 Unix ms of the import; imports that are not published: u32 count, for each u8 length and name, u32
 * count of keyspaces, for each u32 database, u32 id, u64, u64; the purge list.
 */
import { ByteSink } from '../bytes/sink.ts';
import type { DumpedDatabase } from './dump/slab-reader.ts';
import type { PurgeList } from './purge-list.ts';
import { RowError } from './row-source.ts';

const META_VERSION = 2;

export interface MetaKeyspace {
  /** Of the database that it is, or is to become a part of. */
  index: number;
  /** That rows name it by. */
  id: number;
  size: number;
  expiring: number;
}

export interface TierMeta {
  hashKey: readonly [number, number];
  nextDatabaseId: number;
  nextCollectionId: number;
  databases: MetaKeyspace[];
  merges: (MetaKeyspace & { wins: boolean; now: number })[];
  stagings: { name: string; keyspaces: MetaKeyspace[] }[];
}

export function writeTierMeta(meta: TierMeta, purges: PurgeList): Buffer {
  const sink = new ByteSink(1024);
  const counts = ({ id, size, expiring }: MetaKeyspace): void => {
    sink.u32(id);
    sink.u64(size);
    sink.u64(expiring);
  };
  sink.byte(META_VERSION);
  sink.u32(meta.hashKey[0]);
  sink.u32(meta.hashKey[1]);
  sink.u32(meta.nextDatabaseId);
  sink.u64(meta.nextCollectionId);
  sink.u32(meta.databases.length);
  meta.databases.forEach(counts);
  sink.u32(meta.merges.length);
  for (const merge of meta.merges) {
    sink.u32(merge.index);
    counts(merge);
    sink.byte(Number(merge.wins));
    sink.u64(merge.now);
  }
  sink.u32(meta.stagings.length);
  for (const { name, keyspaces } of meta.stagings) {
    sink.byte(name.length);
    sink.ascii(name);
    sink.u32(keyspaces.length);
    for (const keyspace of keyspaces) {
      sink.u32(keyspace.index);
      counts(keyspace);
    }
  }
  purges.write(sink);
  return Buffer.from(sink.written());
}

/** What was written, and the purge list. Throws RowError when another version wrote it. */
export function readTierMeta(meta: Uint8Array): TierMeta & { purges: DataView } {
  const view = new DataView(meta.buffer, meta.byteOffset, meta.byteLength);
  let pos = 0;
  const byte = (): number => view.getUint8(pos++);
  const u32 = (): number => view.getUint32((pos += 4) - 4, true);
  const i32 = (): number => view.getInt32((pos += 4) - 4, true);
  const u64 = (): number => Number(view.getBigUint64((pos += 8) - 8, true));
  const keyspace = (index: number): MetaKeyspace => ({ index, id: u32(), size: u64(), expiring: u64() });
  const list = <T>(length: number, item: (index: number) => T): T[] =>
    Array.from({ length }, (_, index) => item(index));
  const version = byte();
  if (version !== META_VERSION)
    throw new RowError(`the meta row has version ${version}, this program reads ${META_VERSION}`);
  return {
    hashKey: [i32(), i32()],
    nextDatabaseId: u32(),
    nextCollectionId: u64(),
    databases: list(u32(), keyspace),
    merges: list(u32(), () => ({ ...keyspace(u32()), wins: byte() !== 0, now: u64() })),
    stagings: list(u32(), () => {
      const length = byte();
      pos += length;
      const name = Buffer.from(meta.buffer, meta.byteOffset + pos - length, length).latin1Slice();
      return { name, keyspaces: list(u32(), () => keyspace(u32())) };
    }),
    purges: new DataView(meta.buffer, meta.byteOffset + pos, meta.byteLength - pos),
  };
}

/** The key of the hash that rows are ordered by. */
export function hashKeyOfMeta(meta: Uint8Array): readonly [number, number] {
  return readTierMeta(meta).hashKey;
}

/** What a meta row's part of the tier says of the databases; `keyspace` is the id that rows name one by. */
export function databasesOfMeta(meta: Uint8Array): DumpedDatabase[] {
  return readTierMeta(meta).databases.map(({ index, id, size, expiring }) => ({
    index,
    keyspace: id,
    keys: size,
    expiring,
  }));
}
