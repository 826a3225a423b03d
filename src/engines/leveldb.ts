import { ClassicLevel, type Iterator } from 'classic-level';
import type { Binding, Scan, Site } from './binding.ts';
import type { PackedBatch, PackedKeys, PackedRows, Range } from './engine.ts';
import { deleteScanned } from './delete.ts';
import { linkTables, syncLogs } from './files.ts';
import { KEY_BYTES_MAX, RowCursor, RowPacker, unpackKeys } from './packed.ts';
import { Pace } from './pace.ts';

const AFTER_EVERY_KEY = Buffer.alloc(KEY_BYTES_MAX + 1, 0xff);
/** Rows asked of an iterator at a time; it stops earlier at the chunk's bytes. */
const ROWS_AT_A_TIME = 1000;
const LEVELS = 7;

type Level = ClassicLevel<Buffer, Buffer>;

/** LevelDB through classic-level. Gets are made in this thread, the rest in the libuv pool. */
export async function openLevelDb(site: Site): Promise<Binding> {
  const { directory, fresh, options } = site;
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
      packer.row(key, this.level.getSync(key));
      if (pace.spent) await pace.turn();
    }
    return packer.take();
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

  scan(range: Range, keysOnly: boolean): Promise<Scan> {
    return Promise.resolve(new LevelScan(this.level, range, keysOnly));
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

class LevelScan implements Scan {
  private readonly keysOnly: boolean;
  private readonly iterator: Iterator<Level, Buffer, Buffer>;
  private readonly packer = new RowPacker();

  constructor(level: Level, range: Range, keysOnly: boolean) {
    this.keysOnly = keysOnly;
    this.iterator = level.iterator({
      gte: Buffer.from(range.start),
      ...(range.end && { lt: Buffer.from(range.end) }),
      values: !keysOnly,
      fillCache: false,
    });
  }

  async next(chunkBytes: number): Promise<PackedRows | undefined> {
    const { packer, iterator } = this;
    while (packer.length < chunkBytes) {
      const rows = await iterator.nextv(ROWS_AT_A_TIME);
      if (rows.length === 0) break;
      for (const [key, value] of rows) packer.row(key, this.keysOnly ? EMPTY : value);
    }
    return packer.rows === 0 ? undefined : packer.take();
  }

  close(): Promise<void> {
    return this.iterator.close();
  }
}

const EMPTY = Buffer.alloc(0);
