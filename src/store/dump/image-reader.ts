/** Reads an image. */
import { crc32 } from 'node:zlib';
import { allocatePadded, Slice, viewOf } from '../../bytes/slice.ts';
import { Damage, RdbError } from '../../rdb/error.ts';
import { Type } from '../api.ts';
import { Hasher } from '../hash.ts';
import { PAGE_BYTES, SLAB_BYTES } from '../arena.ts';
import { pageRowBytes } from '../page.ts';
import { MAX_KEY_BYTES, MAX_PAYLOAD_BYTES } from '../record.ts';
import { ChunkTarget } from './chunk-target.ts';
import {
  Chunk,
  CHUNK_BYTES_MAX,
  CHUNK_HEADER_BYTES,
  decodeHeader,
  END_BYTES,
  HEADER_START_BYTES,
  headerBytes,
  SLABS_MAX,
  type ImageHeader,
} from './image-format.ts';
import { ImageSlabs, SlabRows, type SlabRoom, type SlabTaker } from './image-slabs.ts';
import { RowBuilder, type RowBuilderOptions } from './row-builder.ts';
import { ITEM_PAGE, ITEM_RECORD, PAGE_ITEM_BYTES, RECORD_ITEM_BYTES } from './row-items.ts';
import { ImageRows } from './image-rows.ts';
import { ImageValues } from './image-values.ts';
import type { RowTarget } from './row-target.ts';

/** Chunks that are being read while one is taken. */
const AHEAD = 3;

/** The file, from its beginning. */
export interface ImageSource {
  /** Fills memory as far as there is more; returns the bytes. */
  read(into: Buffer): number;
  /** The same, off this thread; calls may overlap, and each begins where the one before ends. */
  readLater(into: Buffer): Promise<number>;
}

/** A chunk whose body is being read. */
interface Coming {
  offset: number;
  kind: number;
  /** Checksum up to `memory`, and what it must be with it. */
  sum: number;
  wanted: number;
  memory: Buffer;
  read: Promise<number>;
  room: SlabRoom | null;
}

export class ImageReader {
  readonly counts = { keys: 0, expired: 0, modules: 0 };
  readonly header: ImageHeader;
  /** Byte of the file up to which it was read. */
  offset = 0;
  private readonly source: ImageSource;
  private readonly options: RowBuilderOptions;
  private readonly builder: RowBuilder;
  private readonly pass: ImageRows;
  private readonly slabs: SlabTaker;
  private readonly payload = new Slice();
  /** Type of the tree whose pages come. */
  private tree: number = Type.None;

  /**
   * Reads the header. Throws RdbError.
   * @param spill path of a file for what has to wait for its turn
   */
  constructor(source: ImageSource, options: RowBuilderOptions, target: RowTarget, spill: string) {
    this.source = source;
    this.options = options;
    const { hasher } = target.tier;
    this.builder = new RowBuilder({ ...options, database: -1, databases: Infinity }, target);
    this.header = this.guard(0, () => this.readHeader());
    const ordered = new Hasher(...this.header.hashKey);
    const foreign = ordered.key0 !== hasher.key0 || ordered.key1 !== hasher.key1;
    const values = new ImageValues(options, target.tier, ordered, foreign ? this.builder : null);
    this.pass = new ImageRows(options, this.builder, values);
    this.slabs =
      target instanceof ChunkTarget
        ? new ImageSlabs(options, target, values)
        : new SlabRows(this.pass, this.header.databases, spill);
  }

  /** Where it ends: there may be something left in it. */
  get target(): RowTarget {
    return this.builder.target;
  }

