import { copyBetween } from './copy.ts';
import { SLICE_PADDING, viewOf, type Slice } from './slice.ts';

/** Copies up to this many bytes are made in a loop; above it TypedArray.set is faster. */
const LOOP_COPY_MAX = 48;

/** Padded memory of its own whose bytes are not cleared: a sink writes each byte before it shows it. */
function uninitialized(capacity: number): Buffer {
  return Buffer.from(Buffer.allocUnsafeSlow(capacity + SLICE_PADDING).buffer, 0, capacity);
}

/**
 * A growing run of output bytes: replies, log frames, rows on their way to disk.
 *
 * The hot path writes straight into `u8` at `pos` after `ensure(n)`, which may replace `u8` and `view`.
 */
export class ByteSink {
  u8: Buffer;
  view: DataView;
  pos: number;

  /** @param capacity bytes allocated at first; the memory doubles when more is needed */
  constructor(capacity = 16 * 1024) {
    this.u8 = uninitialized(capacity);
    this.view = viewOf(this.u8.buffer);
    this.pos = 0;
  }

  /** Makes room for `length` bytes at `pos`. */
  ensure(length: number): void {
    if (this.pos + length > this.u8.length) this.grow(this.pos + length);
  }

  private grow(needed: number): void {
    const capacity = Math.max(needed, this.u8.length * 2);
    const grown = uninitialized(capacity);
    grown.set(this.u8.subarray(0, this.pos));
    this.u8 = grown;
    this.view = viewOf(grown.buffer);
  }

  byte(value: number): void {
    this.ensure(1);
    this.u8[this.pos++] = value;
  }

  slice(slice: Slice): void {
    const length = slice.end - slice.start;
    this.ensure(length);
    copyBetween(slice.u8, slice.view, slice.start, this.u8, this.view, this.pos, length);
    this.pos += length;
  }

  copy(from: Buffer, start: number, end: number): void {
    const length = end - start;
    this.ensure(length);
    const u8 = this.u8;
    let pos = this.pos;
    if (length > LOOP_COPY_MAX) {
      from.copy(u8, pos, start, end);
      pos += length;
    } else {
      while (start < end) u8[pos++] = from[start++];
    }
    this.pos = pos;
  }

  /** ASCII text only. */
  ascii(text: string): void {
    this.ensure(text.length);
    const u8 = this.u8;
    let pos = this.pos;
    for (let i = 0; i < text.length; i++) u8[pos++] = text.charCodeAt(i);
    this.pos = pos;
  }

  /** A safe integer in decimal. */
  decimal(value: number): void {
    this.ensure(24);
    const u8 = this.u8;
    let pos = this.pos;
    if (value >= 0 && value < 10) {
      u8[pos] = 48 + value;
      this.pos = pos + 1;
      return;
    }
    if (value < 0 || value > 0x7fffffff) {
      this.ascii(String(value));
      return;
    }
    let digits = 1;
    for (let bound = 10; bound <= value; bound *= 10) digits++;
    this.pos = pos + digits;
    for (pos = this.pos - 1; digits > 0; digits--, pos--) {
      const rest = (value / 10) | 0;
      u8[pos] = 48 + value - rest * 10;
      value = rest;
    }
  }

  u32(value: number): void {
    this.ensure(4);
    this.view.setInt32(this.pos, value | 0, true);
    this.pos += 4;
  }

  /** A non-negative safe integer as 64-bit little endian. */
  u64(value: number): void {
    this.ensure(8);
    this.view.setUint32(this.pos, value % 0x100000000, true);
    this.view.setUint32(this.pos + 4, Math.floor(value / 0x100000000), true);
    this.pos += 8;
  }

  /** The bytes written so far, not copied: valid until the next write. */
  written(from = 0): Buffer {
    return this.u8.subarray(from, this.pos);
  }

  clear(): void {
    this.pos = 0;
  }
}
