import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Binding, Scan, Site } from './binding.ts';
import type { PackedBatch, PackedKeys, PackedRows, Range } from './engine.ts';
import { causes, isDamage } from './failure.ts';
import { linkTables, syncLogs } from './files.ts';
import { KEY_BYTES_MAX, RowCursor, RowPacker, unpackKeys, UNREADABLE } from './packed.ts';
import { Lane, Pace } from './pace.ts';
import { loadRocksDb, type RocksDB } from './rocksdb-native.ts';

const Rocks = loadRocksDb();

const AFTER_EVERY_KEY = Buffer.alloc(KEY_BYTES_MAX + 1, 0xff);
/** Keys looked up in one call of the binding. */
const KEYS_AT_A_TIME = 1000;
const ROWS_FIRST = 64;
const ROWS_AT_A_TIME = 4096;
/** RocksDB starts writing a table back after this many bytes, so that its sync finds little left. */
const BYTES_PER_SYNC = 1024 ** 2;
/** Deleting less than about a table's size leaves the space to the next compactions. */
const RECLAIM_BYTES = 64 * 1024 ** 2;
const LEVELS = 7;

/** RocksDB through rocksdb-native. All its calls run in the libuv pool; reads one at a time. */
export async function openRocksDb(site: Site): Promise<Binding> {
  const { directory, fresh, options, salvage } = site;
  const bestEfforts = salvage && !renewCurrent(directory);
  const pinning = Rocks.constants.pinningTier.NONE;
  const rocks = new Rocks(directory, {
    createIfMissing: fresh,
    bestEffortsRecovery: bestEfforts,
    maxBackgroundJobs: options['max-background-jobs'] as number,
    maxOpenFiles: options['max-open-files'] as number,
    bytesPerSync: BYTES_PER_SYNC,
    writeBufferSize: options['write-buffer-size'] as number,
    maxWriteBufferNumber: options['max-write-buffer-number'] as number,
    tableBlockSize: options['block-size'] as number,
    blockCache: options['block-cache'] as boolean,
    // Without a cache they are kept with the open tables; RocksDB refuses to open otherwise.
    tableCacheIndexAndFilterBlocks: options['block-cache'] as boolean,
    // Pinned index and filter blocks would grow with the data, whatever the cache's size.
    topLevelIndexPinningTier: pinning,
    partitionPinningTier: pinning,
    unpartitionedPinningTier: pinning,
  });
  await rocks.ready();
  return new RocksBinding(site, rocks);
}

/** Names the newest manifest in a CURRENT that names none, which is all that is wrong then. False: it names one. */
function renewCurrent(directory: string): boolean {
  const manifests = readdirSync(directory).filter((name) => /^MANIFEST-\d+$/.test(name));
  const newest = manifests.sort().at(-1);
  const path = join(directory, 'CURRENT');
  const names = existsSync(path) ? readFileSync(path, 'latin1') : '';
  if (newest === undefined || manifests.some((name) => names === `${name}\n`)) return false;
  writeFileSync(path, `${newest}\n`, { flush: true });
  return true;
}

class RocksBinding implements Binding {
  /** The binding walks over a whole batch in one call, some 10 ms for this much. */
  readonly applyBytesMax = 1024 ** 2;
  private readonly site: Site;
  private readonly rocks: RocksDB;
  private readonly reads = new Lane();

  constructor(site: Site, rocks: RocksDB) {
    this.site = site;
    this.rocks = rocks;
  }

  async getMany(keys: PackedKeys): Promise<PackedRows> {
    const wanted = unpackKeys(keys);
    const packer = new RowPacker();
    for (let at = 0; at < wanted.length; at += KEYS_AT_A_TIME) {
      const some = wanted.slice(at, at + KEYS_AT_A_TIME);
      const values = await this.reads.run(() => this.get(some));
      for (let i = 0; i < some.length; i++) packer.row(some[i], values[i] ?? undefined);
    }
    return packer.take();
  }

