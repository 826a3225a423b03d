import { describe, expect, it } from 'vitest';
import { allocatePadded, Slice, viewOf } from '../../src/bytes/slice.ts';
import { Hasher } from '../../src/store/hash.ts';
import { Random, seeds } from './random.ts';

/** HalfSipHash as its authors describe it, for any number of rounds, byte by byte. */
function halfSipHash(key: Uint8Array, input: Uint8Array, compressing: number, finishing: number): number {
  const word = (bytes: Uint8Array, at: number): number =>
    bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
  const rotate = (x: number, by: number): number => (x << by) | (x >>> (32 - by));
  const v = [word(key, 0), word(key, 4), 0x6c796765 ^ word(key, 0), 0x74656462 ^ word(key, 4)];
  const rounds = (count: number): void => {
    for (let i = 0; i < count; i++) {
      v[0] = (v[0] + v[1]) | 0;
      v[1] = rotate(v[1], 5) ^ v[0];
      v[0] = rotate(v[0], 16);
      v[2] = (v[2] + v[3]) | 0;
      v[3] = rotate(v[3], 8) ^ v[2];
      v[0] = (v[0] + v[3]) | 0;
      v[3] = rotate(v[3], 7) ^ v[0];
      v[2] = (v[2] + v[1]) | 0;
      v[1] = rotate(v[1], 13) ^ v[2];
      v[2] = rotate(v[2], 16);
    }
  };
  const padded = new Uint8Array((Math.floor(input.length / 4) + 1) * 4);
  padded.set(input);
  padded[padded.length - 1] = input.length & 0xff;
  for (let at = 0; at < padded.length; at += 4) {
    v[3] ^= word(padded, at);
    rounds(compressing);
    v[0] ^= word(padded, at);
  }
  v[2] ^= 0xff;
  rounds(finishing);
  return v[1] ^ v[3];
}

const KEY = Uint8Array.of(0, 1, 2, 3, 4, 5, 6, 7);

describe('hash', () => {
  it('is compared with a description that gives the published results of HalfSipHash-2-4', () => {
    const results = [0, 1].map((length) => {
      const input = Uint8Array.from({ length }, (_, i) => i);
      return Buffer.from(Int32Array.of(halfSipHash(KEY, input, 2, 4)).buffer).toString('hex');
    });
    expect(results).toEqual(['a9359f5b', '27475ab8']);
  });

  it.each(seeds(1))('is HalfSipHash-1-3, whatever follows the bytes (SEED=%i)', (seed) => {
    const random = new Random(seed);
    for (let i = 0; i < 3000; i++) {
      const key = random.bytes(8);
      const hasher = new Hasher(key.readInt32LE(0), key.readInt32LE(4));
      const memory = allocatePadded(700);
      memory.set(random.bytes(700));
      const start = random.below(9);
      const end = start + random.below(i % 10 === 0 ? 600 : 40);
      const slice = new Slice();
      slice.set(memory, viewOf(memory.buffer), start, end);
      expect(hasher.hash32(slice)).toBe(halfSipHash(key, memory.subarray(start, end), 1, 3));
    }
  });

  it('spreads consecutive keys over all bits', () => {
    const hasher = new Hasher(3, 4);
    const ones = new Uint32Array(32);
    for (let i = 0; i < 20_000; i++) {
      const hash = hasher.hash32(Slice.from('key:' + i));
      for (let bit = 0; bit < 32; bit++) ones[bit] += (hash >>> bit) & 1;
    }
    for (const n of ones) expect(Math.abs(n - 10_000)).toBeLessThan(6 * Math.sqrt(5000));
  });

  it('gives other functions that follow from its key', () => {
    const hasher = new Hasher(1, 2);
    const slice = Slice.from('some key');
    const hashes = [hasher, hasher.derive(1), hasher.derive(2)].map((h) => h.hash32(slice));
    expect(new Set(hashes).size).toBe(3);
    expect(new Hasher(1, 2).derive(1).hash32(slice)).toBe(hashes[1]);
  });
});
