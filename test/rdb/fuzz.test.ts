/**
 * Damaged files: whatever the bytes, the reader reports an RdbError or reads the file; it never throws
 * anything else, goes on for ever, or takes memory that the file does not account for.
 *
 * `npm run fuzz:rdb` runs a million; ARDENT_FUZZ_FILES says how many, SEED repeats or varies a run.
 */
import { describe, expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { RdbError } from '../../src/rdb/error.ts';
import { RdbReader } from '../../src/rdb/reader.ts';
import { RdbWriter } from '../../src/rdb/writer.ts';
import { readPayload } from '../../src/rdb/payload.ts';
import { RdbVisitor } from '../../src/rdb/visitor.ts';
import { Random } from '../store/random.ts';
import { checksum, file, FILES, RECORDS } from './encodings.ts';

const ROUNDS = Number(process.env.ARDENT_FUZZ_FILES ?? 4000);
const SEED = Number(process.env.SEED ?? 1);
/** Memory that reading all those small files may take beyond what there was before. */
const MEMORY_MAX = 400 * 1024 * 1024;

const INTERESTING = [0, 1, 0x3f, 0x40, 0x7f, 0x80, 0x81, 0xc0, 0xc3, 0xf0, 0xf4, 0xfe, 0xff];

function mutate(seed: Buffer, random: Random): Buffer {
  let bytes = Buffer.from(seed);
  for (let changes = 1 + random.below(4); changes > 0; changes--) {
    // The header is left alone most of the time: almost nothing else would be reached.
    const at =
      random.below(10) === 0 ? random.below(bytes.length) : 9 + random.below(Math.max(1, bytes.length - 9));
    switch (random.below(8)) {
      case 0:
        bytes = bytes.subarray(0, at);
        break;
      case 1:
        bytes = Buffer.concat([bytes.subarray(0, at), random.bytes(1 + random.below(8)), bytes.subarray(at)]);
        break;
      case 2:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random.below(8))]);
        break;
      case 3:
        if (at < bytes.length) bytes[at] ^= 1 << random.below(8);
        break;
      case 4:
        if (at + 5 <= bytes.length) bytes.writeInt32LE(random.word(), at);
        break;
      default:
        if (at < bytes.length) bytes[at] = random.pick(INTERESTING);
    }
    if (bytes.length === 0) break;
  }
  // So that what comes after the end mark is reached too.
  if (random.below(4) === 0 && bytes.length > 8) {
    const body = bytes.subarray(0, bytes.length - 8);
    bytes = Buffer.concat([body, checksum(body)]);
  }
  return bytes;
}

describe('damaged files', () => {
  const timeout = 60_000 + ROUNDS * 20;

  test(`${ROUNDS} of seed ${SEED}`, { timeout }, () => {
    const random = new Random(SEED);
    const seeds = [...FILES.values(), file(12, ...Object.values(RECORDS))].map((bytes) => Buffer.from(bytes));
    const before = process.memoryUsage().rss;
    let refused = 0;
    let read = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const bytes = mutate(random.pick(seeds), random);
      const sized = random.below(2) === 0;
      const visitor = random.below(8) > 0 ? new RdbVisitor() : new RdbWriter({ write: () => undefined });
      const reader = new RdbReader(visitor, sized ? { size: bytes.length } : {});
      const piece = random.below(4) === 0 ? 1 + random.below(50) : bytes.length;
      try {
        for (let at = 0; at < bytes.length; at += piece) reader.feed(bytes.subarray(at, at + piece));
        reader.finish();
        read++;
      } catch (error) {
        if (!(error instanceof RdbError)) {
          throw new Error(`round ${round}: ${bytes.toString('base64')}`, { cause: error });
        }
        refused++;
      }
      if (round % 5000 === 0) expect(process.memoryUsage().rss - before).toBeLessThan(MEMORY_MAX);
    }
    expect(refused + read).toBe(ROUNDS);
    expect(refused).toBeGreaterThan(ROUNDS / 2);
    expect(read).toBeGreaterThan(0);
    if (ROUNDS > 100_000) console.log(`${refused} refused, ${read} read`);
  });

  test('payloads', { timeout }, () => {
    const random = new Random(SEED);
    const key = Slice.from('key');
    const values = Object.values(RECORDS).filter((record) => record[0] < 26);
    for (let round = 0; round < ROUNDS / 4; round++) {
      const bytes = mutate(Buffer.concat([random.pick(values), Buffer.alloc(10)]), random);
      if (bytes.length < 11) continue;
      try {
        readPayload(Slice.from(bytes), key, new RdbVisitor());
      } catch (error) {
        if (!(error instanceof RdbError)) {
          throw new Error(`round ${round}: ${bytes.toString('base64')}`, { cause: error });
        }
      }
    }
  });
});
