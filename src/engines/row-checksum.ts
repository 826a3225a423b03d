/**
 * Rows on disk carry a checksum of their own, since LMDB has none and LevelDB does not look at its
 * blocks' when it reads: each value is followed by the CRC-32 of key and value, u32 little endian. It is
 * added and taken off here, in the engine's thread, so that its callers neither pay for it nor see it.
 */
import { crc32 } from 'node:zlib';
import { viewOf } from '../bytes/slice.ts';
import { DAMAGED_LENGTH, DELETE_LENGTH, type PackedBatch, type PackedRows } from './engine.ts';
import { ROW_HEADER } from './packed.ts';

const CHECKSUM_BYTES = 4;

/** The batch with a checksum behind each value, in memory of its own. The rows must fill the batch exactly. */
export function sealRows(batch: PackedBatch): PackedBatch {
  const source = Buffer.from(batch.bytes, 0, batch.length);
  const sourceView = viewOf(batch.bytes);
  const memory = new ArrayBuffer(batch.length + batch.rows * CHECKSUM_BYTES);
  const target = Buffer.from(memory);
  const view = viewOf(memory);
  let from = 0;
  let to = 0;
  while (from < batch.length) {
    const keyLength = sourceView.getUint32(from, true);
    const valueLength = sourceView.getUint32(from + 4, true);
    const start = from + ROW_HEADER;
    const deleted = valueLength === DELETE_LENGTH;
    const end = start + keyLength + (deleted ? 0 : valueLength);
    source.copy(target, to, from, end);
    to += end - from;
    if (!deleted) {
      view.setUint32(to - (end - from) + 4, valueLength + CHECKSUM_BYTES, true);
      view.setUint32(to, crc32(source.subarray(start, end)), true);
      to += CHECKSUM_BYTES;
    }
    from = end;
  }
  return { bytes: memory, length: to, rows: batch.rows };
}

/** Takes the checksums off, in place. A row that does not match keeps its key and gets DAMAGED_LENGTH. */
export function openRows(rows: PackedRows): PackedRows {
  const bytes = Buffer.from(rows.bytes, 0, rows.length);
  const view = viewOf(rows.bytes);
  let from = 0;
  let to = 0;
  while (from < rows.length) {
    const keyLength = view.getUint32(from, true);
    const storedLength = view.getUint32(from + 4, true);
    const start = from + ROW_HEADER;
    const absent = storedLength === DELETE_LENGTH;
    const next = start + keyLength + (absent ? 0 : storedLength);
    let end = next;
    let valueLength = storedLength;
    if (!absent) {
      end -= CHECKSUM_BYTES;
      const sound =
        storedLength >= CHECKSUM_BYTES && crc32(bytes.subarray(start, end)) === view.getUint32(end, true);
      valueLength = sound ? storedLength - CHECKSUM_BYTES : DAMAGED_LENGTH;
      if (!sound) end = start + keyLength;
    }
    bytes.copyWithin(to, from, end);
    view.setUint32(to + 4, valueLength, true);
    to += end - from;
    from = next;
  }
  return { bytes: rows.bytes, length: to, rows: rows.rows };
}
