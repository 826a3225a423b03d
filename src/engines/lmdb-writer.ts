import { statfsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { release } from '../bytes/release.ts';
import { formatSize } from '../bytes/size.ts';
import type { Site } from './binding.ts';
import { EngineError, type PackedBatch } from './engine.ts';
import { syncPath } from './files.ts';
import { FIRST_KEY, lmdbBytes, lmdbStats, openLmdbFile, type Bytes } from './lmdb-file.ts';
import { RowCursor } from './packed.ts';
import { stepBack } from './thread-priority.ts';

/** The file LMDB's writing thread runs: transactions of any size and their syncs, beside the readers. */

export interface WriterStart {
  path: string;
  /** One 32-bit word; when it is not zero, a write under way is to be given up. */
  abandoned: SharedArrayBuffer;
  options: Site['options'];
}

export type WriterRequest =
  | { id: number; op: 'write'; batch: PackedBatch }
  /** Copies every row to the data file `path`, which does not exist yet, and goes on there. */
  | { id: number; op: 'compact'; path: string }
  | { id: number; op: 'close' };

export type WriterReply = { id: number; error?: unknown; code?: EngineError['code'] };

const { path, options, abandoned } = workerData as WriterStart;
const abandonedWord = new Int32Array(abandoned);
stepBack();
let db = openLmdbFile(path, options, false);

/** Bytes of rows copied in one transaction. */
const COPY_BYTES = 16 * 1024 ** 2;

function write(batch: PackedBatch): void {
  const rows = new RowCursor(batch);
  const key: Bytes = Buffer.from(batch.bytes);
  const value: Bytes = Buffer.from(batch.bytes);
  if (!onlyDeletes(batch)) checkSpace(batch.length);
  try {
    db.transactionSync(() => {
      while (rows.advance()) {
        if (Atomics.load(abandonedWord, 0) !== 0)
          throw new Error('the write was given up: the engine is closed');
        key.start = rows.keyStart;
        key.end = value.start = rows.keyEnd;
        value.end = rows.valueEnd;
        if (rows.deleted) db.removeSync(key);
        else db.putSync(key, value);
      }
    });
  } catch (error) {
    throw diskIsFull(batch.length) ? new Error('no space left on device', { cause: error }) : error;
  }
  release([batch.bytes]);
}

function onlyDeletes(batch: PackedBatch): boolean {
  const rows = new RowCursor(batch);
  while (rows.advance()) if (!rows.deleted) return false;
  return true;
}

/** A file system without room for all of a write takes a part of it; LMDB calls that an I/O error. */
function diskIsFull(wanted: number): boolean {
  const { bavail, bsize } = statfsSync(dirname(path));
  return bavail * bsize < 2 * wanted;
}

/**
 * lmdb-js grows the map without end, so the limit is kept here. What a transaction will need is
 * estimated by its rows' bytes; a file may end up larger than the limit by less than one batch.
 */
function checkSpace(bytes: number): void {
  const limit = options['map-size'] as number;
  const { file, used } = lmdbBytes(lmdbStats(db));
  if (Math.max(file, used + bytes) <= limit) return;
  throw new EngineError(
    'ENGINE_FULL',
    `the LMDB file in ${path} has ${file} bytes, ${used} of them in use, and a write of ${bytes} ` +
      `would pass lmdb.map-size (${formatSize(limit)}); raise lmdb.map-size, or delete rows and compact`,
  );
}

/**
 * Copies rows in key order, so that every page is filled. (A file that lmdb-js 3.5 copied with its
 * own compaction fails an assertion of LMDB's at the first write.)
 */
async function compact(to: string): Promise<void> {
  const unfinished = `${to}.new`;
  for (const left of [unfinished, `${unfinished}-lock`]) await rm(left, { force: true });
  const copy = openLmdbFile(unfinished, options, true, true);
  const rows = db.getRange({ start: FIRST_KEY })[Symbol.iterator]();
  for (let done = false; !done;) {
    copy.transactionSync(() => {
      for (let bytes = 0; bytes < COPY_BYTES && !done;) {
        const row = rows.next();
        done = row.done === true;
        if (row.done === true) break;
        const { key, value } = row.value;
        copy.putSync(key, value, { append: true });
        bytes += key.length + value.length;
      }
    });
  }
  await copy.close();
  await syncPath(unfinished);
  await rename(unfinished, to);
  await rm(`${unfinished}-lock`, { force: true });
  await syncPath(dirname(to));
  const next = openLmdbFile(to, options, false);
  await db.close();
  db = next;
}

async function perform(request: WriterRequest): Promise<void> {
  switch (request.op) {
    case 'write':
      write(request.batch);
      return;
    case 'compact':
      await compact(request.path);
      return;
    case 'close':
      await db.close();
  }
}

parentPort?.on('message', (request: WriterRequest) => {
  perform(request).then(
    () => parentPort?.postMessage({ id: request.id } satisfies WriterReply),
    (error: unknown) => {
      const code = error instanceof EngineError ? error.code : undefined;
      parentPort?.postMessage({ id: request.id, error, code } satisfies WriterReply);
    },
  );
});
