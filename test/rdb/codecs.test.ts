/** The checksum and the compression of RDB files. */
import { describe, expect, test } from 'vitest';
import { allocatePadded, viewOf } from '../../src/bytes/slice.ts';
import { Crc64 } from '../../src/rdb/crc64.ts';
import { lzfCompress, lzfDecompress } from '../../src/rdb/lzf.ts';
import { Random } from '../store/random.ts';

function padded(bytes: Uint8Array): Buffer {
  const memory = allocatePadded(bytes.length);
  memory.set(bytes);
  return memory;
}

function crcOf(bytes: Buffer): string {
  const crc = new Crc64();
  crc.update(bytes, viewOf(bytes.buffer), 0, bytes.length);
  return crc.toString();
}

describe('CRC-64', () => {
  test('of the digits', () => {
    expect(crcOf(padded(Buffer.from('123456789')))).toBe('e9c6d914c4b8d9ca');
  });

  test('in pieces as in one', () => {
    const bytes = padded(new Random(1).bytes(1000));
    for (let cut = 0; cut < 100; cut++) {
      const crc = new Crc64();
      crc.update(bytes, viewOf(bytes.buffer), 0, cut);
      crc.update(bytes, viewOf(bytes.buffer), cut, bytes.length);
      expect(crc.toString()).toBe(crcOf(bytes));
    }
  });

  test('of bytes that are filled in later', () => {
    const bytes = padded(new Random(2).bytes(5000));
    for (const at of [0, 1, 2500, 4995, 4996]) {
      const gap = padded(bytes);
      gap.fill(0, at, at + 4);
      const crc = new Crc64();
      crc.update(gap, viewOf(gap.buffer), 0, gap.length);
      const patch = padded(bytes.subarray(at, at + 4));
      crc.addPatch(patch, viewOf(patch.buffer), bytes.length - at - 4);
      expect(crc.toString()).toBe(crcOf(bytes));
    }
  });
});

function compress(
  bytes: Buffer,
  start: number,
  end: number,
  to: Uint8Array,
  at: number,
  limit: number,
): number {
  const memory = padded(bytes);
  return lzfCompress(memory, viewOf(memory.buffer), start, end, to, at, limit);
}

describe('LZF', () => {
  const random = new Random(3);
  const samples: Buffer[] = [Buffer.alloc(0), Buffer.from('a'), Buffer.alloc(100_000), random.bytes(1000)];
  for (let i = 0; i < 300; i++) {
    const letters = 1 + random.below(20);
    samples.push(Buffer.from(Array.from({ length: random.below(20_000) }, () => random.below(letters))));
  }

  test('what was compressed comes back, also from parts', () => {
    for (const sample of samples) {
      const memory = new Uint8Array(sample.length + (sample.length >>> 5) + 8);
      const cut = random.below(sample.length + 1);
      const middle = compress(sample, 0, cut, memory, 0, memory.length);
      const end = compress(sample, cut, sample.length, memory, middle, memory.length);
      expect(end).toBeLessThanOrEqual(memory.length);
      const back = new Uint8Array(sample.length);
      expect(lzfDecompress(memory, 0, end, back, 0, back.length)).toBe(true);
      expect(sample.equals(back)).toBe(true);
      if (sample.length > 0) expect(lzfDecompress(memory, 0, end, back, 0, back.length - 1)).toBe(false);
    }
  });

  test('stays within its limit', () => {
    const sample = random.bytes(1000);
    const memory = new Uint8Array(2000);
    expect(compress(sample, 0, 1000, memory, 10, 900)).toBe(-1);
    expect(memory.subarray(900).every((byte) => byte === 0)).toBe(true);
    expect(compress(Buffer.alloc(1000), 0, 1000, memory, 0, 30)).toBeGreaterThan(0);
  });
});
