/**
 * RESP writer: replies of a server in RESP2 or RESP3, one after the other in one growing buffer.
 * Protocol: https://redis.io/docs/latest/develop/reference/protocol-spec/
 */
import { ByteSink } from '../bytes/sink.ts';
import type { Slice } from '../bytes/slice.ts';

const CR = 13;
const LF = 10;

export class RespWriter extends ByteSink {
  /** RESP version that the peer asked for (HELLO). */
  protocol: 2 | 3 = 2;

  private crlf(): void {
    this.ensure(2);
    this.u8[this.pos++] = CR;
    this.u8[this.pos++] = LF;
  }

  private header(type: number, value: number): void {
    this.byte(type);
    this.decimal(value);
    this.crlf();
  }

  /** Bytes that are RESP already. */
  raw(bytes: Buffer): void {
    this.copy(bytes, 0, bytes.length);
  }

  ok(): void {
    this.simple('OK');
  }

  simple(text: string): void {
    this.byte(43); // +
    this.ascii(text);
    this.crlf();
  }

  /** `message` with its code word, without the dash; line breaks become blanks. */
  error(message: string): void {
    this.byte(45); // -
    const text = Buffer.from(message.replace(/[\r\n]/g, ' '), 'latin1');
    this.copy(text, 0, text.length);
    this.crlf();
  }

  integer(value: number | bigint): void {
    this.byte(58); // :
    if (typeof value === 'number') this.decimal(value);
    else this.ascii(value.toString());
    this.crlf();
  }

  bulk(slice: Slice): void {
    this.header(36, slice.end - slice.start); // $
    this.slice(slice);
    this.crlf();
  }

  bulkBytes(bytes: Buffer): void {
    this.header(36, bytes.length);
    this.copy(bytes, 0, bytes.length);
    this.crlf();
  }

  bulkString(text: string): void {
    const bytes = Buffer.from(text);
    this.header(36, bytes.length);
    this.copy(bytes, 0, bytes.length);
    this.crlf();
  }

  /** Begins a bulk string of `length` bytes, which the caller then writes, followed by `endBulk`. */
  beginBulk(length: number): void {
    this.header(36, length);
  }

  endBulk(): void {
    this.crlf();
  }

  /** The null of bulk strings. */
  null(): void {
    this.ascii(this.protocol === 3 ? '_\r\n' : '$-1\r\n');
  }

  nullArray(): void {
    this.ascii(this.protocol === 3 ? '_\r\n' : '*-1\r\n');
  }

  array(length: number): void {
    this.header(42, length); // *
  }

  /** `pairs` keys and values follow. */
  map(pairs: number): void {
    if (this.protocol === 3)
      this.header(37, pairs); // %
    else this.header(42, pairs * 2);
  }

  set(length: number): void {
    this.header(this.protocol === 3 ? 126 : 42, length); // ~
  }

  push(length: number): void {
    this.header(this.protocol === 3 ? 62 : 42, length); // >
  }

  attribute(pairs: number): void {
    this.header(124, pairs); // |
  }

  boolean(value: boolean): void {
    if (this.protocol === 3) this.ascii(value ? '#t\r\n' : '#f\r\n');
    else this.integer(value ? 1 : 0);
  }

  /** A double that is already formatted as Redis prints it: a double in RESP3, a bulk string in RESP2. */
  double(text: string): void {
    if (this.protocol === 3) {
      this.byte(44); // ,
      this.ascii(text);
      this.crlf();
    } else {
      this.bulkString(text);
    }
  }

  /** Text with a three-letter format: verbatim in RESP3, bulk in RESP2. */
  verbatim(text: string, format = 'txt'): void {
    if (this.protocol === 3) {
      const bytes = Buffer.from(text);
      this.header(61, bytes.length + 4); // =
      this.ascii(`${format}:`);
      this.copy(bytes, 0, bytes.length);
      this.crlf();
    } else {
      this.bulkString(text);
    }
  }

  bigNumber(digits: string): void {
    if (this.protocol === 3) {
      this.byte(40); // (
      this.ascii(digits);
      this.crlf();
    } else {
      this.bulkString(digits);
    }
  }

  /**
   * Begins an aggregate whose length is not known yet; returns a mark for `endDeferred`. Deferred
   * aggregates may nest.
   */
  beginDeferred(): number {
    return this.pos;
  }

  /** Inserts the header `type length\r\n` at the mark, moving what was written since. */
  endDeferred(mark: number, type: 'array' | 'map' | 'set', length: number): void {
    const end = this.pos;
    this[type](length);
    const headerLength = this.pos - end;
    const header = Buffer.from(this.u8.subarray(end, this.pos));
    this.u8.copyWithin(mark + headerLength, mark, end);
    this.u8.set(header, mark);
  }
}
