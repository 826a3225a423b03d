/** Replies taken apart, for comparisons in which the order of elements is free. */
import { expect } from 'vitest';
import { SEED } from '../seed.ts';
import type { CommandLine, Pair } from './harness.ts';

/** Aggregates carry their type, so that a set and an array of the same elements differ. */
export type ReplyTree = string | { type: string; elements: ReplyTree[] };

/** The first reply in `text` (one character a byte). */
export function parseReply(text: string): ReplyTree {
  let pos = 0;
  const line = (): string => {
    const end = text.indexOf('\r\n', pos);
    const found = text.slice(pos, end);
    pos = end + 2;
    return found;
  };
  const next = (): ReplyTree => {
    const header = line();
    const type = header[0];
    const length = Number(header.slice(1));
    if (type === '$' || type === '=') {
      if (length < 0) return header;
      const bytes = text.slice(pos, pos + length);
      pos += length + 2;
      return type + bytes;
    }
    if (!'*~%>'.includes(type) || length < 0) return header;
    const elements: ReplyTree[] = [];
    for (let i = 0; i < length * (type === '%' ? 2 : 1); i++) elements.push(next());
    return { type, elements };
  };
  return next();
}

/** The reply with its elements, `group` by `group`, in an order of their own. */
export function unordered(text: string, group = 1): unknown {
  const tree = parseReply(text);
  if (typeof tree === 'string') return tree;
  const groups: string[] = [];
  for (let i = 0; i < tree.elements.length; i += group) {
    groups.push(JSON.stringify(tree.elements.slice(i, i + group)));
  }
  return [tree.type, ...groups.sort()];
}

/** As `Pair.compare`, but elements of an aggregate (pairs of them with `group` 2) may come in any order. */
export async function compareUnordered(
  pair: Pair,
  commands: readonly (CommandLine | string)[],
  group = 1,
): Promise<void> {
  for (const command of commands) {
    const parts = typeof command === 'string' ? command.split(' ') : command;
    const [ours, theirs] = await Promise.all([pair.ours.send(...parts), pair.theirs.send(...parts)]);
    expect([parts.join(' '), unordered(ours, group)]).toEqual([parts.join(' '), unordered(theirs, group)]);
  }
}

/** What a random selection of commands is drawn with; the same seed gives the same numbers. */
export class Dice {
  private state = SEED;

  /** An integer in [0, bound). */
  below(bound: number): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound);
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)];
  }

  /** `least` to `most` picks. */
  some<T>(choices: readonly T[], least: number, most: number): T[] {
    return Array.from({ length: least + this.below(most - least + 1) }, () => this.pick(choices));
  }

  chance(share: number): boolean {
    return this.below(1_000_000) < share * 1_000_000;
  }
}

/** Runs a test that draws from the dice; a failure names the seed that repeats it. */
export async function withDice(work: (dice: Dice) => Promise<void>): Promise<void> {
  const dice = new Dice();
  try {
    await work(dice);
  } catch (error) {
    if (error instanceof Error) error.message = `SEED=${SEED}: ${error.message}`;
    throw error;
  }
}
