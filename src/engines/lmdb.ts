import { once } from 'node:events';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Transaction } from 'lmdb';
import type { Binding, Scan, Site } from './binding.ts';
import { deleteScanned } from './delete.ts';
import { EngineError, type PackedBatch, type PackedKeys, type PackedRows, type Range } from './engine.ts';
import { syncPath } from './files.ts';
import { FIRST_KEY, lmdbBytes, lmdbStats, openLmdbFile, type Lmdb } from './lmdb-file.ts';
import type { WriterReply, WriterRequest, WriterStart } from './lmdb-writer.ts';
import { RowPacker, unpackKeys } from './packed.ts';
import { Pace } from './pace.ts';

/** Data files are numbered: a compaction makes the next one. The highest number is the database. */
const FIRST_FILE = 1;
const DATA_FILE = /^data-(\d{6})\.mdb$/;

/**
 * Bytes of keys deleted in one transaction. Each waits for the disk twice, so they are few; the pages that one
 * changes, up to half as many as rows, are copied to memory until then.
 */
const DELETE_BYTES = 256 * 1024;

function dataFile(directory: string, number: number): string {
  return join(directory, `data-${String(number).padStart(6, '0')}.mdb`);
}

/**
 * LMDB through lmdb-js. Its calls are synchronous, so writes have a thread of their own
 * (lmdb-writer.ts); this thread reads, and is never kept by a writer: in LMDB readers and the writer
 * do not block each other.
 */
export async function openLmdb(site: Site): Promise<Binding> {
  const { directory, fresh, options } = site;
  const numbers = await dataFiles(directory);
  const newest = numbers.at(-1) ?? (fresh ? FIRST_FILE : undefined);
  if (newest === undefined) throw new Error(`no such file: ${dataFile(directory, FIRST_FILE)}`);
  const file = new DataFile(directory, newest, site);
  if (fresh) await syncPath(file.path);
  for (const number of numbers) if (number !== newest) await removeDataFile(directory, number);
  for (const name of await readdir(directory)) {
    if (name.includes('.mdb.new')) await rm(join(directory, name), { force: true });
  }
  const writer = new Writer({ path: file.path, options, abandoned: new SharedArrayBuffer(4) });
  await writer.online();
  return new LmdbBinding(site, file, writer);
}

async function dataFiles(directory: string): Promise<number[]> {
  const numbers: number[] = [];
  for (const name of await readdir(directory)) {
    const match = DATA_FILE.exec(name);
    if (match !== null) numbers.push(Number(match[1]));
  }
  return numbers.sort((a, b) => a - b);
}

async function removeDataFile(directory: string, number: number): Promise<void> {
  const path = dataFile(directory, number);
  await rm(path, { force: true });
  await rm(`${path}-lock`, { force: true });
}

/** A data file as this thread reads it. After a compaction the old one stays until its scans end. */
class DataFile {
  readonly number: number;
  readonly path: string;
  readonly db: Lmdb;
  private readonly directory: string;
  private scans = 0;
  private retired = false;

  constructor(directory: string, number: number, site: Site) {
    this.directory = directory;
    this.number = number;
    this.path = dataFile(directory, number);
    this.db = openLmdbFile(this.path, site.options, site.fresh);
    this.claim();
  }

  /** LMDB lets other processes in; its table of readers tells who is there. */
  private claim(): void {
    // The first read enters this process in the table, before the others are looked for.
    this.db.getBinary(Buffer.from([0]));
    this.db.readerCheck();
    for (const [, pid] of this.db.readerList().matchAll(/^\s*(\d+) /gm)) {
      if (Number(pid) === process.pid) continue;
      void this.db.close();
      throw new EngineError(
        'ENGINE_LOCKED',
        `engine lmdb in ${this.directory}: the lock is held by process ${pid}; stop that one, or ` +
          `use another directory`,
      );
    }
  }

  /** A view of the newest committed state that stays until it is given back. */
  snapshot(): Transaction {
    this.db.resetReadTxn();
    this.scans++;
    return this.db.useReadTransaction();
  }

  async release(transaction: Transaction): Promise<void> {
    transaction.done();
    this.scans--;
    await this.discard();
  }

  async retire(): Promise<void> {
    this.retired = true;
    await this.discard();
  }

  private async discard(): Promise<void> {
    if (!this.retired || this.scans > 0) return;
    await this.db.close();
    await removeDataFile(this.directory, this.number);
  }
}

class LmdbBinding implements Binding {
  /**
   * Each batch is a commit that waits for the disk, but all pages that it changes, one of 4 KB for each
   * row at worst, are copied to memory until then, and that memory is kept for the next.
   */
  readonly applyBytesMax = 8 * 1024 ** 2;
  private readonly site: Site;
  private readonly writer: Writer;
  private file: DataFile;
  /** Bytes of the largest batch written so far. */
  private largestBatch = 0;

  constructor(site: Site, file: DataFile, writer: Writer) {
    this.site = site;
    this.file = file;
    this.writer = writer;
  }

  async getMany(keys: PackedKeys): Promise<PackedRows> {
    const packer = new RowPacker();
    const pace = new Pace();
    this.file.db.resetReadTxn();
    for (const key of unpackKeys(keys)) {
      const value = this.file.db.getBinaryFast(key);
      // lmdb-js hands out its own buffer, with `length` set to the value's.
      packer.row(key, value?.subarray(0, value.length));
      if (pace.spent) await pace.turn();
    }
    return packer.take();
  }

  async write(batch: PackedBatch): Promise<void> {
    this.largestBatch = Math.max(this.largestBatch, batch.length);
    await this.writer.call((id) => ({ id, op: 'write', batch }), [batch.bytes]);
  }

  /** Every commit was synced (see openLmdbFile). */
  sync(): Promise<void> {
    return Promise.resolve();
  }

