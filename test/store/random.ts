import { expect } from 'vitest';

/** A seeded generator (mulberry32), so that a random test can be repeated. */
export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = seed | 0;
  }

  fraction(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  below(bound: number): number {
    return Math.floor(this.fraction() * bound);
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)];
  }

  /** Bytes of random content. */
  bytes(length: number): Buffer {
    const bytes = Buffer.alloc(length);
    for (let i = 0; i < length; i++) bytes[i] = this.below(256);
    return bytes;
  }
}

/** A new seed, printed so that a failure can be repeated with ARDENT_TEST_SEED. */
export function seedOfTest(): number {
  const given = process.env['ARDENT_TEST_SEED'];
  const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
  console.log(`${expect.getState().currentTestName}: ARDENT_TEST_SEED=${seed}`);
  return seed;
}
