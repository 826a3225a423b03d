/** Random commands for comparing with a real Redis, repeatable by their seed. */
import { SEED } from '../seed.ts';
import type { CommandLine, Pair } from './harness.ts';

/** Uniform in [0, 1), by the tests' seed, which is printed. */
export function seeded(what: string): () => number {
  console.log(`${what}: SEED=${SEED}`);
  let state = SEED | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function pick<T>(random: () => number, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)];
}

export function bytesOf(...bytes: number[]): Buffer {
  return Buffer.from(bytes);
}

/** Sends `count` random commands to both servers, whose replies must be alike. */
export async function compareRandomly(
  pair: Pair,
  what: string,
  count: number,
  command: (random: () => number) => CommandLine,
): Promise<void> {
  const random = seeded(what);
  await pair.compare(Array.from({ length: count }, () => command(random)));
}
