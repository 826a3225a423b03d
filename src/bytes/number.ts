/**
 * Numbers as text, by Redis's rules: which byte strings are integers or doubles, and how doubles are
 * printed. Integers are 64-bit; those within JavaScript's safe range are plain numbers on every hot
 * path, the rest are bigints.
 */
import type { Slice } from './slice.ts';

export const INT64_MAX = 9223372036854775807n;
export const INT64_MIN = -9223372036854775808n;

const MINUS = 45;
const PLUS = 43;
const ZERO = 48;
const NINE = 57;

/** Digits that always stay within the safe range. */
const SAFE_DIGITS = 15;
/** Digits of the longest 64-bit integers. */
const INT64_DIGITS = 19;

/**
 * Bytes [start, end) as a canonical decimal integer: no sign but a minus, no leading zero, no blank.
 * NaN when they are not, or when the value is outside the safe range (`parseInt64` reads those).
 */
export function parseInteger(u8: Uint8Array, start: number, end: number): number {
  let pos = start;
  const negative = u8[pos] === MINUS && pos < end;
  if (negative) pos++;
  const digits = end - pos;
  if (digits <= 0 || digits > SAFE_DIGITS + 1) return NaN;
  let value = u8[pos++] - ZERO;
  if (value < 0 || value > 9) return NaN;
  if (value === 0) return digits === 1 && !negative ? 0 : NaN;
  for (; pos < end; pos++) {
    const digit = u8[pos] - ZERO;
    if (digit < 0 || digit > 9) return NaN;
    value = value * 10 + digit;
  }
  if (digits > SAFE_DIGITS && value > Number.MAX_SAFE_INTEGER) return NaN;
  return negative ? -value : value;
}

/** `parseInteger` of a slice. */
export function sliceInteger(slice: Slice): number {
  return parseInteger(slice.u8, slice.start, slice.end);
}

/** The slice as a canonical 64-bit integer; undefined when it is none. */
export function parseInt64(slice: Slice): bigint | undefined {
  const small = parseInteger(slice.u8, slice.start, slice.end);
  if (!Number.isNaN(small)) return BigInt(small);
  if (!looksLikeLongInteger(slice)) return undefined;
  const value = BigInt(slice.latin1());
  return value > INT64_MAX || value < INT64_MIN ? undefined : value;
}

/** The slice is a canonical 64-bit integer. */
export function isInt64(slice: Slice): boolean {
  return !Number.isNaN(parseInteger(slice.u8, slice.start, slice.end)) || parseInt64(slice) !== undefined;
}

/** A canonical decimal with more digits than a safe integer is sure to take, and no more than 64 bits may. */
function looksLikeLongInteger(slice: Slice): boolean {
  const { u8, end } = slice;
  let pos = slice.start;
  if (u8[pos] === MINUS) pos++;
  const digits = end - pos;
  if (digits <= SAFE_DIGITS || digits > INT64_DIGITS || u8[pos] === ZERO) return false;
  for (; pos < end; pos++) {
    if (u8[pos] < ZERO || u8[pos] > NINE) return false;
  }
  return true;
}

/**
 * The slice as a double, as C's strtod reads a whole string: decimal or hexadecimal, with either sign,
 * `inf`, `infinity`. NaN when it is no number, is `nan`, begins with a blank, or is too large or too
 * small for a double.
 */
export function parseDouble(slice: Slice): number {
  const { u8, start, end } = slice;
  const integer = parseInteger(u8, start, end);
  if (!Number.isNaN(integer)) return integer;
  let pos = start;
  const negative = u8[pos] === MINUS;
  if (pos < end && (negative || u8[pos] === PLUS)) pos++;
  if (pos >= end) return NaN;
  const first = u8[pos];
  let value: number;
  if (first === ZERO && pos + 1 < end && (u8[pos + 1] | 32) === 120) {
    value = parseHexadecimal(u8.latin1Slice(pos + 2, end));
  } else if ((first >= ZERO && first <= NINE) || first === 46) {
    // What begins with a digit or a point, and is not 0x, 0b or 0o, Number reads as strtod does.
    if (first === ZERO && pos + 1 < end && u8[pos + 1] > NINE && (u8[pos + 1] | 32) !== 101) return NaN;
    if (u8[end - 1] <= 32 || u8[end - 1] >= 127) return NaN; // Number would trim a blank
    const text = u8.latin1Slice(pos, end);
    value = Number(text);
    if (value === Infinity) return NaN;
    if (value === 0 && /^[0.]*[1-9]/.test(text)) return NaN;
  } else {
    if (end - pos > 8) return NaN;
    const word = u8.latin1Slice(pos, end).toLowerCase();
    if (word !== 'inf' && word !== 'infinity') return NaN;
    value = Infinity;
  }
  return negative ? -value : value;
}

/** What follows `0x`: hexadecimal digits with an optional point and an optional binary exponent. */
function parseHexadecimal(text: string): number {
  const parts = /^([0-9a-f]*)(?:\.([0-9a-f]*))?(?:p([+-]?\d+))?$/i.exec(text);
  if (parts === null) return NaN;
  const [, whole, fraction = '', exponent = '0'] = parts;
  if (whole === '' && fraction === '') return NaN;
  const mantissa = BigInt(`0x0${whole}${fraction}`);
  if (mantissa === 0n) return 0;
  // Two steps, so that neither power of two overflows or vanishes alone.
  const shift = Number(exponent) - 4 * fraction.length;
  const half = Math.trunc(shift / 2);
  const value = Number(mantissa) * 2 ** half * 2 ** (shift - half);
  return value === 0 || value === Infinity ? NaN : value;
}

/** The double as C's `%.17g` prints it (`3.1` gives `3.1000000000000001`); infinities are `inf` and `-inf`. */
export function formatDouble(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return Object.is(value, -0) ? '-0' : String(value);
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  const text = roundedToSeventeen(Math.abs(value));
  const split = text.indexOf('e');
  const exponent = Number(text.slice(split + 1));
  let digits = text[0] + text.slice(2, split);
  let length = digits.length;
  while (length > 1 && digits.charCodeAt(length - 1) === ZERO) length--;
  digits = digits.slice(0, length);
  const sign = value < 0 ? '-' : '';
  if (exponent < -4 || exponent >= 17) {
    const fraction = length > 1 ? `.${digits.slice(1)}` : '';
    const power = String(Math.abs(exponent)).padStart(2, '0');
    return `${sign}${digits[0]}${fraction}e${exponent < 0 ? '-' : '+'}${power}`;
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  if (length <= exponent + 1) return sign + digits.padEnd(exponent + 1, '0');
  return `${sign}${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`;
}

/**
 * A positive double in exponential form with 17 digits. JavaScript rounds an exact half up, C rounds it
 * to the even digit.
 */
function roundedToSeventeen(value: number): string {
  const rounded = value.toExponential(16);
  // A half in the 17th digit is a decimal of 18 digits, whose last place needs as many binary ones.
  const exponent = Number(rounded.slice(rounded.indexOf('e') + 1));
  if (!Number.isInteger(value * 2 ** (17 - exponent))) return rounded;
  const exact = value.toExponential(100);
  const even = (exact.charCodeAt(17) & 1) === 0;
  return even && /^\d\.\d{16}50*e/.test(exact)
    ? exact.slice(0, 18) + exact.slice(exact.indexOf('e'))
    : rounded;
}
