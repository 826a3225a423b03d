/** Commands that fill a server with values of every type and size, with deadlines, in several databases. */
import { Random } from '../store/random.ts';
import type { CommandLine } from './harness.ts';

function bytes(random: Random, length: number): Buffer {
  // Half of it repeats, so that compression has something to find.
  return random.below(2) === 0
    ? random.bytes(length)
    : Buffer.from('abcabcab'.repeat(Math.ceil(length / 8)).slice(0, length));
}

/** Lengths of elements that meet every way of storing them. */
const LENGTHS = [0, 1, 5, 20, 63, 64, 65, 200, 700, 2100, 20_000];

function elements(random: Random, count: number, longest: number): Buffer[] {
  return Array.from({ length: count }, (_, i) => {
    if (random.below(3) === 0) return Buffer.from(String(random.word() % 1000));
    const length = Math.min(longest, random.pick(LENGTHS));
    return Buffer.concat([Buffer.from(`${i}:`), bytes(random, length)]);
  });
}

const SCORES = ['0', '1', '-1.5', '3.0000000001', 'inf', '-inf', '1e300', '17', '-99999999999'];

/** @param scale elements of the largest collections */
export function* dumpData(random: Random, keys: number, scale: number): Generator<CommandLine> {
  let database = 0;
  for (let i = 0; i < keys; i++) {
    if (random.below(10) === 0) {
      database = random.pick([0, 0, 1, 9]);
      yield ['SELECT', database];
    }
    const name = random.below(20) === 0 ? bytes(random, 1 + random.below(2000)) : Buffer.from(`key:${i}`);
    const key = Buffer.concat([Buffer.from(`${i}`), name]);
    const count = random.below(8) === 0 ? 1 + random.below(scale) : 1 + random.below(20);
    const longest = count > 200 ? 200 : 20_000;
    switch (random.below(7)) {
      case 0:
        yield ['SET', key, bytes(random, random.pick([...LENGTHS, 16_384, 16_385, 300_000]))];
        break;
      case 1:
        yield ['SET', key, String(random.word())];
        break;
      case 2:
        yield ['RPUSH', key, ...elements(random, count, longest)];
        break;
      case 3:
        if (random.below(3) > 0) yield ['SADD', key, ...elements(random, count, longest)];
        else yield ['SADD', key, ...Array.from({ length: count }, () => random.word())];
        break;
      case 4:
        yield [
          'HSET',
          key,
          ...elements(random, count, longest).flatMap((field) => [field, bytes(random, 9)]),
        ];
        break;
      case 5:
        yield [
          'ZADD',
          key,
          ...elements(random, count, longest).flatMap((member) => [random.pick(SCORES), member]),
        ];
        break;
      case 6:
        yield* stream(random, key, count, longest);
        break;
    }
    if (random.below(5) === 0) yield ['PEXPIREAT', key, 4_000_000_000_000 + random.below(1e9)];
  }
}

/** A stream with gaps, groups and pending entries; times are given, so that they are alike everywhere. */
function* stream(random: Random, key: Buffer, count: number, longest: number): Generator<CommandLine> {
  const id = (i: number): string => `${1_000_000 + (i >> 2)}-${i & 3}`;
  const fields = elements(random, random.pick([1, 2, 5]), longest);
  for (let i = 1; i <= count; i++) {
    const values = fields.flatMap((field) => [field, bytes(random, random.below(40))]);
    yield ['XADD', key, id(i), ...values];
  }
  if (random.below(2) === 0) yield ['XDEL', key, id(1), id(1 + (count >> 1))];
  if (random.below(3) === 0) yield ['XTRIM', key, 'MAXLEN', Math.ceil(count / 2)];
  for (let group = random.below(3); group > 0; group--) {
    yield ['XGROUP', 'CREATE', key, `group ${group}`, id(random.below(count)), 'ENTRIESREAD', group];
    for (let i = 1; i <= count; i += 1 + random.below(3)) {
      const consumer = random.pick(['alice', 'bob', '']);
      yield [
        'XCLAIM',
        key,
        `group ${group}`,
        consumer,
        0,
        id(i),
        'TIME',
        1000 + i,
        'RETRYCOUNT',
        i,
        'FORCE',
        'JUSTID',
      ];
    }
    yield ['XGROUP', 'CREATECONSUMER', key, `group ${group}`, 'idler'];
  }
}
