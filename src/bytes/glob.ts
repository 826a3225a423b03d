/**
 * Redis's glob patterns: `*`, `?`, `[a-z]`, `[^a]`, and `\` before a character that stands for itself.
 * Only the last `*` is ever gone back to, so the time is bounded by the product of the two lengths.
 */
import type { Slice } from './slice.ts';

const STAR = 42;
const QUESTION = 63;
const OPEN = 91;
const CLOSE = 93;
const BACKSLASH = 92;
const CARET = 94;
const DASH = 45;

function lower(byte: number): number {
  return byte >= 65 && byte <= 90 ? byte + 32 : byte;
}

/** Ranges of a class compare bytes as C's signed char, as Redis does. */
function signed(byte: number): number {
  return (byte << 24) >> 24;
}

/** Patterns with more stars than this (a last one not counted) match nothing, as in Redis. */
const STARS_MAX = 1000;

/** Where the class that begins after `[` at `pos` ends (its `]`, or the pattern's last byte) is left here. */
let classEnd = 0;

function matchClass(u8: Uint8Array, pos: number, end: number, byte: number, ignoreCase: boolean): boolean {
  const negated = pos < end && u8[pos] === CARET;
  if (negated) pos++;
  const wanted = ignoreCase ? lower(byte) : byte;
  let match = false;
  for (; ; pos++) {
    if (pos >= end) {
      pos = end - 1;
      break;
    }
    const c = u8[pos];
    if (c === BACKSLASH && end - pos >= 2) {
      pos++;
      if (u8[pos] === byte) match = true;
    } else if (c === CLOSE) {
      break;
    } else if (end - pos >= 3 && u8[pos + 1] === DASH) {
      let low = signed(c);
      let high = signed(u8[pos + 2]);
      if (low > high) [low, high] = [high, low];
      let value = signed(byte);
      if (ignoreCase) {
        low = lower(low);
        high = lower(high);
        value = lower(value);
      }
      pos += 2;
      if (value >= low && value <= high) match = true;
    } else if ((ignoreCase ? lower(c) : c) === wanted) {
      match = true;
    }
  }
  classEnd = pos;
  return match !== negated;
}

/** The whole text matches the pattern. `ignoreCase` is for ASCII letters. */
export function matchGlob(pattern: Slice, text: Slice, ignoreCase = false): boolean {
  const p = pattern.u8;
  const t = text.u8;
  const patternEnd = pattern.end;
  const textEnd = text.end;
  let i = pattern.start;
  let j = text.start;
  // Redis never looks at the pattern of an empty text, so that not even `*` matches it.
  if (j === textEnd) return i === patternEnd;
  let afterStar = -1;
  let retryFrom = 0;
  let stars = 0;
  for (;;) {
    if (i < patternEnd && p[i] === STAR) {
      do i++;
      while (i < patternEnd && p[i] === STAR);
      if (i === patternEnd) return true;
      if (++stars > STARS_MAX) return false;
      afterStar = i;
      retryFrom = j;
      if (j === textEnd) return false;
      continue;
    }
    let matched = false;
    if (j < textEnd) {
      if (i < patternEnd) {
        let c = p[i];
        if (c === QUESTION) {
          matched = true;
        } else if (c === OPEN) {
          matched = matchClass(p, i + 1, patternEnd, t[j], ignoreCase);
          i = classEnd;
        } else {
          if (c === BACKSLASH && patternEnd - i >= 2) c = p[++i];
          matched = c === t[j] || (ignoreCase && lower(c) === lower(t[j]));
        }
      }
    } else if (i === patternEnd) {
      return true;
    } else {
      return false;
    }
    if (matched) {
      i++;
      j++;
    } else {
      if (afterStar < 0) return false;
      i = afterStar;
      j = ++retryFrom;
      if (j === textEnd) return false;
    }
  }
}

/** Every text matches: the pattern is a single `*`. */
export function matchesEverything(pattern: Slice): boolean {
  return pattern.end - pattern.start === 1 && pattern.u8[pattern.start] === STAR;
}

/** The pattern has no special character, so it matches only itself. */
export function isLiteral(pattern: Slice): boolean {
  for (let i = pattern.start; i < pattern.end; i++) {
    const c = pattern.u8[i];
    if (c === STAR || c === QUESTION || c === OPEN || c === BACKSLASH) return false;
  }
  return true;
}
