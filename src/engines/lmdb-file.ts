import { statSync } from 'node:fs';
import { open, type RootDatabase } from 'lmdb';
import type { Site } from './binding.ts';

export type Lmdb = RootDatabase<Buffer, Buffer>;

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
const FIRST_MAP_BYTES = 256 * 1024 ** 2;

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
export function openLmdbFile(path: string, options: Site['options'], create: boolean): Lmdb {
  const bytes = statSync(path, { throwIfNoEntry: false })?.size;
  if (bytes === undefined && !create) throw new Error(`no such file: ${path}`);
  const limit = options['map-size'] as number;
  return open<Buffer, Buffer>(path, {
    keyEncoding: 'binary',
    encoding: 'binary',
    noSubdir: true,
    overlappingSync: false,
    mapSize: Math.min(Math.max(FIRST_MAP_BYTES, 2 * (bytes ?? 0)), limit),
    maxReaders: options['max-readers'] as number,
    maxDbs: 1,
    ...(options['read-ahead'] === false && { noReadAhead: true }),
  });
}

export function lmdbStats(db: Lmdb): LmdbStats {
  return db.getStats() as LmdbStats;
}

/** Bytes of the data file, and of the pages its tree uses. */
export function lmdbBytes(stats: LmdbStats): { file: number; used: number } {
  const used = stats.treeBranchPageCount + stats.treeLeafPageCount + stats.overflowPages;
  return { file: (stats.lastPageNumber + 1) * stats.pageSize, used: used * stats.pageSize };
}
