/**
 * Reads an image into runs of items for RowInstaller. Rows pass as they lie, with their keys' hashes filled
 * in; only trees whose order is that of another server's hash key are taken apart and made anew.
 */
import { Slice, SLICE_PADDING, viewOf } from '../../bytes/slice.ts';
import { Damage, RdbError } from '../../rdb/error.ts';
import { Type } from '../api.ts';
import { PAGE_BYTES } from '../arena.ts';
import { Hasher } from '../hash.ts';
import { HEADER_BYTES } from '../page.ts';
import { MAX_KEY_BYTES, MAX_PAYLOAD_BYTES } from '../record.ts';
import {
  Chunk,
  CHUNK_BYTES_MAX,
  CHUNK_HEADER_BYTES,
  chunkSum,
  decodeHeader,
  END_BYTES,
  HEADER_START_BYTES,
  headerBytes,
  type ImageHeader,
} from './image-format.ts';
import { RowBuilder, type RowBuilderOptions } from './row-builder.ts';
import { ITEM_PAGE, ITEM_RECORD, PAGE_ITEM_BYTES, RECORD_ITEM_BYTES } from './row-items.ts';
import { ValueExport } from './value-export.ts';

/** What is done with the pages that come. */
const Pages = { Pass: 0, Rebuild: 1, Drop: 2, Refuse: 3 } as const;

export class ImageReader {
  readonly counts = { keys: 0, expired: 0, modules: 0 };
  readonly header: ImageHeader;
  /** Byte of the file up to which it was read. */
  offset = 0;
  private readonly fill: (into: Buffer) => number;
  private readonly options: RowBuilderOptions;
  private readonly hasher: Hasher;
  /** Trees are in the order of another hash key. */
  private readonly foreign: boolean;
  /** Makes values anew. */
  private readonly builder: RowBuilder;
  private readonly values: ValueExport;
  private readonly key = new Slice();
  private readonly payload = new Slice();
  private pages: number = Pages.Refuse;
  private treeType = 0;
  private keysRead = 0;

  /**
   * Reads the header. Throws RdbError.
   * @param fill fills memory from the file, from where it stopped; returns the bytes that there were
   */
  constructor(fill: (into: Buffer) => number, options: RowBuilderOptions) {
    this.fill = fill;
    this.options = options;
    this.hasher = new Hasher(...options.hashKey);
    this.builder = new RowBuilder({ ...options, database: -1, databases: Infinity });
    this.values = new ValueExport(this.builder);
    this.header = this.guard(0, () => this.readHeader());
    const { hashKey } = this.header;
    this.foreign = hashKey[0] !== options.hashKey[0] || hashKey[1] !== options.hashKey[1];
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
    const memory = Buffer.from(new ArrayBuffer(length + SLICE_PADDING), 0, length);
    const got = this.fill(memory);
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
    return header;
  }

  /** Reads the next chunk and passes on what is in it; false: it was the last. Throws RdbError. */
  next(): boolean {
    return this.guard(this.offset, () => {
      const header = this.read(CHUNK_HEADER_BYTES);
      const kind = header.readUInt32LE(0);
      const length = header.readUInt32LE(4);
      if (length > CHUNK_BYTES_MAX || (kind !== Chunk.Rows && (kind !== Chunk.End || length !== END_BYTES)))
        throw new Damage('the head of a chunk is damaged');
      const body = this.read(length);
      if (chunkSum(header, body) !== header.readUInt32LE(8))
        throw new Damage('the checksum of the chunk that begins here is not that of its bytes');
      if (kind === Chunk.Rows) {
        this.rows(body);
        return true;
      }
      this.end(Number(body.readBigUInt64LE(0)));
      return false;
    });
  }

  private end(keys: number): void {
    this.endTree();
    this.builder.flush();
    this.counts.keys += this.builder.counts.keys;
    const announced = this.header.databases.reduce((sum, database) => sum + database.keys, 0);
    if (keys !== this.keysRead || keys !== announced)
      throw new Damage(
        `${keys} keys should be in the file, ${announced} by its header, and ${this.keysRead} are`,
      );
    if (this.fill(Buffer.alloc(1)) > 0) throw new Damage('something follows the end');
  }

