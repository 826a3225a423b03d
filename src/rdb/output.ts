/**
 * The bytes of a file on their way out, and what they are made of: lengths, strings, numbers.
 *
 * A count that is not known when its place is written is filled in later: in memory, or, when it has
 * been handed on, by a patch of the file. The checksum is linear, so the patch changes it by the
 * patch's own checksum, shifted by what has followed.
 */
import { parseInteger } from '../bytes/number.ts';
import { ByteSink } from '../bytes/sink.ts';
import { viewOf, type Slice } from '../bytes/slice.ts';
import { Crc64 } from './crc64.ts';
import { StringEncoding } from './format.ts';
import { lzfCompress } from './lzf.ts';

export interface RdbOutputOptions {
  /** Takes the next bytes of the file; they are lent until it returns. */
  write(bytes: Buffer): void;
  /**
   * Replaces bytes that were taken before, at this offset of the file. Without it, bytes are kept until
   * the key is complete whose count was not known.
   */
  patch?(offset: number, bytes: Buffer): void;
  /** `rdbcompression` (default true): strings above 20 bytes are compressed where that makes them shorter. */
  compression?: boolean;
  /** `rdbchecksum` (default true); otherwise the checksum is written as 0, which readers take as none. */
  checksum?: boolean;
}

/** Bytes are handed on when there are this many. */
const FLUSH_BYTES = 256 * 1024;
/** Longest text that may be an integer of 32 bits. */
const INT32_DIGITS_MAX = 11;
/** Strings up to this length are not compressed. */
const PLAIN_MAX = 20;
/** A compressed string must be at least this much shorter. */
const COMPRESSION_GAIN_MIN = 4;
/** After this many strings in a row that could not be compressed, only one in SAMPLE is tried. */
const INCOMPRESSIBLE_MAX = 128;
const SAMPLE = 16;
const SCRATCH_KEPT_MAX = 1 << 20;
const TWO_32 = 0x1_0000_0000;

export class RdbOutput extends ByteSink {
  private readonly options: RdbOutputOptions;
  private readonly compression: boolean;
  private readonly checksum: boolean;
  /** Bytes that were handed on. */
  private flushed = 0;
  /** Places that are open: nothing may be handed on while they are, unless it can be patched. */
  private open = 0;
  private readonly crc = new Crc64();
  private scratch = new Uint8Array(0);
  /** Strings in a row that could not be compressed. */
  private incompressible = 0;

  /** @param capacity bytes of memory at first */
  constructor(options: RdbOutputOptions, capacity = FLUSH_BYTES + 64 * 1024) {
    super(capacity);
    this.options = options;
    this.compression = options.compression ?? true;
    this.checksum = options.checksum ?? true;
  }

  /** Offset in the file of the next byte. */
  get offset(): number {
    return this.flushed + this.pos;
  }

  /** To be called between two items: hands bytes on when there are enough. */
  settle(): void {
    if (this.pos >= FLUSH_BYTES) this.flush();
  }

  /** Hands on what there is. */
  flush(): void {
    if (this.pos === 0 || (this.open > 0 && this.options.patch === undefined)) return;
    if (this.checksum) this.crc.update(this.u8, this.view, 0, this.pos);
    this.options.write(this.written());
    this.flushed += this.pos;
    this.clear();
  }

  /** The checksum of everything so far, then the last bytes go. */
  end(): void {
    const { crc } = this;
    if (this.checksum) crc.update(this.u8, this.view, 0, this.pos);
    const summed = this.pos;
    this.u32(this.checksum ? crc.low : 0);
    this.u32(this.checksum ? crc.high : 0);
    this.options.write(this.written());
    this.flushed += summed + 8;
    this.clear();
  }

  length(value: number): void {
    this.ensure(9);
    const { u8, pos } = this;
    if (value < 64) {
      u8[pos] = value;
      this.pos = pos + 1;
    } else if (value < 16384) {
      u8[pos] = 0x40 | (value >>> 8);
      u8[pos + 1] = value & 0xff;
      this.pos = pos + 2;
    } else if (value < TWO_32) {
      u8[pos] = 0x80;
      this.view.setUint32(pos + 1, value);
      this.pos = pos + 5;
    } else {
      u8[pos] = 0x81;
      this.view.setUint32(pos + 1, Math.floor(value / TWO_32));
      this.view.setUint32(pos + 5, value % TWO_32);
      this.pos = pos + 9;
    }
  }

  /** A 64-bit number, big endian at `at` of `view`, as a length. */
  length64(view: DataView, at: number): void {
    const high = view.getUint32(at);
    if (high === 0) {
      this.length(view.getUint32(at + 4));
      return;
    }
    this.ensure(9);
    this.u8[this.pos] = 0x81;
    this.view.setBigUint64(this.pos + 1, view.getBigUint64(at));
    this.pos += 9;
  }

