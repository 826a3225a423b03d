import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { open, type RootDatabase } from 'lmdb';
import type { Site } from './binding.ts';

export type Lmdb = RootDatabase<Buffer, Bytes>;

/**
 * A key or a value for lmdb-js. With `start` and `end` it is these bytes of the Buffer, whose memory begins
 * where the Buffer does: one object then serves for all rows of a batch, and no view is made for each. Of
 * values lmdb-js knows this itself (its encoders hand them over so), of keys by `KEYS`.
 */
export type Bytes = Buffer & { start?: number; end?: number };

/** Where a range begins that has no other beginning: lmdb-js would pass over what it takes for its own. */
export const FIRST_KEY = Buffer.of(0);

/** Keys as they are, ordered as memcmp. */
const KEYS = {
  writeKey(key: Bytes, target: Buffer, at: number): number {
    const { start = 0, end = key.length } = key;
    // By this error lmdb-js finds that it needs more memory.
    if (end - start > target.length - at) throw new RangeError(`no room for a key of ${end - start} bytes`);
    for (let from = start; from < end; from++) target[at++] = key[from];
    return at;
  },
  readKey: (source: Buffer, start: number, end: number): Buffer =>
    Uint8Array.prototype.slice.call(source, start, end) as Buffer,
};

/** What lmdb's getStats gives, as far as it is used here; its types leave it open. */
export interface LmdbStats {
  pageSize: number;
  treeDepth: number;
  treeBranchPageCount: number;
  treeLeafPageCount: number;
  overflowPages: number;
  entryCount: number;
  mapSize: number;
  lastPageNumber: number;
  numReaders: number;
}

/** The map is made this large at first, or twice the file, and doubled by lmdb when the file outgrows it. */
const FIRST_MAP_BYTES = 64 * 1024 ** 2;

/**
 * Opens a data file in this thread; threads that open the same file share one environment.
 *
 * No sync flag is set: LMDB then writes a transaction's pages, waits for them (fdatasync), and writes
 * the meta page through a file opened with O_DSYNC. Every commit is durable, and whatever crashes at
 * whatever moment, one of the two meta pages names a complete tree. Its other modes were not taken:
 * noSync may reuse pages that the tree on disk still needs before the newer meta page is there, so
 * that a power failure can damage the file; noMetaSync saves only the last small write; and with
 * lmdb-js's overlappingSync a commit waits for the same two writes, and only readers see it earlier.
 */
export function openLmdbFile(
  path: string,
  options: Site['options'],
  create: boolean,
  unsynced = false,
): Lmdb {
  const bytes = statSync(path, { throwIfNoEntry: false })?.size;
  if (bytes === undefined) {
    if (!create) throw new Error(`no such file: ${path}`);
  } else if (bytes > 0 || !create) checkFile(path, bytes);
  const limit = options['map-size'] as number;
  return open<Buffer, Buffer>(path, {
    keyEncoder: KEYS,
    encoding: 'binary',
    noSubdir: true,
    overlappingSync: false,
    noSync: unsynced,
    mapSize: Math.min(Math.max(FIRST_MAP_BYTES, 2 * (bytes ?? 0)), limit),
    maxReaders: options['max-readers'] as number,
    maxDbs: 1,
    ...(options['read-ahead'] === false && { noReadAhead: true }),
  });
}

/** Places in a data file of lmdb-js 3 (LMDB 1.0's format): a page header, then MDB_meta. */
const META = 24;
const META_VERSION = META + 4;
const META_PAGE_SIZE = META + 24;
const META_LAST_PAGE = META + 120;
const META_TRANSACTION = META + 128;
const META_END = META + 136;
const MAGIC = 0xbeefc0de;
const DATA_VERSION = 2;

/**
 * LMDB trusts its file: lmdb-js crashes on one whose meta pages are not whole, and reading a page
 * beyond the end of a file that was cut short is a bus error. So both are looked at first.
 * @throws Error saying `corrupt`, or `format version`
 */
function checkFile(path: string, bytes: number): void {
  const file = openSync(path, 'r');
  try {
    const first = Buffer.alloc(META_END);
    readSync(file, first, 0, META_END, 0);
    const pageSize = first.readUInt32LE(META_PAGE_SIZE);
    const second = Buffer.alloc(META_END);
    readSync(file, second, 0, META_END, pageSize);
    for (const meta of [first, second]) {
      if (meta.readUInt32LE(META) !== MAGIC) throw new Error(`corrupt meta page in ${path}`);
      const version = meta.readUInt32LE(META_VERSION);
      if (version !== DATA_VERSION) {
        throw new Error(`${path} has LMDB's format version ${version}, not ${DATA_VERSION}`);
      }
    }
    const transaction = (meta: Buffer): bigint => meta.readBigUInt64LE(META_TRANSACTION);
    const newest = transaction(first) >= transaction(second) ? first : second;
    const pages = Number(newest.readBigUInt64LE(META_LAST_PAGE)) + 1;
    if (bytes < pages * pageSize) {
      throw new Error(`corrupt: ${path} has ${bytes} bytes of ${pages * pageSize}`);
    }
  } finally {
    closeSync(file);
  }
}

export function lmdbStats(db: Lmdb): LmdbStats {
  return db.getStats() as LmdbStats;
}

/** Bytes of the data file, and of the pages its tree uses. */
export function lmdbBytes(stats: LmdbStats): { file: number; used: number } {
  const used = stats.treeBranchPageCount + stats.treeLeafPageCount + stats.overflowPages;
  return { file: (stats.lastPageNumber + 1) * stats.pageSize, used: used * stats.pageSize };
}