  private async get(keys: Buffer[]): Promise<(Uint8Array | null)[]> {
    const batch = this.rocks.read({ capacity: keys.length });
    try {
      const values = Promise.all(keys.map((key) => batch.get(key).catch(unreadable)));
      const [found] = await Promise.all([values, batch.flush().catch(someFailed)]);
      return found;
    } finally {
      batch.destroy();
    }
  }

  async write(batch: PackedBatch): Promise<void> {
    const native = this.rocks.write({ capacity: Math.max(batch.rows, 1) });
    try {
      const pace = new Pace();
      const rows = new RowCursor(batch);
      while (rows.advance()) {
        const { key, value } = rows;
        if (value === undefined) native.tryDelete(key);
        else native.tryPut(key, value);
        if (pace.spent) await pace.turn();
      }
      await native.flush();
    } finally {
      native.destroy();
    }
  }

  /** The binding has no synchronous writes. */
  sync(): Promise<void> {
    return syncLogs(this.site.directory);
  }

  scan(range: Range, keysOnly: boolean, salvage = false): Promise<Scan> {
    return Promise.resolve(new RocksScan(this.rocks, this.reads, range, keysOnly, salvage));
  }

  /** A range tombstone, in a millisecond; then the space of a large range is compacted away. */
  async deleteRange(range: Range): Promise<void> {
    const start = Buffer.from(range.start);
    const end = range.end === undefined ? AFTER_EVERY_KEY : Buffer.from(range.end);
    if (start.compare(end) >= 0) return;
    const bytes = await this.rocks.approximateSize(start, end, { includeMemtables: true });
    await this.site.writes.run(async () => {
      const native = this.rocks.write({ capacity: 1 });
      try {
        native.tryDeleteRange(start, end);
        await native.flush();
      } finally {
        native.destroy();
      }
    });
    if (bytes >= RECLAIM_BYTES) {
      await this.site.maintenance.run(() => this.rocks.compactRange(start, end, {}));
    }
  }

  compact(): Promise<void> {
    // Otherwise the lowest level keeps its deleted rows.
    const bottommostLevelCompaction = Rocks.constants.bottommostLevelCompaction.FORCE;
    return this.rocks.compactRange(null, null, { bottommostLevelCompaction });
  }

  backup(directory: string): Promise<void> {
    return this.site.writes.run(() => linkTables(this.site.directory, directory));
  }

  async stats(): ReturnType<Binding['stats']> {
    const { options } = this.site;
    const details: Record<string, string | number> = {};
    const names = ['cur-size-all-mem-tables', 'block-cache-capacity', 'block-cache-usage'];
    names.push('estimate-table-readers-mem', 'estimate-num-keys', 'num-running-flushes');
    names.push('num-running-compactions', 'estimate-pending-compaction-bytes');
    for (let level = 0; level < LEVELS; level++) names.push(`num-files-at-level${level}`);
    for (const name of names) {
      const value = await this.rocks.getProperty(`rocksdb.${name}`);
      if (value !== null) details[`rocksdb.${name}`] = Number(value);
    }
    const cache = Number(details['rocksdb.block-cache-capacity'] ?? 0);
    const buffers = (options['max-write-buffer-number'] as number) * (options['write-buffer-size'] as number);
    return { memoryBytes: cache + buffers, details };
  }

  close(): Promise<void> {
    return this.rocks.close({ force: true });
  }
}

/** Each chunk has an iterator of its own over one snapshot: the binding's iterators read ahead unasked. */
class RocksScan implements Scan {
  private readonly session: RocksDB;
  private readonly reads: Lane;
  private readonly keysOnly: boolean;
  private readonly end: Buffer | undefined;
  private bound: { gte?: Buffer; gt?: Buffer };
  private rowsAtATime = ROWS_FIRST;
  private ended = false;
  private readonly salvage: boolean;
  private gaps: string[] = [];
  private readonly packer = new RowPacker();