  /** Room for a length below 2^32 that is not known yet. Returns what `fill` wants. */
  reserveLength(): number {
    const at = this.offset;
    this.ensure(5);
    this.u8[this.pos] = 0x80;
    this.view.setUint32(this.pos + 1, 0);
    this.pos += 5;
    this.open++;
    return at;
  }

  /** Takes back what was written since `pos` was this, a reserved length among it. */
  withdrawLength(pos: number): void {
    this.open--;
    this.pos = pos;
  }

  /** Fills a reserved length in. */
  fillLength(at: number, value: number): void {
    this.open--;
    const place = at + 1 - this.flushed;
    if (place > 0) {
      this.view.setUint32(place, value);
      return;
    }
    const bytes = Buffer.from(new ArrayBuffer(4));
    const view = viewOf(bytes.buffer);
    view.setUint32(0, value);
    // There were zeros, so the bytes are the difference.
    if (this.checksum) this.crc.addPatch(bytes, view, this.flushed - (at + 5));
    this.options.patch!(at + 1, bytes);
  }

  milliseconds(value: number): void {
    this.ensure(8);
    this.view.setUint32(this.pos, (value % TWO_32) | 0, true);
    this.view.setInt32(this.pos + 4, Math.floor(value / TWO_32), true);
    this.pos += 8;
  }

  double(value: number): void {
    this.ensure(8);
    this.view.setFloat64(this.pos, value, true);
    this.pos += 8;
  }

  /** A string: as an integer, compressed, or as it is. */
  string(bytes: Slice): void {
    this.stringOf(bytes.u8, bytes.view, bytes.start, bytes.end);
  }

  /** The same of bytes [start, end) of a padded memory. */
  stringOf(u8: Buffer, view: DataView, start: number, end: number): void {
    const length = end - start;
    if (length <= INT32_DIGITS_MAX) {
      const value = parseInteger(u8, start, end);
      if (value === (value | 0)) {
        this.integer(value);
        return;
      }
    } else if (length > PLAIN_MAX && this.compression && this.compressed(u8, view, start, end)) {
      return;
    }
    this.length(length);
    this.copy(u8, start, end);
  }

  private integer(value: number): void {
    this.ensure(5);
    const { u8, pos } = this;
    if (value >= -128 && value <= 127) {
      u8[pos] = 0xc0 | StringEncoding.Int8;
      u8[pos + 1] = value;
      this.pos = pos + 2;
    } else if (value >= -32768 && value <= 32767) {
      u8[pos] = 0xc0 | StringEncoding.Int16;
      this.view.setInt16(pos + 1, value, true);
      this.pos = pos + 3;
    } else {
      u8[pos] = 0xc0 | StringEncoding.Int32;
      this.view.setInt32(pos + 1, value, true);
      this.pos = pos + 5;
    }
  }

  /** False, and nothing written, when compression does not make the string shorter. */
  private compressed(u8: Buffer, view: DataView, start: number, end: number): boolean {
    if (this.incompressible >= INCOMPRESSIBLE_MAX && this.incompressible % SAMPLE !== 0) {
      this.incompressible++;
      return false;
    }
    const length = end - start;
    const scratch = this.scratchOf(length);
    const compressed = lzfCompress(u8, view, start, end, scratch, 0, length - COMPRESSION_GAIN_MIN);
    if (compressed < 0) {
      this.incompressible++;
      return false;
    }
    this.incompressible = 0;
    this.byte(0xc0 | StringEncoding.Lzf);
    this.length(compressed);
    this.length(length);
    this.append(scratch, compressed);
    return true;
  }

  /**
   * Compresses a part of a string whose parts are compressed one by one; -1 when it would become longer
   * than `limit`, and then nothing is written. Returns the bytes written.
   */
  compressedPart(bytes: Slice, limit: number): number {
    const scratch = this.scratchOf(limit);
    const length = lzfCompress(bytes.u8, bytes.view, bytes.start, bytes.end, scratch, 0, limit);
    if (length >= 0) this.append(scratch, length);
    return length;
  }

  get compresses(): boolean {
    return this.compression;
  }

  private scratchOf(length: number): Uint8Array {
    const { scratch } = this;
    if (scratch.length < length) this.scratch = new Uint8Array(Math.max(length, 2 * scratch.length));
    else if (scratch.length > SCRATCH_KEPT_MAX && length <= SCRATCH_KEPT_MAX) {
      this.scratch = new Uint8Array(SCRATCH_KEPT_MAX);
    }
    return this.scratch;
  }

  private append(from: Uint8Array, length: number): void {
    this.ensure(length);
    const { u8, pos } = this;
    if (length > 64) u8.set(from.subarray(0, length), pos);
    else for (let i = 0; i < length; i++) u8[pos + i] = from[i];
    this.pos = pos + length;
  }
}
