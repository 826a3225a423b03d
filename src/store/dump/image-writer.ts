/** Writes an image: rows as they come, in chunks, nothing of them decoded. */
import { crc32 } from 'node:zlib';
import type { Slice } from '../../bytes/slice.ts';
import { RdbKey } from '../../rdb/visitor.ts';
import { SLAB_BYTES } from '../arena.ts';
import {
  Chunk,
  CHUNK_BYTES,
  CHUNK_HEADER_BYTES,
  chunkHeader,
  chunkSum,
  encodeHeader,
  END_BYTES,
  type ImageHeader,
} from './image-format.ts';
import { RowItems } from './row-items.ts';
import type { RowSink } from './row-sink.ts';

export class ImageWriter implements RowSink {
  readonly key = new RdbKey();
  encoding = 0;
  private readonly write: (bytes: Uint8Array) => void;
  private readonly writeLater: (bytes: Uint8Array) => Promise<void>;
  private readonly items: RowItems;

  /** @param writeLater does not block; what follows is written behind it, whether it has ended or not */
  constructor(write: (bytes: Uint8Array) => void, writeLater: (bytes: Uint8Array) => Promise<void>) {
    this.write = write;
    this.writeLater = writeLater;
    this.items = new RowItems(CHUNK_BYTES, (full) => {
      this.chunk(Chunk.Rows, full.u8.subarray(0, full.pos));
      full.pos = 0;
      return full;
    });
  }

  begin(header: ImageHeader): void {
    this.write(encodeHeader(header));
  }

  private chunk(kind: number, body: Buffer): void {
    this.write(chunkHeader(kind, body));
    this.write(body);
  }

  /** Slabs, from the beginning of `u8`, which must not change until it resolves; `classes` tells for each how it is cut. */
  async slabs(classes: readonly number[], u8: Buffer): Promise<void> {
    if (classes.length === 0) return;
    const head = Buffer.alloc(CHUNK_HEADER_BYTES + 4 + 4 * classes.length);
    const bytes = u8.subarray(0, classes.length * SLAB_BYTES);
    head.writeUInt32LE(Chunk.Slabs, 0);
    head.writeUInt32LE(head.length - CHUNK_HEADER_BYTES + bytes.length, 4);
    head.writeUInt32LE(classes.length, CHUNK_HEADER_BYTES);
    classes.forEach((cls, i) => head.writeUInt32LE(cls, CHUNK_HEADER_BYTES + 4 + 4 * i));
    head.writeUInt32LE(crc32(bytes, chunkSum(head, head.subarray(CHUNK_HEADER_BYTES))), 8);
    this.write(head);
    await this.writeLater(bytes);
  }

  database(): void {
    // The header tells.
  }

  packed(type: number, u8: Buffer, _view: DataView, start: number, length: number): void {
    this.record(type, false, u8, start, length);
  }

  beginTree(type: number, payload: Slice): void {
    this.record(type, true, payload.u8, payload.start, payload.length);
  }

  private record(type: number, tree: boolean, u8: Buffer, start: number, length: number): void {
    const { key, encoding } = this;
    const deadline = Math.max(key.expiresAt, 0);
    this.items.record(key.db, key.key, 0, deadline, type, tree, encoding, u8, start, length);
  }

  page(u8: Buffer, start: number): void {
    this.items.page(u8, start);
  }

  endTree(): void {
    // Where the next record begins.
  }

  /** Everything has come, so many keys. */
  end(keys: number): void {
    this.items.flush();
    const end = Buffer.alloc(END_BYTES);
    end.writeBigUInt64LE(BigInt(keys));
    this.chunk(Chunk.End, end);
  }
}
