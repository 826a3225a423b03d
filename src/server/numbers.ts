/** Numbers as Redis reads and prints them. */
import type { Slice } from '../bytes/slice.ts';

/** Digits after which a decimal may leave the safe integers and takes the exact path. */
const FAST_DIGITS = 15;

const INT64_MAX = 0x7fff_ffff_ffff_ffffn;
const INT64_MIN = -0x8000_0000_0000_0000n;

/**
 * The slice as an integer, in the only spelling that Redis takes: no blanks, no plus sign, no
 * leading zeros. NaN when it is none or outside the safe integers.
 */
export function parseInteger(slice: Slice): number {
  const u8 = slice.u8;
  let at = slice.start;
  const end = slice.end;
  const negative = u8[at] === 45 && at < end;
  if (negative) at++;
  const digits = end - at;
  if (digits < 1) return NaN;
  const first = u8[at];
  if (first === 48) return digits === 1 && !negative ? 0 : NaN;
  if (digits > FAST_DIGITS) {
    const exact = parseBigInteger(slice);
    if (exact === undefined) return NaN;
    const value = Number(exact);
    return Number.isSafeInteger(value) ? value : NaN;
  }
  let value = 0;
  for (; at < end; at++) {
    const digit = u8[at] - 48;
    if (digit < 0 || digit > 9) return NaN;
    value = value * 10 + digit;
  }
  return negative ? -value : value;
}

/** The slice as a signed 64-bit integer, in the same spelling; undefined when it is none. */
export function parseBigInteger(slice: Slice): bigint | undefined {
  const length = slice.end - slice.start;
  if (length < 1 || length > 20) return undefined;
  const text = slice.latin1();
  if (!/^(?:0|-?[1-9][0-9]*)$/.test(text)) return undefined;
  const value = BigInt(text);
  return value > INT64_MAX || value < INT64_MIN ? undefined : value;
}

/** Decimal and hexadecimal floats, as strtod takes them. */
const DECIMAL_FLOAT = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;
const HEXADECIMAL_FLOAT = /^([+-]?)0[xX]([0-9a-fA-F]*)\.?([0-9a-fA-F]*)(?:[pP]([+-]?[0-9]+))?$/;

/** The slice as a double the way strtod reads it; NaN when it is none, is NaN or overflows. */
export function parseDouble(slice: Slice): number {
  const length = slice.end - slice.start;
  if (length === 0 || length > 255) return NaN;
  if (length <= FAST_DIGITS) {
    // Plain digits need no text.
    const u8 = slice.u8;
    let at = slice.start;
    let value = 0;
    for (; at < slice.end; at++) {
      const digit = u8[at] - 48;
      if (digit < 0 || digit > 9) break;
      value = value * 10 + digit;
    }
    if (at === slice.end) return value;
  }
  return doubleOfText(slice.latin1());
}

/** As `parseDouble`, of text. */
export function doubleOfText(text: string): number {
  if (DECIMAL_FLOAT.test(text)) {
    const value = Number(text);
    return Number.isFinite(value) ? value : NaN;
  }
  switch (text.toLowerCase()) {
    case 'inf':
    case '+inf':
    case 'infinity':
    case '+infinity':
      return Infinity;
    case '-inf':
    case '-infinity':
      return -Infinity;
  }
  const hexadecimal = HEXADECIMAL_FLOAT.exec(text);
  if (hexadecimal === null || hexadecimal[2].length + hexadecimal[3].length === 0) return NaN;
  const [, sign, whole, fraction, exponent = '0'] = hexadecimal;
  let value = 0;
  for (const digit of whole + fraction) value = value * 16 + parseInt(digit, 16);
  value *= 2 ** (Number(exponent) - 4 * fraction.length);
  return Number.isFinite(value) ? (sign === '-' ? -value : value) : NaN;
}

/** A double as C's `%.17g` prints it, which is how Redis 7.0 replies with scores. */
export function doubleText(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e16) return Object.is(value, -0) ? '-0' : String(value);
  if (value === Infinity) return 'inf';
  if (value === -Infinity) return '-inf';
  if (Number.isNaN(value)) return 'nan';
  const [mantissa, exponentText] = value.toExponential(16).split('e');
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 17) {
    const digits = mantissa.includes('.') ? mantissa.replace(/\.?0+$/, '') : mantissa;
    const size = Math.abs(exponent);
    return `${digits}e${exponent < 0 ? '-' : '+'}${size < 10 ? '0' : ''}${size}`;
  }
  const sign = mantissa.startsWith('-') ? '-' : '';
  const digits = mantissa.replace('-', '').replace('.', '');
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits.replace(/0+$/, '')}`;
  const whole = digits.slice(0, exponent + 1);
  const fraction = digits.slice(exponent + 1).replace(/0+$/, '');
  return fraction === '' ? sign + whole : `${sign}${whole}.${fraction}`;
}
