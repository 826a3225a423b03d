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
  const sealer = new RowSealer(batch.bytes, batch.length + batch.rows * CHECKSUM_BYTES);
  for (let from = 0; from < batch.length;) from = sealer.seal(from);
  return sealer.take(batch.rows);
}

/**
 * What a short row counts as when a batch is filled: to LMDB each row, a deletion too, may be a page of
 * 4 KB that it copies.
 */
const ROW_BYTES_MIN = 256;

/**
 * The rows at `offsets` of `source` from the `first`th on, with checksums, in memory of their own: as
 * many as come to `bytesMax`, at least one.
 */
export function sealRowsAt(
  source: ArrayBuffer,
  offsets: Uint32Array,
  first: number,
  bytesMax: number,
): PackedBatch {
  const view = viewOf(source);
  let bytes = 0;
  let counted = 0;
  let last = first;
  while (last < offsets.length) {
    const row = rowBytes(view, offsets[last]);
    counted += Math.max(row, ROW_BYTES_MIN);
    if (last > first && counted > bytesMax) break;
    bytes += row;
    last++;
  }
  const rows = last - first;
  const sealer = new RowSealer(source, bytes + rows * CHECKSUM_BYTES);
  for (let i = first; i < last; i++) sealer.seal(offsets[i]);
  return sealer.take(rows);
}

function rowBytes(view: DataView, at: number): number {
  const valueLength = view.getUint32(at + 4, true);
  return ROW_HEADER + view.getUint32(at, true) + (valueLength === DELETE_LENGTH ? 0 : valueLength);
}

/** Copies rows one after the other, each with its checksum. */
class RowSealer {
  private readonly source: Buffer;
  private readonly sourceView: DataView;
  private readonly memory: ArrayBuffer;
  private readonly target: Buffer;
  private readonly view: DataView;
  private to = 0;

  constructor(source: ArrayBuffer, capacity: number) {
    this.source = Buffer.from(source);
    this.sourceView = viewOf(source);
    this.memory = new ArrayBuffer(capacity);
    this.target = Buffer.from(this.memory);
    this.view = viewOf(this.memory);
  }

  /** Takes the row at `from`; returns where it ends. */
  seal(from: number): number {
    const { source, view } = this;
    const valueLength = this.sourceView.getUint32(from + 4, true);
    const end = from + rowBytes(this.sourceView, from);
    const to = this.to;
    source.copy(this.target, to, from, end);
    this.to += end - from;
    if (valueLength !== DELETE_LENGTH) {
      view.setUint32(to + 4, valueLength + CHECKSUM_BYTES, true);
      view.setUint32(this.to, crc32(source.subarray(from + ROW_HEADER, end)), true);
      this.to += CHECKSUM_BYTES;
    }
    return end;
  }

  take(rows: number): PackedBatch {
    return { bytes: this.memory, length: this.to, rows };
  }
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
  return { ...rows, length: to };
}
