import { isInt64, parseInteger } from '../bytes/number.ts';
import { ByteSink } from '../bytes/sink.ts';
import type { Slice } from '../bytes/slice.ts';
import { backLengthBytes, LISTPACK_END, LISTPACK_HEADER } from './listpack.ts';

const COUNT_UNKNOWN = 0xffff;
const MINUS = 45;
const NINE = 57;
/** Longest text of a 64-bit integer. */
const INT64_DIGITS_MAX = 20;

/** A listpack that grows at its end. `pos` is its size so far, without the end mark. */
export class ListpackBuilder extends ByteSink {
  count = 0;

  constructor() {
    super(1024);
    this.begin();
  }

  begin(): void {
    this.pos = LISTPACK_HEADER;
    this.count = 0;
  }

  /** An entry of these bytes: as an integer when they spell one. */
  append(bytes: Slice): void {
    const { u8, start, end } = bytes;
    const length = end - start;
    // No integer begins with anything else than a digit or a minus.
    if (length <= INT64_DIGITS_MAX && length > 0 && u8[start] <= NINE && u8[start] >= MINUS) {
      const value = parseInteger(u8, start, end);
      if (!Number.isNaN(value)) {
        this.appendInteger(value);
        return;
      }
      if (length > 15 && isInt64(bytes)) {
        this.appendInt64(BigInt(bytes.latin1()));
        return;
      }
    }
    this.ensure(length + 10);
    const from = this.pos;
    const to = this.u8;
    if (length < 64) {
      to[from] = 0x80 | length;
      let pos = from + 1;
      for (let i = start; i < end; i++) to[pos++] = u8[i];
      to[pos] = length + 1;
      this.pos = pos + 1;
      this.count++;
      return;
    }
    if (length < 4096) {
      to[this.pos++] = 0xe0 | (length >>> 8);
      to[this.pos++] = length & 0xff;
    } else {
      to[this.pos++] = 0xf0;
      this.view.setUint32(this.pos, length, true);
      this.pos += 4;
    }
    this.copy(u8, start, end);
    this.close(from);
  }

  /** A safe integer. */
  appendInteger(value: number): void {
    this.ensure(10);
    const { u8, view } = this;
    const from = this.pos;
    if (value >= 0 && value <= 127) {
      u8[from] = value;
      u8[from + 1] = 1;
      this.pos = from + 2;
      this.count++;
      return;
    }
    if (value >= -4096 && value <= 4095) {
      u8[this.pos++] = 0xc0 | ((value >> 8) & 0x1f);
      u8[this.pos++] = value & 0xff;
    } else if (value >= -32768 && value <= 32767) {
      u8[this.pos++] = 0xf1;
      view.setInt16(this.pos, value, true);
      this.pos += 2;
    } else if (value >= -8388608 && value <= 8388607) {
      u8[this.pos++] = 0xf2;
      view.setInt16(this.pos, value & 0xffff, true);
      u8[this.pos + 2] = value >> 16;
      this.pos += 3;
    } else if (value >= -2147483648 && value <= 2147483647) {
      u8[this.pos++] = 0xf3;
      view.setInt32(this.pos, value, true);
      this.pos += 4;
    } else {
      this.appendInt64(BigInt(value));
      return;
    }
    this.close(from);
  }

  /** An integer that needs 64 bits. */
  appendInt64(value: bigint): void {
    this.ensure(10);
    const from = this.pos;
    this.u8[from] = 0xf4;
    this.view.setBigInt64(from + 1, value, true);
    this.pos = from + 9;
    this.close(from);
  }

  /** Entries of another listpack that is not finished. */
  appendAll(other: ListpackBuilder): void {
    this.copy(other.u8, LISTPACK_HEADER, other.pos);
    this.count += other.count;
  }

  /** The length behind the entry that began at `from`. */
  private close(from: number): void {
    let size = this.pos - from;
    const bytes = backLengthBytes(size);
    this.ensure(bytes);
    const { u8, pos } = this;
    for (let i = bytes - 1; i >= 0; i--) {
      u8[pos + i] = (size % 128) | (i > 0 ? 0x80 : 0);
      size = Math.floor(size / 128);
    }
    this.pos = pos + bytes;
    this.count++;
  }

  /** Header and end mark; then bytes [0, pos) are the listpack. */
  finish(): void {
    this.byte(LISTPACK_END);
    this.view.setUint32(0, this.pos, true);
    this.view.setUint16(4, Math.min(this.count, COUNT_UNKNOWN), true);
  }
}