  private guard<T>(at: number, work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (error instanceof Damage) throw new RdbError(error.message, at, null, 0);
      throw error;
    }
  }

  private read(length: number): Buffer {
    const memory = allocatePadded(length);
    const got = this.source.read(memory);
    this.offset += got;
    if (got < length) throw new Damage('the file ends too early');
    return memory;
  }

  private readHeader(): ImageHeader {
    const { options } = this;
    const start = this.read(HEADER_START_BYTES);
    const header = decodeHeader(Buffer.concat([start, this.read(headerBytes(start) - HEADER_START_BYTES)]));
    const used = header.databases.map(({ index }) => index);
    if (options.database >= 0 && used.length > 1)
      throw new Damage(
        `keys of the databases ${used.join(', ')} cannot all go to database ${options.database}`,
      );
    const last = used.at(-1) ?? 0;
    if (options.database < 0 && last >= options.databases)
      throw new Damage(`keys are in database ${last}, and there are ${options.databases}`);
    for (const { index, keys } of header.databases)
      this.builder.resize(options.database >= 0 ? options.database : index, keys);
    return header;
  }

  /** Reads all. `room` is called between two chunks, and resolves when there is room for more. Throws RdbError. */
  async run(room: () => Promise<void>): Promise<void> {
    const coming: Coming[] = [];
    let last: Coming | null = null;
    try {
      for (;;) {
        while (last === null && coming.length < AHEAD && !this.slabs.isFull) {
          const next = this.guard(this.offset, () => this.open());
          coming.push(next);
          if (next.kind === Chunk.End) last = next;
        }
        const first = coming.shift();
        if (first !== undefined) {
          const got = await first.read;
          this.guard(first.offset, () => this.take(first, got));
          if (first === last) return;
        }
        if (coming.length > 0) continue;
        this.slabs.settle();
        await room();
      }
    } finally {
      await Promise.allSettled(coming.map(({ read }) => read));
    }
  }

  /** Begins to read the next chunk. */
  private open(): Coming {
    const { offset } = this;
    const header = this.read(CHUNK_HEADER_BYTES);
    const kind = header.readUInt32LE(0);
    const length = header.readUInt32LE(4);
    const wanted = header.readUInt32LE(8);
    const sum = crc32(header.subarray(0, 8));
    if (kind === Chunk.Slabs) return this.openSlabs(offset, length, sum, wanted);
    if (length > CHUNK_BYTES_MAX || (kind !== Chunk.Rows && (kind !== Chunk.End || length !== END_BYTES)))
      throw new Damage('the head of a chunk is damaged');
    const memory = allocatePadded(length);
    return { offset, kind, sum, wanted, memory, read: this.readLater(memory), room: null };
  }

  private openSlabs(offset: number, length: number, sum: number, wanted: number): Coming {
    const count = this.read(4);
    const slabs = count.readUInt32LE(0);
    if (slabs === 0 || slabs > SLABS_MAX || length !== 4 + slabs * (4 + SLAB_BYTES))
      throw new Damage('the head of a chunk is damaged');
    const words = this.read(4 * slabs);
    const room = this.slabs.open(new Uint32Array(words.buffer, 0, slabs));
    sum = crc32(words, crc32(count, sum));
    const { memory } = room;
    return { offset, kind: Chunk.Slabs, sum, wanted, memory, read: this.readLater(memory), room };
  }

  private readLater(memory: Buffer): Promise<number> {
    this.offset += memory.length;
    return this.source.readLater(memory);
  }

  private take({ kind, sum, wanted, memory, room }: Coming, got: number): void {
    if (got < memory.length) throw new Damage('the file ends too early');
    if (crc32(memory, sum) !== wanted)
      throw new Damage('the checksum of the chunk that begins here is not that of its bytes');
    if (room !== null) this.slabs.take(room);
    else if (kind === Chunk.Rows) this.rows(memory);
    else this.end(Number(memory.readBigUInt64LE(0)));
  }

  private end(keys: number): void {
    const { slabs, pass, counts } = this;
    this.endTree();
    slabs.finish();
    counts.keys = this.builder.counts.keys + pass.counts.keys + slabs.counts.keys;
    counts.expired = pass.counts.expired + slabs.counts.expired;
    const announced = this.header.databases.reduce((sum, database) => sum + database.keys, 0);
    const read = pass.keysRead + slabs.keysRead;
    if (keys !== read || keys !== announced)
      throw new Damage(`${keys} keys should be in the file, ${announced} by its header, and ${read} are`);
    if (this.source.read(Buffer.alloc(1)) > 0) throw new Damage('something follows the end');
  }

  private rows(body: Buffer): void {
    const view = viewOf(body.buffer);
    const end = body.length;
    const { pass } = this;
    for (let pos = 0; pos < end;) {
      const rest = end - pos;
      const kind = rest < PAGE_ITEM_BYTES ? 0 : body[pos];
      if (kind === ITEM_RECORD && rest >= RECORD_ITEM_BYTES) {
        pos = this.record(body, view, pos);
      } else if (kind === ITEM_PAGE) {
        const length = view.getUint32(pos + 4, true);
        const start = pos + PAGE_ITEM_BYTES;
        if (start + length > end || length !== pageRowBytes(view.getInt32(start, true), PAGE_BYTES))
          throw new Damage('a page is damaged');
        pass.page(body, start);
        pos = start + length;
      } else {
        throw new Damage('there is neither a record nor a page');
      }
    }
  }

  private record(u8: Buffer, view: DataView, pos: number): number {
    const { pass } = this;
    const keyStart = pos + RECORD_ITEM_BYTES;
    const keyLength = view.getUint32(pos + 20, true);
    const start = keyStart + ((keyLength + 3) & ~3);
    const length = view.getUint32(pos + 24, true);
    const next = (start + length + 3) & ~3;
    if (keyLength > MAX_KEY_BYTES || length > MAX_PAYLOAD_BYTES || next > u8.length)
      throw new Damage('a record is damaged');
    this.endTree();
    const type = u8[pos + 1];
    pass.encoding = u8[pos + 3];
    pass.key.db = view.getUint32(pos + 4, true);
    pass.key.expiresAt = view.getFloat64(pos + 8, true) || -1;
    pass.key.key.set(u8, view, keyStart, keyStart + keyLength);
    if (u8[pos + 2] === 0) {
      pass.packed(type, u8, view, start, length);
    } else {
      this.payload.set(u8, view, start, start + length);
      pass.beginTree(type, this.payload);
      this.tree = type;
    }
    return next;
  }

  private endTree(): void {
    if (this.tree !== Type.None) this.pass.endTree(this.tree);
    this.tree = Type.None;
  }
}
