/**
 * Packed rows by key. Engines take rows in the order of their keys at a fraction of the cost: LMDB then
 * changes each of its pages once and not once for each row in it, the others sort and merge less.
 */
import { release } from '../bytes/release.ts';
import { viewOf } from '../bytes/slice.ts';
import { DELETE_LENGTH } from './engine.ts';
import { ROW_HEADER } from './packed.ts';
import { Pace } from './pace.ts';

/** Keys are told apart by their first 12 bytes, which for what this is made for is all but all of them. */
export const PREFIX_WORDS = 3;
const DIGIT_BITS = 16;
const DIGITS = 1 << DIGIT_BITS;
/** Rows between two looks at the clock. */
const ROWS_A_LOOK = 4096;

/**
 * Offsets of the rows that fill the first `length` bytes, ordered by the beginnings of their keys; rows
 * of one key stay in the order they have. A radix sort, with a turn of the event loop now and then.
 */
export async function rowOrder(
  bytes: ArrayBuffer,
  length: number,
  rows: number,
): Promise<Uint32Array<ArrayBuffer>> {
  const pace = new Pace();
  const view = viewOf(bytes);
  const prefixes = Array.from({ length: PREFIX_WORDS }, () => new Uint32Array(rows));
  const offsets = new Uint32Array(rows);
  let offset = 0;
  for (let row = 0; row < rows; row++) {
    const keyLength = view.getUint32(offset, true);
    const valueLength = view.getUint32(offset + 4, true);
    const key = offset + ROW_HEADER;
    offsets[row] = offset;
    for (let word = 0; word < PREFIX_WORDS; word++) prefixes[word][row] = prefixWord(view, offset, word);
    offset = key + keyLength + (valueLength === DELETE_LENGTH ? 0 : valueLength);
    if (row % ROWS_A_LOOK === 0 && pace.spent) await pace.turn();
  }
  if (offset !== length) throw new RangeError(`${rows} rows take ${offset} bytes, not ${length}`);

  let order = new Uint32Array(rows);
  let next = new Uint32Array(rows);
  for (let row = 0; row < rows; row++) order[row] = row;
  const starts = new Uint32Array(DIGITS);
  for (let word = PREFIX_WORDS - 1; word >= 0; word--) {
    for (let shift = 0; shift < 32; shift += DIGIT_BITS) {
      if (!countDigits(prefixes[word], shift, starts)) continue;
      distribute(prefixes[word], shift, starts, order, next);
      [order, next] = [next, order];
      if (pace.spent) await pace.turn();
    }
  }
  for (let i = 0; i < rows; i++) next[i] = offsets[order[i]];
  release([...prefixes, offsets, order].map(({ buffer }) => buffer));
  return next;
}

/** Bytes 4 * word and on of the key of the row at `row`, big-endian, zeros where it has ended. */
export function prefixWord(view: DataView, row: number, word: number): number {
  const keyLength = view.getUint32(row, true);
  const key = row + ROW_HEADER;
  const at = word * 4;
  if (keyLength >= at + 4) return view.getUint32(key + at);
  let value = 0;
  for (let byte = at; byte < at + 4; byte++) {
    value = (value << 8) | (byte < keyLength ? view.getUint8(key + byte) : 0);
  }
  return value >>> 0;
}

/** Where each digit's rows begin. False when all rows have the same digit. */
function countDigits(words: Uint32Array, shift: number, starts: Uint32Array): boolean {
  starts.fill(0);
  for (let row = 0; row < words.length; row++) starts[(words[row] >>> shift) & (DIGITS - 1)]++;
  if (words.length === 0 || starts[(words[0] >>> shift) & (DIGITS - 1)] === words.length) return false;
  let start = 0;
  for (let digit = 0; digit < DIGITS; digit++) {
    const count = starts[digit];
    starts[digit] = start;
    start += count;
  }
  return true;
}

function distribute(
  words: Uint32Array,
  shift: number,
  starts: Uint32Array,
  from: Uint32Array,
  to: Uint32Array,
): void {
  for (let i = 0; i < words.length; i++) {
    const row = from[i];
    to[starts[(words[row] >>> shift) & (DIGITS - 1)]++] = row;
  }
}