  constructor(rocks: RocksDB, reads: Lane, range: Range, keysOnly: boolean, salvage: boolean) {
    this.salvage = salvage;
    this.session = rocks.snapshot();
    this.reads = reads;
    this.keysOnly = keysOnly;
    this.bound = { gte: Buffer.from(range.start) };
    this.end = range.end && Buffer.from(range.end);
  }

  async next(chunkBytes: number): Promise<PackedRows | undefined> {
    const { packer } = this;
    while (packer.length < chunkBytes && !this.ended) {
      const asked = this.rowsAtATime;
      try {
        const found = await this.reads.run(() => this.read(asked));
        this.ended = found < asked;
      } catch (error) {
        if (!this.salvage || !isDamage(error)) throw error;
        if (asked > 1) {
          // Rows that are asked for together are lost together.
          this.rowsAtATime = 1;
          continue;
        }
        this.gaps.push(causes(error));
        this.ended = !(await this.reads.run(() => this.leap()));
        continue;
      }
      const fitting = Math.ceil((chunkBytes * packer.rows) / Math.max(packer.length, 1));
      this.rowsAtATime = Math.min(Math.max(fitting, 1), 2 * asked, ROWS_AT_A_TIME);
    }
    const { gaps } = this;
    if (packer.rows === 0 && gaps.length === 0) return undefined;
    this.gaps = [];
    return gaps.length === 0 ? packer.take() : { ...packer.take(), gaps };
  }

  /**
   * Goes on behind what cannot be read: at the first place, found by halving, from which on reading does not fail.
   * False: there is none.
   */
  private async leap(): Promise<boolean> {
    const end = this.end ?? AFTER_EVERY_KEY;
    let bad = this.bound.gt ?? (this.bound.gte as Buffer);
    let good: Buffer | null = null;
    for (let i = 0; i < LEAPS_MAX; i++) {
      const middle = halfway(bad, good ?? end);
      if (middle.equals(bad.subarray(0, HALVED_BYTES))) break;
      if (await this.readable(middle)) good = middle;
      else bad = middle;
    }
    if (good === null) return false;
    this.bound = { gte: good };
    this.rowsAtATime = ROWS_FIRST;
    return true;
  }

  private async readable(from: Buffer): Promise<boolean> {
    const range = { gte: from, ...(this.end && { lt: this.end }) };
    const rows = this.session.iterator(range, { limit: 1, capacity: 1, values: false });
    try {
      for await (const row of rows) return row.key.length > 0;
      return true;
    } catch (error) {
      if (!isDamage(error)) throw error;
      return false;
    }
  }

  /** Packs the next rows, at most `limit`; fewer are the last. */
  private async read(limit: number): Promise<number> {
    const range = { ...this.bound, ...(this.end && { lt: this.end }) };
    const rows = this.session.iterator(range, { limit, capacity: limit, values: !this.keysOnly });
    let found = 0;
    for await (const { key, value } of rows) {
      this.packer.row(key, value ?? EMPTY);
      this.bound = { gt: key };
      if (++found === limit) break;
    }
    return found;
  }

  close(): Promise<void> {
    return this.session.close();
  }
}

/** Bytes of a key that take part in halving: what tells rows apart, a key row's prefix and some of the key. */
const HALVED_BYTES = 32;
/** Each halves what is left between two keys. */
const LEAPS_MAX = 8 * HALVED_BYTES;

/** The key in the middle of two, as numbers. */
function halfway(low: Buffer, high: Buffer): Buffer {
  const number = (key: Buffer): bigint =>
    BigInt(
      `0x${key
        .subarray(0, HALVED_BYTES)
        .toString('hex')
        .padEnd(2 * HALVED_BYTES, '0')}`,
    );
  const middle = (number(low) + number(high)) / 2n;
  return Buffer.from(middle.toString(16).padStart(2 * HALVED_BYTES, '0'), 'hex');
}

/** Each key that could not be read has told so. */
function someFailed(error: unknown): void {
  if (!(error instanceof AggregateError)) throw error;
}

function unreadable(error: unknown): Uint8Array {
  if (!isDamage(error)) throw error;
  return UNREADABLE;
}

const EMPTY = Buffer.alloc(0);
