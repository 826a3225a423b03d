/**
 * Seeded random numbers: xoshiro128** (Blackman and Vigna, https://prng.di.unimi.it/), its state filled
 * by SplitMix32. Two streams with different `stream` numbers of one seed are independent for our use.
 */
export class Random {
  private a = 0;
  private b = 0;
  private c = 0;
  private d = 0;

  constructor(seed: number, stream = 0) {
    let state = (seed ^ Math.imul(stream + 1, 0x9e3779b9)) | 0;
    const split = (): number => {
      state = (state + 0x9e3779b9) | 0;
      let z = state;
      z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
      z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
      return z ^ (z >>> 15);
    };
    this.a = split();
    this.b = split();
    this.c = split();
    this.d = split() | 1;
  }

  /** 32 random bits as a number in [0, 2^32). */
  next(): number {
    const b = this.b;
    const scrambled = Math.imul(b, 5);
    const result = Math.imul((scrambled << 7) | (scrambled >>> 25), 9);
    this.c ^= this.a;
    this.d ^= b;
    this.b ^= this.c;
    this.a ^= this.d;
    this.c ^= b << 9;
    this.d = (this.d << 11) | (this.d >>> 21);
    return result >>> 0;
  }

  /** In [0, 1), 53 bits. */
  fraction(): number {
    return ((this.next() >>> 5) * 67108864 + (this.next() >>> 6)) / 9007199254740992;
  }

  /** Whole number in [0, bound). Bias below bound / 2^53. */
  below(bound: number): number {
    if (bound <= 0x10000) return ((this.next() * bound) / 4294967296) | 0;
    return Math.floor(this.fraction() * bound);
  }

  /** Fills `bytes` with random bytes. */
  fill(bytes: Uint8Array): void {
    for (let i = 0; i < bytes.length; i++) bytes[i] = this.next() >>> 24;
  }
}
