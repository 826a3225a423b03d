import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ClassicLevel, type Iterator } from 'classic-level';
import type { Binding, Scan, Site } from './binding.ts';
import type { PackedBatch, PackedKeys, PackedRows, Range } from './engine.ts';
import { deleteScanned } from './delete.ts';
import { causes, isDamage } from './failure.ts';
import { linkTables, syncLogs } from './files.ts';
import { findLogDamage } from './leveldb-log.ts';
import { KEY_BYTES_MAX, RowCursor, RowPacker, unpackKeys, UNREADABLE } from './packed.ts';
import { Pace } from './pace.ts';

const AFTER_EVERY_KEY = Buffer.alloc(KEY_BYTES_MAX + 1, 0xff);
/** Rows asked of an iterator at a time; it stops earlier at the chunk's bytes. */
const ROWS_AT_A_TIME = 1000;
const LEVELS = 7;

type Level = ClassicLevel<Buffer, Buffer>;
type Rows = Iterator<Level, Buffer, Buffer>;
type Row = [Buffer, Buffer];

/** LevelDB through classic-level. Gets are made in this thread, the rest in the libuv pool. */
export async function openLevelDb(site: Site): Promise<Binding> {
  const { directory, fresh, options, salvage, redone } = site;
  if (salvage) {
    await ClassicLevel.repair(directory);
    // What it could not read; the caller has a copy.
    await rm(join(directory, 'lost'), { recursive: true, force: true });
  }
  const damage = salvage || redone ? null : findLogDamage(directory);
  if (damage !== null) throw new Error(damage);
  const level: Level = new ClassicLevel(directory, {
    keyEncoding: 'buffer',
    valueEncoding: 'buffer',
    createIfMissing: fresh,
    errorIfExists: false,
    compression: options['compression'] as boolean,
    cacheSize: options['block-cache-size'] as number,
    writeBufferSize: options['write-buffer-size'] as number,
    maxFileSize: options['max-file-size'] as number,
    blockSize: options['block-size'] as number,
    maxOpenFiles: options['max-open-files'] as number,
  });
  await level.open();
  return new LevelDb(site, level);
}

class LevelDb implements Binding {
  /** More in one batch is no faster. */
  readonly applyBytesMax = 4 * 1024 ** 2;
  private readonly site: Site;
  private readonly level: Level;

  constructor(site: Site, level: Level) {
    this.site = site;
    this.level = level;
  }

  async getMany(keys: PackedKeys): Promise<PackedRows> {
    const packer = new RowPacker();
    const pace = new Pace();
    for (const key of unpackKeys(keys)) {
      packer.row(key, this.get(key));
      if (pace.spent) await pace.turn();
    }
    return packer.take();
  }

  private get(key: Buffer): Uint8Array | undefined {
    try {
      return this.level.getSync(key);
    } catch (error) {
      if (!isDamage(error)) throw error;
      return UNREADABLE;
    }
  }

  async write(batch: PackedBatch): Promise<void> {
    const chained = this.level.batch();
    try {
      const pace = new Pace();
      const rows = new RowCursor(batch);
      while (rows.advance()) {
        const { key, value } = rows;
        if (value === undefined) chained.del(key);
        else chained.put(key, value);
        if (pace.spent) await pace.turn();
      }
    } catch (error) {
      await chained.close();
      throw error;
    }
    await chained.write();
  }

  sync(): Promise<void> {
    return syncLogs(this.site.directory);
  }

  scan(range: Range, keysOnly: boolean, salvage = false): Promise<Scan> {
    return Promise.resolve(new LevelScan(this.level, range, keysOnly, salvage));
  }

  /** One iterator for the whole range: a new one would walk over the tombstones of the last. */
  async deleteRange(range: Range): Promise<void> {
    const scan = await this.scan(range, true);
    try {
      await deleteScanned(scan, (batch) => this.site.writes.run(() => this.write(batch)));
    } finally {
      await scan.close();
    }
  }

  compact(): Promise<void> {
    return this.level.compactRange(Buffer.alloc(0), AFTER_EVERY_KEY);
  }

  backup(directory: string): Promise<void> {
    return this.site.writes.run(() => linkTables(this.site.directory, directory));
  }

