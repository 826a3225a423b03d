/**
 * LZF, the compression of RDB strings. The format, by its control byte:
 *
 * - below 32: a run of that many and one literal bytes follows;
 * - else a copy of earlier output: three bits of length (7: one more byte is added to it), then 13 bits of
 *   distance, high bits in the control byte. The length counts from 2, the distance from 1.
 */

const LITERALS_MAX = 32;
const DISTANCE_MAX = 8192;
const MATCH_MAX = 264;
/** Bits of the hash table's index: as many places as the distance can reach, which fit the L1 cache. */
const HASH_BITS = 13;

/** Spreads three bytes in the high ones of a word over the table: 2^32 over the golden ratio, shifted as they are. */
const HASH_FACTOR = 0x9e3779b1;
/** After 2^6 bytes without a match every second byte is looked at, after twice as many every third. */
const MISSES_BITS = 6;

/** The most that a byte of compressed data can become, which bounds what a wrong length may allocate. */
export const LZF_RATIO_MAX = MATCH_MAX / 3;

/** Where three bytes were last seen: a position plus `epoch`, so that the table is not cleared for each run. */
const places = new Int32Array(1 << HASH_BITS);
let epoch = 1;

/**
 * Compresses bytes [start, end) of `from` to `to` at `at`; `view` covers the memory of `from`, and one
 * byte after `end` must exist. Returns where the output ends, or -1 when it would end after `limit`.
 */
export function lzfCompress(
  from: Uint8Array,
  view: DataView,
  start: number,
  end: number,
  to: Uint8Array,
  at: number,
  limit: number,
): number {
  const length = end - start;
  if (epoch > 0x7fffffff - length) {
    places.fill(0);
    epoch = 1;
  }
  const shift = epoch - start;
  epoch += length;
  const lastMatch = end - 3;
  let pos = start;
  /** Literals since here are not written yet. */
  let literals = start;
  while (pos < lastMatch) {
    // Three bytes, in the high ones of a word.
    const triple = view.getInt32(pos, true) << 8;
    const slot = Math.imul(triple, HASH_FACTOR) >>> (32 - HASH_BITS);
    const reference = places[slot] - shift;
    places[slot] = pos + shift;
    const distance = pos - reference - 1;
    if (reference >= start && distance < DISTANCE_MAX && view.getInt32(reference, true) << 8 === triple) {
      if (literals < pos) {
        at = putLiterals(from, literals, pos, to, at, limit);
        if (at < 0) return -1;
      }
      if (at + 3 > limit) return -1;
      let match = 3;
      const most = Math.min(MATCH_MAX, end - pos);
      while (match < most && from[reference + match] === from[pos + match]) match++;
      const code = match - 2;
      if (code < 7) {
        to[at++] = (code << 5) | (distance >>> 8);
      } else {
        to[at++] = 0xe0 | (distance >>> 8);
        to[at++] = code - 7;
      }
      to[at++] = distance & 0xff;
      pos += match;
      literals = pos;
    } else {
      // The longer nothing repeats, the less is looked at.
      pos += 1 + ((pos - literals) >>> MISSES_BITS);
    }
  }
  return putLiterals(from, literals, end, to, at, limit);
}

function putLiterals(
  from: Uint8Array,
  start: number,
  end: number,
  to: Uint8Array,
  at: number,
  limit: number,
): number {
  while (start < end) {
    const run = Math.min(LITERALS_MAX, end - start);
    if (at + run + 1 > limit) return -1;
    to[at++] = run - 1;
    for (const stop = start + run; start < stop; start++) to[at++] = from[start];
  }
  return at;
}

/**
 * Decompresses bytes [start, end) of `from` to `to` from `at` on. False unless the output ends exactly at
 * `limit`; nothing is written beyond it, nor read before `at`.
 */
export function lzfDecompress(
  from: Uint8Array,
  start: number,
  end: number,
  to: Uint8Array,
  at: number,
  limit: number,
): boolean {
  const first = at;
  let pos = start;
  while (pos < end) {
    const control = from[pos++];
    if (control < 32) {
      const stop = pos + control + 1;
      if (stop > end || at + control + 1 > limit) return false;
      while (pos < stop) to[at++] = from[pos++];
    } else {
      let length = control >>> 5;
      if (length === 7) {
        if (pos >= end) return false;
        length += from[pos++];
      }
      if (pos >= end) return false;
      let reference = at - (((control & 31) << 8) | from[pos++]) - 1;
      const stop = at + length + 2;
      if (reference < first || stop > limit) return false;
      while (at < stop) to[at++] = to[reference++];
    }
  }
  return at === limit;
}