  /** Items that pass move up to where others were left out. */
  private rows(body: Buffer): void {
    const memory = body.buffer as ArrayBuffer;
    const view = viewOf(memory);
    const end = body.length;
    let to = 0;
    for (let pos = 0; pos < end;) {
      const rest = end - pos;
      const kind = rest < PAGE_ITEM_BYTES ? 0 : body[pos];
      let next: number;
      let passes: boolean;
      if (kind === ITEM_RECORD && rest >= RECORD_ITEM_BYTES) {
        const keyLength = view.getUint32(pos + 20, true);
        const length = view.getUint32(pos + 24, true);
        const payload = pos + RECORD_ITEM_BYTES + ((keyLength + 3) & ~3);
        next = (payload + length + 3) & ~3;
        if (keyLength > MAX_KEY_BYTES || length > MAX_PAYLOAD_BYTES || next > end)
          throw new Damage('a record is damaged');
        passes = this.record(body, view, pos, payload, length);
      } else if (kind === ITEM_PAGE) {
        const length = view.getUint32(pos + 4, true);
        next = pos + PAGE_ITEM_BYTES + length;
        if ((length !== PAGE_BYTES && length !== HEADER_BYTES) || next > end)
          throw new Damage('a page is damaged');
        passes = this.page(body, pos + PAGE_ITEM_BYTES);
      } else {
        throw new Damage('there is neither a record nor a page');
      }
      // One after the other with what is made anew: pages follow their trees.
      if (passes && this.foreign) {
        this.builder.items.item(body, pos, next);
      } else if (passes) {
        if (to !== pos) body.copyWithin(to, pos, next);
        to += next - pos;
      }
      pos = next;
    }
    if (to > 0) this.options.send(memory, to);
  }

  private record(u8: Buffer, view: DataView, pos: number, payload: number, length: number): boolean {
    this.endTree();
    const { options, key } = this;
    const type = u8[pos + 1];
    const tree = u8[pos + 2] !== 0;
    const deadline = view.getFloat64(pos + 8, true);
    if (type === Type.None || type > Type.Stream) throw new Damage(`there are no values of type ${type}`);
    const database = options.database >= 0 ? options.database : view.getUint32(pos + 4, true);
    if (database >= options.databases) throw new Damage(`there is no database ${database}`);
    this.keysRead++;
    if (deadline !== 0 && deadline <= options.now) {
      this.counts.expired++;
      this.pages = Pages.Drop;
      return false;
    }
    const keyStart = pos + RECORD_ITEM_BYTES;
    key.set(u8, view, keyStart, keyStart + view.getUint32(pos + 20, true));
    if (tree && this.foreign && type !== Type.String && type !== Type.List) {
      const { values } = this;
      this.pages = Pages.Rebuild;
      this.treeType = type;
      values.key.db = database;
      values.key.expiresAt = deadline === 0 ? -1 : deadline;
      // In memory of its own: the tree may end in another chunk.
      values.key.key.setSlice(key.clone());
      this.payload.set(u8, view, payload, payload + length);
      values.beginTree(type, this.payload);
      return false;
    }
    this.counts.keys++;
    this.pages = tree ? Pages.Pass : Pages.Refuse;
    view.setUint32(pos + 4, database, true);
    view.setInt32(pos + 16, this.hasher.hash32(key), true);
    return true;
  }

  private page(u8: Buffer, start: number): boolean {
    if (this.pages === Pages.Refuse) throw new Damage('a page belongs to nothing');
    if (this.pages === Pages.Rebuild) this.values.page(u8, start);
    return this.pages === Pages.Pass;
  }

  private endTree(): void {
    if (this.pages === Pages.Rebuild) this.values.endTree(this.treeType);
    this.pages = Pages.Refuse;
  }
}
