/** Values of options that are more than one word: lists by comma, and pairs of name and value. */
import { UsageError } from './exit-codes.ts';

/** Words by comma, without blanks around them and without empty ones. */
export function wordsOf(text: string): string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}

/** Words by comma, all of them known and at least one. */
export function knownWords<T extends string>(text: string, option: string, known: readonly T[]): T[] {
  const words = wordsOf(text);
  const unknown = words.find((word) => !(known as readonly string[]).includes(word));
  if (unknown !== undefined || words.length === 0) {
    throw new UsageError(`--${option} ${unknown ?? ''}: ${known.join(', ')}`);
  }
  return words as T[];
}

/** Each `name=value` of an option that may be given several times. */
export function namedValues(option: string, given: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(
    given.map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1) throw new UsageError(`--${option} ${pair}: expected name=value`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}
