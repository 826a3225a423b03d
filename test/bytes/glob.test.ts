import { expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { isLiteral, matchesEverything, matchGlob } from '../../src/bytes/glob.ts';

const of = (text: string): Slice => Slice.from(Buffer.from(text, 'latin1'));
const match = (pattern: string, text: string, ignoreCase = false): boolean =>
  matchGlob(of(pattern), of(text), ignoreCase);

test.each([
  ['*', 'abc'],
  ['a*', 'a'],
  ['a**', 'a'],
  ['*c', 'abc'],
  ['a*b*c', 'axxbyyc'],
  ['h?llo', 'hello'],
  ['h[ae]llo', 'hallo'],
  ['h[^e]llo', 'hbllo'],
  ['h[a-c]llo', 'hbllo'],
  ['h[c-a]llo', 'hbllo'],
  ['[a-]', '^'],
  ['[\\]]', ']'],
  ['\\*', '*'],
  ['\\', '\\'],
  ['[a', 'a'],
  ['a[b', 'ab'],
  ['*[0-9]x', 'a12x'],
  ['', ''],
])('%s matches %j', (pattern, text) => {
  expect(match(pattern, text)).toBe(true);
});

test.each([
  ['*', ''],
  ['**', ''],
  ['?', ''],
  ['a', ''],
  ['', 'a'],
  ['a', 'ab'],
  ['ab', 'a'],
  ['h?llo', 'hllo'],
  ['h[^e]llo', 'hello'],
  ['h[a-b]llo', 'hcllo'],
  ['\\*', 'a'],
  ['a*b', 'acd'],
  ['[', 'a'],
  ['A', 'a'],
])('%s does not match %j', (pattern, text) => {
  expect(match(pattern, text)).toBe(false);
});

test('case is ignored when asked for', () => {
  expect(match('HE[L-M]*', 'hello', true)).toBe(true);
  expect(match('\\H?', 'he', true)).toBe(true);
});

test('a range compares bytes as signed characters', () => {
  expect(match('[a-\xff]', '\xfe')).toBe(false);
  expect(match('[\x80-\xff]', '\xfe')).toBe(true);
});

test('abusive patterns end quickly and match nothing', () => {
  expect(match('*?'.repeat(50_000), 'a'.repeat(50_000))).toBe(false);
  expect(match('a*'.repeat(900) + 'b', 'a'.repeat(5_000))).toBe(false);
});

test('what needs no matching is told', () => {
  expect(matchesEverything(of('*'))).toBe(true);
  expect(matchesEverything(of('**'))).toBe(false);
  expect(isLiteral(of('user:1'))).toBe(true);
  expect(isLiteral(of('user:?'))).toBe(false);
});
