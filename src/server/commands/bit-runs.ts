/** Counting and finding bits in long strings, run by run, four bytes at a time. */
import type { Slice } from '../../bytes/slice.ts';
import type { StringValue } from '../../store/api.ts';

/** Bytes that are looked at before a search asks whether to go on. */
const SEARCH_STEP = 64 * 1024;

function populationCount(word: number): number {
  word -= (word >>> 1) & 0x55555555;
  word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
  return Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

function countRun({ u8, view, start, end }: Slice): number {
  let count = 0;
  let pos = start;
  for (const wordsEnd = end - 3; pos < wordsEnd; pos += 4) count += populationCount(view.getInt32(pos, true));
  for (; pos < end; pos++) count += populationCount(u8[pos]);
  return count;
}

/** Number of set bits from bit `first` to bit `last`, both included and within the string. */
export function countBits(value: StringValue, first: number, last: number): number {
  const start = Math.floor(first / 8);
  const end = Math.floor(last / 8);
  let count = 0;
  value.forEachRun(start, end + 1, (run) => {
    count += countRun(run);
  });
  const before = value.byteAt(start) & ~(0xff >>> (first & 7)) & 0xff;
  const after = value.byteAt(end) & (0x7f >>> (last & 7));
  return count - populationCount(before) - populationCount(after);
}

/** First byte of the run that is not `skipped`; the run's end when all are. */
function skipRun({ u8, view, start, end }: Slice, skipped: number): number {
  const word = skipped === 0 ? 0 : -1;
  let pos = start;
  while (pos + 4 <= end && view.getInt32(pos, true) === word) pos += 4;
  while (pos < end && u8[pos] === skipped) pos++;
  return pos;
}

/** First byte in [start, end) that is not `skipped`; `end` when all are. */
function skipBytes(value: StringValue, start: number, end: number, skipped: number): number {
  for (let from = start; from < end; from += SEARCH_STEP) {
    const to = Math.min(end, from + SEARCH_STEP);
    let at = from;
    let found = false;
    value.forEachRun(from, to, (run) => {
      if (found) return;
      const pos = skipRun(run, skipped);
      found = pos < run.end;
      at += pos - run.start;
    });
    if (found) return at;
  }
  return end;
}

/** Position of the first bit equal to `bit` from `first` to `last`, both included and within the string; -1 when there is none. */
export function findBit(value: StringValue, bit: 0 | 1, first: number, last: number): number {
  const flip = bit === 1 ? 0 : 0xff;
  let at = Math.floor(first / 8);
  const end = Math.floor(last / 8);
  let candidates = (value.byteAt(at) ^ flip) & (0xff >>> (first & 7));
  if (candidates === 0) {
    at = skipBytes(value, at + 1, end + 1, flip);
    if (at > end) return -1;
    candidates = value.byteAt(at) ^ flip;
  }
  const position = at * 8 + Math.clz32(candidates) - 24;
  return position > last ? -1 : position;
}