  stats(): ReturnType<Binding['stats']> {
    const { options } = this.site;
    const details: Record<string, string | number> = {};
    for (let level = 0; level < LEVELS; level++) {
      const property = `leveldb.num-files-at-level${level}`;
      details[property] = Number(this.level.getProperty(property));
    }
    const inUse = 'leveldb.approximate-memory-usage';
    details[inUse] = Number(this.level.getProperty(inUse));
    details['leveldb.stats'] = this.level.getProperty('leveldb.stats');
    const cache = options['block-cache-size'] as number;
    const buffers = 2 * (options['write-buffer-size'] as number);
    return Promise.resolve({ memoryBytes: cache + buffers, details });
  }

  close(): Promise<void> {
    return this.level.close();
  }
}

/**
 * LevelDB steps over a block that it cannot read, and tells so at an iterator's end only. So a second iterator goes over
 * the same stretch, without a row leaving it (6% of what the first one takes), and its end tells.
 */
class LevelScan implements Scan {
  private readonly level: Level;
  private readonly keysOnly: boolean;
  private readonly salvage: boolean;
  private readonly snapshot: ReturnType<Level['snapshot']>;
  private readonly end: Buffer | undefined;
  private readonly iterator: Rows;
  /** Where the next stretch begins. */
  private from: { gte: Buffer } | { gt: Buffer };
  private gaps: string[] = [];
  private readonly packer = new RowPacker();

  constructor(level: Level, range: Range, keysOnly: boolean, salvage: boolean) {
    this.level = level;
    this.keysOnly = keysOnly;
    this.salvage = salvage;
    this.snapshot = level.snapshot();
    this.from = { gte: Buffer.from(range.start) };
    this.end = range.end && Buffer.from(range.end);
    this.iterator = this.iterate();
  }

  private iterate(): Rows {
    const { level, from, end, keysOnly, snapshot } = this;
    return level.iterator({
      ...from,
      ...(end && { lt: end }),
      values: !keysOnly,
      fillCache: false,
      snapshot,
    });
  }

  async next(chunkBytes: number): Promise<PackedRows | undefined> {
    const { packer } = this;
    while (packer.length < chunkBytes) {
      const rows = await this.stretch();
      if (rows.length === 0) break;
      for (const [key, value] of rows) packer.row(key, this.keysOnly ? EMPTY : value);
      this.from = { gt: rows[rows.length - 1][0] };
    }
    const { gaps } = this;
    if (packer.rows === 0 && gaps.length === 0) return undefined;
    this.gaps = [];
    return gaps.length === 0 ? packer.take() : { ...packer.take(), gaps };
  }

  private async stretch(): Promise<Row[]> {
    let rows: Row[];
    try {
      rows = await this.iterator.nextv(ROWS_AT_A_TIME);
    } catch (error) {
      // The last rows, which are lost together with the damage that their end tells.
      this.noteGap(error);
      return this.oneByOne();
    }
    if (rows.length > 0) await this.passOver(rows[rows.length - 1][0]).catch(this.noteGap);
    return rows;
  }

  private async passOver(last: Buffer): Promise<void> {
    const { level, from, snapshot } = this;
    const silent = { keys: false, values: false, fillCache: false };
    const iterator = level.iterator({ ...from, lte: last, ...silent, snapshot });
    try {
      await iterator.nextv(1);
    } finally {
      await iterator.close();
    }
  }

  private async oneByOne(): Promise<Row[]> {
    const rows: Row[] = [];
    const iterator = this.iterate();
    try {
      for (let row = await iterator.nextv(1); row.length > 0; row = await iterator.nextv(1))
        rows.push(row[0]);
    } catch (error) {
      if (!isDamage(error)) throw error;
    } finally {
      await iterator.close();
    }
    return rows;
  }

  private readonly noteGap = (error: unknown): void => {
    if (!this.salvage || !isDamage(error)) throw error;
    this.gaps.push(causes(error));
  };

  async close(): Promise<void> {
    await this.iterator.close();
    await this.snapshot.close();
  }
}

const EMPTY = Buffer.alloc(0);
