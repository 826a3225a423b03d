/** The forms in which commands name their keys (key specs of COMMAND INFO). */
import type { KeySpec } from '../command.ts';

/** One key at a fixed index. */
export function keyAt(index: number, ...access: string[]): KeySpec {
  return { access, begin: { index }, find: { last: 0, step: 1 } };
}

/** Keys from an index up to `last`, which counts from the last argument (-1) backwards. */
export function keysFrom(index: number, last: number, ...access: string[]): KeySpec {
  return { access, begin: { index }, find: { last, step: 1 } };
}

/** A number of keys at an index, and the keys behind it. */
export function countedKeys(index: number, ...access: string[]): KeySpec {
  return { access, begin: { index }, find: { keynum: 0, first: 1, step: 1 } };
}

/** The first half of the arguments after a keyword, which is looked for from an index on; the others belong to them in turn. */
export function keysAfter(keyword: string, startFrom: number, ...access: string[]): KeySpec {
  return { access, begin: { keyword, startFrom }, find: { last: -1, step: 1, limit: 2 } };
}

/** Keys that only the command itself can find, by the content of others or anywhere among the options. */
export function unknownKeys(...access: string[]): KeySpec {
  return { access, begin: { unknown: true }, find: { unknown: true } };
}
