/**
 * The 80-bit floating point numbers of x86 (`long double`: 64 bits of mantissa), in which Redis counts
 * INCRBYFLOAT and HINCRBYFLOAT. Exact in every bit, on bigints.
 */
import type { Slice } from './slice.ts';

/** `mantissa * 2 ** exponent`; an infinity has the exponent Infinity and the mantissa 1 or -1. */
export interface Extended {
  readonly mantissa: bigint;
  readonly exponent: number;
}

const MANTISSA_BITS = 64;
/** Exponent of the lowest bit of the smallest number. */
const EXPONENT_MIN = -16445;
/** Exponent of the lowest bit of the largest numbers. */
const EXPONENT_MAX = 16383 - 63;
/** Decimal exponents beyond which a number of any number of digits that is read here over- or underflows. */
const DECIMAL_EXPONENT_LIMIT = 20_000;
/** Longest text that Redis takes. */
const TEXT_MAX = 5 * 1024 - 1;
/** Digits after the point that Redis prints. */
const FRACTION_DIGITS = 17;
const FRACTION_SCALE = 10n ** BigInt(FRACTION_DIGITS);

const ZERO: Extended = { mantissa: 0n, exponent: 0 };

function bitLength(value: bigint): number {
  const hex = value.toString(16);
  return hex.length * 4 - Math.clz32(parseInt(hex[0], 16)) + 28;
}

const powersOfTen: bigint[] = [];

function powerOfTen(exponent: number): bigint {
  if (exponent > 64) return 10n ** BigInt(exponent);
  return (powersOfTen[exponent] ??= 10n ** BigInt(exponent));
}

/** `value / 2 ** bits` rounded to an integer, half to even. */
function dropBits(value: bigint, bits: number): bigint {
  if (bits <= 0) return value;
  const shift = BigInt(bits);
  const kept = value >> shift;
  const rest = value - (kept << shift);
  const half = 1n << (shift - 1n);
  return rest > half || (rest === half && (kept & 1n) === 1n) ? kept + 1n : kept;
}

/** `numerator / denominator * 2 ** exponent` as the nearest Extended, half to even; both are positive. */
function round(negative: boolean, numerator: bigint, denominator: bigint, exponent: number): Extended {
  let value = numerator;
  if (denominator !== 1n) {
    // At least two bits more than a mantissa has; the lowest tells whether there is a remainder.
    const shift = bitLength(numerator) - bitLength(denominator) - MANTISSA_BITS - 2;
    const dividend = shift < 0 ? numerator << BigInt(-shift) : numerator;
    const divisor = shift > 0 ? denominator << BigInt(shift) : denominator;
    value = dividend / divisor;
    if (value * divisor !== dividend) value |= 1n;
    exponent += shift;
  }
  const excess = Math.max(bitLength(value) - MANTISSA_BITS, EXPONENT_MIN - exponent, 0);
  const mantissa = dropBits(value, excess);
  exponent += excess;
  if (mantissa === 0n) return ZERO;
  if (exponent + bitLength(mantissa) - MANTISSA_BITS > EXPONENT_MAX) {
    return { mantissa: negative ? -1n : 1n, exponent: Infinity };
  }
  return { mantissa: negative ? -mantissa : mantissa, exponent };
}

const DECIMAL = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?$/i;
const HEXADECIMAL = /^([+-]?)0x([\da-f]*)(?:\.([\da-f]*))?(?:p([+-]?\d+))?$/i;
const INFINITE = /^([+-]?)inf(?:inity)?$/i;

/**
 * The slice as C's strtold reads a whole string; undefined when it is no number, or too large or too
 * small to be told from zero.
 */
export function parseExtended(slice: Slice): Extended | undefined {
  if (slice.length === 0 || slice.length > TEXT_MAX) return undefined;
  const text = slice.latin1();
  const infinite = INFINITE.exec(text);
  if (infinite !== null) return { mantissa: infinite[1] === '-' ? -1n : 1n, exponent: Infinity };
  const decimal = DECIMAL.exec(text);
  const parts = decimal ?? HEXADECIMAL.exec(text);
  if (parts === null) return undefined;
  const [, sign, whole = '', fraction = '', power = '0'] = parts;
  if (whole === '' && fraction === '') return undefined;
  const negative = sign === '-';
  const exponent = Number(power);
  let value: Extended;
  if (decimal === null) {
    const digits = BigInt(`0x${whole}${fraction}`);
    if (digits === 0n) return ZERO;
    const shift = exponent - 4 * fraction.length;
    if (Math.abs(shift) > 2 * DECIMAL_EXPONENT_LIMIT) return undefined;
    value = round(negative, digits, 1n, shift);
  } else {
    const digits = BigInt(whole + fraction);
    if (digits === 0n) return ZERO;
    const shift = exponent - fraction.length;
    if (Math.abs(shift) > DECIMAL_EXPONENT_LIMIT) return undefined;
    const scale = powerOfTen(Math.abs(shift));
    value = shift >= 0 ? round(negative, digits * scale, 1n, 0) : round(negative, digits, scale, 0);
  }
  return value.mantissa === 0n || value.exponent === Infinity ? undefined : value;
}

/** The sum, rounded; undefined when it is not finite. */
export function addExtended(a: Extended, b: Extended): Extended | undefined {
  if (a.exponent === Infinity || b.exponent === Infinity) return undefined;
  const exponent = Math.min(a.exponent, b.exponent);
  const sum = (a.mantissa << BigInt(a.exponent - exponent)) + (b.mantissa << BigInt(b.exponent - exponent));
  if (sum === 0n) return ZERO;
  const value = round(sum < 0n, sum < 0n ? -sum : sum, 1n, exponent);
  return value.exponent === Infinity ? undefined : value;
}

/** A finite number as Redis prints it for people: `%.17Lf` without the zeros at the end. */
export function formatExtended({ mantissa, exponent }: Extended): string {
  const negative = mantissa < 0n;
  const scaled = (negative ? -mantissa : mantissa) * FRACTION_SCALE;
  const rounded = exponent >= 0 ? scaled << BigInt(exponent) : dropBits(scaled, -exponent);
  const digits = rounded.toString().padStart(FRACTION_DIGITS + 1, '0');
  const whole = digits.slice(0, -FRACTION_DIGITS);
  const fraction = digits.slice(-FRACTION_DIGITS).replace(/0+$/, '');
  const text = fraction === '' ? whole : `${whole}.${fraction}`;
  return negative && text !== '0' ? `-${text}` : text;
}