  scan(range: Range, keysOnly: boolean): Promise<Scan> {
    return Promise.resolve(new LmdbScan(this.file, range, keysOnly));
  }

  /** A scan per batch: a snapshot of the whole would keep the deleted pages from being used again. */
  async deleteRange(range: Range): Promise<void> {
    for (let found = true; found;) {
      const scan = new LmdbScan(this.file, range, true);
      try {
        found = await this.deleteFirst(scan);
      } finally {
        await scan.close();
      }
    }
  }

  private async deleteFirst(scan: Scan): Promise<boolean> {
    let found = false;
    const first: Scan = {
      next: async (bytes) => {
        if (found) return undefined;
        const keys = await scan.next(bytes);
        found = keys !== undefined;
        return keys;
      },
      close: () => Promise.resolve(),
    };
    await deleteScanned(first, (batch) => this.site.writes.run(() => this.write(batch)), DELETE_BYTES);
    return found;
  }

  /**
   * Copies the rows to the next data file while reads go on, then moves over to it. Writes wait, as
   * they would be missing in the copy.
   */
  compact(): Promise<void> {
    return this.site.writes.run(async () => {
      const old = this.file;
      const number = old.number + 1;
      const path = dataFile(this.site.directory, number);
      await this.writer.call((id) => ({ id, op: 'compact', path }));
      this.file = new DataFile(this.site.directory, number, this.site);
      await old.retire();
    });
  }

  async backup(directory: string): Promise<void> {
    const path = dataFile(directory, FIRST_FILE);
    await this.file.db.backup(path, false);
    await syncPath(path);
    await syncPath(directory);
  }

  stats(): ReturnType<Binding['stats']> {
    this.file.db.resetReadTxn();
    const stats = lmdbStats(this.file.db);
    const { file, used } = lmdbBytes(stats);
    return Promise.resolve({
      // Its cache is the system's page cache; a transaction holds copies of the pages it changes.
      memoryBytes: 2 * this.largestBatch,
      details: {
        'lmdb.map-size': stats.mapSize,
        'lmdb.file-bytes': file,
        'lmdb.used-bytes': used,
        'lmdb.entries': stats.entryCount,
        'lmdb.tree-depth': stats.treeDepth,
        'lmdb.readers': stats.numReaders,
      },
    });
  }

  /**
   * Also needed for the process to end at all: a thread that is terminated within a transaction of
   * lmdb-js keeps the environment's mutex, for which the cleanup at the end then waits for ever.
   */
  abandonWrite(): void {
    this.writer.abandonWrite();
  }

  async close(): Promise<void> {
    await this.writer.close();
    await this.file.db.close();
  }
}

class LmdbScan implements Scan {
  private readonly file: DataFile;
  private readonly transaction: Transaction;
  private readonly keysOnly: boolean;
  private readonly rows: Iterator<Buffer | { key: Buffer; value: Buffer }>;
  private readonly packer = new RowPacker();

  constructor(file: DataFile, range: Range, keysOnly: boolean) {
    this.file = file;
    this.transaction = file.snapshot();
    this.keysOnly = keysOnly;
    const bounds = {
      // LMDB has no empty key to start at.
      start: range.start.length > 0 ? Buffer.from(range.start) : FIRST_KEY,
      ...(range.end && { end: Buffer.from(range.end) }),
      transaction: this.transaction,
    };
    const rows = keysOnly ? file.db.getKeys(bounds) : file.db.getRange(bounds);
    this.rows = rows[Symbol.iterator]();
  }

  async next(chunkBytes: number): Promise<PackedRows | undefined> {
    const { packer, rows } = this;
    const pace = new Pace();
    while (packer.length < chunkBytes) {
      const step = rows.next();
      if (step.done === true) break;
      const row = step.value;
      if (this.keysOnly) packer.row(row as Buffer, EMPTY);
      else {
        const { key, value } = row as { key: Buffer; value: Buffer };
        packer.row(key, value);
      }
      if (pace.spent) await pace.turn();
    }
    return packer.rows === 0 ? undefined : packer.take();
  }

  async close(): Promise<void> {
    this.rows.return?.();
    await this.file.release(this.transaction);
  }
}

const EMPTY = Buffer.alloc(0);

/** The writing thread, from this one. Its end is this thread's end: no write is ever left in doubt. */
class Writer {
  private readonly worker: Worker;
  private readonly pending = new Map<number, { resolve(): void; reject(error: unknown): void }>();
  private lastId = 0;
  private readonly abandoned: Int32Array;

  constructor(start: WriterStart) {
    this.abandoned = new Int32Array(start.abandoned);
    this.worker = new Worker(new URL('./lmdb-writer.js', import.meta.url), {
      name: 'lmdb-writer',
      workerData: start,
      execArgv: [],
    });
    this.worker.on('message', (reply: WriterReply) => {
      const waiting = this.pending.get(reply.id);
      this.pending.delete(reply.id);
      if (reply.code !== undefined) {
        waiting?.reject(new EngineError(reply.code, (reply.error as Error).message));
      } else if (reply.error !== undefined) waiting?.reject(reply.error);
      else waiting?.resolve();
    });
    this.worker.on('error', (error) => {
      throw error;
    });
  }

  abandonWrite(): void {
    Atomics.store(this.abandoned, 0, 1);
  }

  async online(): Promise<void> {
    await once(this.worker, 'online');
  }

  call(ask: (id: number) => WriterRequest, transferred: ArrayBuffer[] = []): Promise<void> {
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve, reject });
      this.worker.postMessage(ask(id), transferred);
    });
  }

  async close(): Promise<void> {
    await this.call((id) => ({ id, op: 'close' }));
    await this.worker.terminate();
  }
}
