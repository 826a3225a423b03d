/**
 * What DUMP returns and RESTORE takes: a value as in a file (type byte and what follows it), the RDB
 * version as u16 little endian, and the CRC-64 of all that before it.
 */
import type { ByteSink } from '../bytes/sink.ts';
import type { Slice } from '../bytes/slice.ts';
import { Crc64 } from './crc64.ts';
import { RDB_VERSION_MAX, RDB_VERSION_WRITTEN } from './format.ts';
import { RdbReader } from './reader.ts';
import type { RdbVisitor } from './visitor.ts';
import { RdbWriter } from './writer.ts';

const FOOTER_BYTES = 10;

/** Whether version and checksum are right. */
export function payloadIsSound(payload: Slice): boolean {
  const { u8, view, start, end } = payload;
  if (end - start < FOOTER_BYTES) return false;
  const footer = end - FOOTER_BYTES;
  if (view.getUint16(footer, true) > RDB_VERSION_MAX) return false;
  const crc = new Crc64();
  crc.update(u8, view, start, footer + 2);
  return view.getInt32(footer + 2, true) === crc.low && view.getInt32(footer + 6, true) === crc.high;
}

/**
 * Reads the value of a sound payload; the visitor sees it as the value of `key`. Throws RdbError when
 * the value is damaged.
 */
export function readPayload(payload: Slice, key: Slice, visitor: RdbVisitor): void {
  const value = payload.u8.subarray(payload.start, payload.end - FOOTER_BYTES);
  new RdbReader(visitor).value(key.u8.subarray(key.start, key.end), value);
}

/**
 * Makes payloads. `write` is given the writer, to which it tells one key: `beginKey`, the value, `endKey`.
 * The bytes are appended to `out`.
 */
export function writePayload(out: ByteSink, write: (writer: RdbWriter) => void): void {
  const from = out.pos;
  const writer = new RdbWriter({
    bare: true,
    checksum: false,
    write: (bytes) => out.copy(bytes, 0, bytes.length),
    patch: (offset, bytes) => void bytes.copy(out.u8, from + offset),
  });
  write(writer);
  writer.flush();
  out.ensure(FOOTER_BYTES);
  out.view.setUint16(out.pos, RDB_VERSION_WRITTEN, true);
  out.pos += 2;
  const crc = new Crc64();
  crc.update(out.u8, out.view, from, out.pos);
  out.u32(crc.low);
  out.u32(crc.high);
}
