/**
 * Ids of stream entries: 16 bytes, milliseconds and then sequence number, 64-bit big endian each, so
 * that the order of bytes is the order of ids. RDB files hold them in the same form.
 */
import { copyBetween } from '../bytes/copy.ts';
import { allocatePadded, Slice, viewOf } from '../bytes/slice.ts';

export const STREAM_ID_BYTES = 16;

const TWO_32 = 0x1_0000_0000;
const LAST_WORD = 0xffffffff;
/** High words below this make safe integers. */
const SAFE_HIGH = 0x20_0000;

/** An id in memory of its own, 0-0. */
export function newStreamId(): Slice {
  const memory = allocatePadded(STREAM_ID_BYTES);
  const id = new Slice();
  id.set(memory, viewOf(memory.buffer), 0, STREAM_ID_BYTES);
  return id;
}

export function copyId(from: Slice, to: Slice): void {
  copyBetween(from.u8, from.view, from.start, to.u8, to.view, to.start, STREAM_ID_BYTES);
}

export function cloneId(id: Slice): Slice {
  const copy = newStreamId();
  copyId(id, copy);
  return copy;
}

/** Negative, zero or positive. */
export function compareIds(a: Slice, b: Slice): number {
  for (let at = 0; at < STREAM_ID_BYTES; at += 4) {
    const order = a.view.getUint32(a.start + at) - b.view.getUint32(b.start + at);
    if (order !== 0) return order;
  }
  return 0;
}

export function isZeroId(id: Slice): boolean {
  for (let at = 0; at < STREAM_ID_BYTES; at += 4) if (id.view.getInt32(id.start + at) !== 0) return false;
  return true;
}

/** Makes it the next id; false, and 0-0, after the last one. */
export function incrementId(id: Slice): boolean {
  for (let at = STREAM_ID_BYTES - 4; at >= 0; at -= 4) {
    const word = id.view.getUint32(id.start + at);
    id.view.setUint32(id.start + at, word + 1);
    if (word !== LAST_WORD) return true;
  }
  return false;
}

/** Makes it the id before; false, and the last one, for 0-0. */
export function decrementId(id: Slice): boolean {
  for (let at = STREAM_ID_BYTES - 4; at >= 0; at -= 4) {
    const word = id.view.getUint32(id.start + at);
    id.view.setUint32(id.start + at, word - 1);
    if (word !== 0) return true;
  }
  return false;
}

/** Makes it `ms`-0. */
export function setIdTime(id: Slice, ms: number): void {
  const { view, start } = id;
  view.setUint32(start, Math.floor(ms / TWO_32));
  view.setUint32(start + 4, ms % TWO_32);
  view.setUint32(start + 8, 0);
  view.setUint32(start + 12, 0);
}

/** Sets milliseconds (`half` 0) or sequence number (8) to an unsigned 64-bit number. */
export function setIdHalf(id: Slice, half: 0 | 8, value: number | bigint): void {
  const at = id.start + half;
  if (typeof value === 'bigint') {
    id.view.setBigUint64(at, value);
    return;
  }
  id.view.setUint32(at, Math.floor(value / TWO_32));
  id.view.setUint32(at + 4, value % TWO_32);
}

/** Milliseconds (0) or sequence number (8) in decimal. */
export function idHalf(id: Slice, half: 0 | 8): string {
  const at = id.start + half;
  const high = id.view.getUint32(at);
  return high < SAFE_HIGH
    ? String(high * TWO_32 + id.view.getUint32(at + 4))
    : String(id.view.getBigUint64(at));
}

/** As `<milliseconds>-<sequence>`. */
export function formatId(id: Slice): string {
  return `${idHalf(id, 0)}-${idHalf(id, 8)}`;
}
