/**
 * The form in which list elements are stored, in pages and packed in records: `$<length>\r\n<bytes>\r\n`,
 * so that a range of a list is a memory copy. An element too large for a page is a stub in its place:
 * `!`, number of the first overflow page, length; both 32-bit little endian.
 */
import { copyBetween } from '../bytes/copy.ts';
import type { Slice } from '../bytes/slice.ts';

const DOLLAR = 36;
const CR = 13;
const LF = 10;
const ZERO = 48;
export const STUB = 33;
export const STUB_BYTES = 9;

/** Bytes that an element of `length` bytes takes. */
export function framedBytes(length: number): number {
  return length + 5 + digits(length);
}

function digits(length: number): number {
  if (length < 10) return 1;
  if (length < 100) return 2;
  let count = 3;
  for (let bound = 1000; length >= bound; bound *= 10) count++;
  return count;
}

/** Bytes that the element or stub at `at` takes. */
export function elementBytes(u8: Buffer, at: number): number {
  if (u8[at] === STUB) return STUB_BYTES;
  let length = u8[at + 1] - ZERO;
  let pos = at + 2;
  for (let byte = u8[pos]; byte !== CR; byte = u8[++pos]) length = length * 10 + byte - ZERO;
  return pos - at + length + 4;
}

/** The same for bytes that may be damaged, and end at `end`; -1 when there is neither an element nor a stub. */
export function checkedElementBytes(u8: Buffer, at: number, end: number): number {
  if (at >= end) return -1;
  if (u8[at] === STUB) return at + STUB_BYTES <= end ? STUB_BYTES : -1;
  if (u8[at] !== DOLLAR) return -1;
  let length = 0;
  let pos = at + 1;
  for (; pos < end && u8[pos] >= ZERO && u8[pos] < ZERO + 10 && length < end; pos++)
    length = length * 10 + u8[pos] - ZERO;
  const bytes = framedBytes(length);
  const whole = pos === at + 1 + digits(length) && at + bytes <= end;
  if (!whole || u8[pos] !== CR || u8[pos + 1] !== LF) return -1;
  return u8[at + bytes - 2] === CR && u8[at + bytes - 1] === LF ? bytes : -1;
}

/** Points `into` at the bytes of the framed element at `at`, which is no stub. */
export function elementAt(u8: Buffer, view: DataView, at: number, into: Slice): void {
  let length = u8[at + 1] - ZERO;
  let pos = at + 2;
  for (let byte = u8[pos]; byte !== CR; byte = u8[++pos]) length = length * 10 + byte - ZERO;
  into.set(u8, view, pos + 2, pos + 2 + length);
}

/** Writes `$<length>\r\n`; returns where the bytes go. */
export function writeFrameHead(u8: Buffer, at: number, length: number): number {
  u8[at] = DOLLAR;
  const end = at + 1 + digits(length);
  for (let pos = end - 1, rest = length; pos > at; pos--) {
    const tenth = (rest / 10) | 0;
    u8[pos] = ZERO + rest - tenth * 10;
    rest = tenth;
  }
  u8[end] = CR;
  u8[end + 1] = LF;
  return end + 2;
}

/** Writes an element, framed; returns where the next goes. */
export function writeFramed(u8: Buffer, view: DataView, at: number, element: Slice): number {
  const length = element.end - element.start;
  const body = writeFrameHead(u8, at, length);
  copyBetween(element.u8, element.view, element.start, u8, view, body, length);
  const end = body + length;
  u8[end] = CR;
  u8[end + 1] = LF;
  return end + 2;
}
