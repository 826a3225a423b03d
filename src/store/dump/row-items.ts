/**
 * Records and pages on their way into a tier: what threads that read files send, what images consist of, and
 * what RowInstaller takes. Nothing in them depends on where they lay.
 *
 * A run of items, each padded to whole words, little endian:
 *
 * ```
 * record  u8 RECORD, u8 type, u8 tree, u8 encoding; u32 database; f64 deadline, 0 for none;
 *         u32 hash; u32 bytes of key; u32 bytes of payload; key; payload
 * page    u32 PAGE; u32 bytes; the page. It belongs to the tree before it.
 * ```
 */
import { ByteSink } from '../../bytes/sink.ts';
import type { Slice } from '../../bytes/slice.ts';
import { PAGE_BYTES } from '../arena.ts';
import { pageRowBytes } from '../page.ts';

export const ITEM_RECORD = 1;
export const ITEM_PAGE = 2;
export const RECORD_ITEM_BYTES = 28;
export const PAGE_ITEM_BYTES = 8;

export class RowItems {
  private sink: ByteSink;
  private readonly bytes: number;
  private readonly send: (full: ByteSink) => ByteSink;

  /**
   * @param bytes after which a run is passed on; it may be longer by an item
   * @param send takes a run and returns what the next is written to
   */
  constructor(bytes: number, send: (full: ByteSink) => ByteSink) {
    this.bytes = bytes;
    this.sink = new ByteSink(bytes * 2);
    this.send = send;
  }

  /** A value with its payload at [start, start + length); of a tree the pages follow. */
  record(
    database: number,
    key: Slice,
    hash: number,
    deadline: number,
    type: number,
    tree: boolean,
    encoding: number,
    u8: Buffer,
    start: number,
    length: number,
  ): void {
    const { sink } = this;
    const keyLength = key.end - key.start;
    sink.ensure(RECORD_ITEM_BYTES + keyLength + length + 8);
    const { view } = sink;
    let { pos } = sink;
    view.setInt32(pos, ITEM_RECORD | (type << 8) | (tree ? 1 << 16 : 0) | (encoding << 24), true);
    view.setInt32(pos + 4, database, true);
    view.setFloat64(pos + 8, deadline, true);
    view.setInt32(pos + 16, hash, true);
    view.setInt32(pos + 20, keyLength, true);
    view.setInt32(pos + 24, length, true);
    pos += RECORD_ITEM_BYTES;
    sink.pos = pos;
    sink.slice(key);
    this.pad();
    sink.copy(u8, start, start + length);
    this.pad();
    this.settle();
  }

  /** Zeros up to a whole word: a file shows nothing that was in this memory before. */
  private pad(): void {
    const { sink } = this;
    while ((sink.pos & 3) !== 0) sink.byte(0);
  }

  /** A page of the tree before it, wherever it lies. */
  page(u8: Buffer, start: number): void {
    const length = pageRowBytes(u8.readInt32LE(start), PAGE_BYTES);
    const { sink } = this;
    sink.u32(ITEM_PAGE);
    sink.u32(length);
    sink.copy(u8, start, start + length);
    this.settle();
  }

  /** An item as it was made elsewhere. */
  item(u8: Buffer, start: number, end: number): void {
    this.sink.copy(u8, start, end);
    this.settle();
  }

  private settle(): void {
    if (this.sink.pos >= this.bytes) this.flush();
  }

  /** Passes on what there is. */
  flush(): void {
    if (this.sink.pos > 0) this.sink = this.send(this.sink);
  }
}
