/** Numbers for random tests, repeatable from a seed (xorshift32). */
import { SEED } from '../seed.ts';

export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = Math.imul(seed, 0x9e3779b9) | 1;
    for (let i = 0; i < 4; i++) this.word();
  }

  /** A signed 32-bit number. */
  word(): number {
    let x = this.state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.state = x;
    return x;
  }

  /** Bytes of random content. */
  bytes(length: number): Buffer {
    const bytes = Buffer.alloc(length);
    for (let i = 0; i < length; i++) bytes[i] = this.below(256);
    return bytes;
  }

  /** Uniform in [0, 1). */
  real(): number {
    return (this.word() >>> 0) / 2 ** 32;
  }

  /** Uniform in [0, n). */
  below(n: number): number {
    return Math.floor(this.real() * n);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)];
  }
}

/** A generator of numbers in [0, 1). */
export function uniform(seed: number): () => number {
  const random = new Random(seed);
  return () => random.real();
}

/** Seeds of a random test, from the tests' seed on. */
export function seeds(count: number): number[] {
  return Array.from({ length: count }, (_, i) => SEED + i);
}
