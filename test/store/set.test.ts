import { describe, expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { Type } from '../../src/store/api.ts';
import { Hasher } from '../../src/store/hash.ts';
import { SetHandle } from '../../src/store/set.ts';
import { Random, seeds } from './random.ts';
import { ValueBench } from './value-bench.ts';

/** Every member has one of a few hashes. */
class PoorHasher extends Hasher {
  private readonly values: number;

  constructor(values: number) {
    super(1, 2);
    this.values = values;
  }

  override hash32(slice: Slice): number {
    return super.hash32(slice) % this.values;
  }
}

function members(set: SetHandle): string[] {
  const seen: string[] = [];
  set.forEachFrom(0, (member) => {
    seen.push(member.latin1());
    return true;
  });
  return seen;
}

function scanAll(set: SetHandle, between: () => void): Set<string> {
  const seen = new Set<string>();
  let cursor = 0;
  do {
    cursor = set.scan(cursor, 10, (member) => seen.add(member.latin1()));
    between();
  } while (cursor !== 0);
  return seen;
}

describe('set', () => {
  for (const [hashes, longest] of [
    [2 ** 31, 20],
    [5, 20],
    [2 ** 31, 3000],
  ]) {
    for (const seed of seeds(2)) {
      test(`equals a Set: ${hashes} hashes, members up to ${longest}, SEED=${seed}`, () => {
        const bench = new ValueBench(new PoorHasher(hashes));
        const set = new SetHandle(bench.ground);
        const open = () => bench.open(set, Type.Set);
        const random = new Random(seed);
        const model = new Set<string>();
        const some = () => {
          const n = random.below(1500);
          return `m${n}`.padEnd(n % 10 === 0 ? random.below(longest) : 1, '.');
        };
        const into = new Slice();
        for (let step = 0; step < 6000; step++) {
          const member = random.below(3) === 0 && model.size > 0 ? [...model][0] : some();
          const slice = Slice.from(member);
          open();
          const growing = step % 3000 < 1500;
          switch (random.below(growing ? 5 : 10)) {
            case 0:
            case 1:
            case 2:
              expect(set.add(slice)).toBe(!model.has(member));
              model.add(member);
              break;
            case 3:
              expect(set.has(slice)).toBe(model.has(member));
              break;
            case 4:
              expect(set.remove(slice)).toBe(model.delete(member));
              break;
            default: {
              const rank = random.below(set.size + 1);
              expect(set.at(rank, into)).toBe(rank < model.size);
              if (rank === model.size) break;
              expect(model.delete(into.latin1())).toBe(true);
              set.removeAt(rank);
            }
          }
          open();
          expect(set.size).toBe(model.size);
          if (step % 200 === 0) {
            expect(set.check()).toBe(null);
            expect(members(set).sort()).toEqual([...model].sort());
          }
        }
        for (const member of model) expect(open().remove(Slice.from(member))).toBe(true);
        expect(bench.keyspace.size).toBe(0);
        bench.settle();
        expect(bench.arena.classes().find((c) => c.bytes === 1984)?.blocks).toBe(0);
      });
    }
  }

  test('a scan meets what is there all the time, whatever else comes and goes', () => {
    const bench = new ValueBench();
    const set = bench.open(new SetHandle(bench.ground), Type.Set);
    const stays = Array.from({ length: 2000 }, (_, i) => `stays ${i}`);
    for (const member of stays) set.add(Slice.from(member));
    let serial = 0;
    const seen = scanAll(set, () => {
      for (let i = 0; i < 30; i++) set.add(Slice.from(`comes ${serial++}`));
      for (let i = 0; i < 20; i++) set.remove(Slice.from(`comes ${serial - 1 - i}`));
    });
    for (const member of stays) expect(seen.has(member)).toBe(true);
  });

  test('ten thousand members of one hash stay usable', () => {
    const bench = new ValueBench(new PoorHasher(1));
    const set = bench.open(new SetHandle(bench.ground), Type.Set);
    for (let i = 0; i < 10_000; i++) expect(set.add(Slice.from(`member ${i}`))).toBe(true);
    for (let i = 0; i < 10_000; i++) expect(set.has(Slice.from(`member ${i}`))).toBe(true);
    expect(scanAll(set, () => {}).size).toBe(10_000);
    for (let i = 0; i < 10_000; i++) expect(set.remove(Slice.from(`member ${i}`))).toBe(true);
    expect(bench.keyspace.size).toBe(0);
  });

  test('a member of 5 MB', () => {
    const bench = new ValueBench();
    const set = bench.open(new SetHandle(bench.ground), Type.Set);
    const large = Buffer.alloc(5_000_000, 'abcdefg');
    expect(set.add(Slice.from(large))).toBe(true);
    expect(set.add(Slice.from('small'))).toBe(true);
    expect(set.add(Slice.from(large))).toBe(false);
    const longer = Slice.from(Buffer.concat([large, Buffer.from('.')]));
    expect(set.has(longer)).toBe(false);
    const sizes: number[] = [];
    set.forEachFrom(0, (member) => {
      sizes.push(member.length);
      if (member.length > 5) expect(member.toBuffer().equals(large)).toBe(true);
      return true;
    });
    expect(sizes.sort()).toEqual([5, 5_000_000]);
    expect(set.remove(Slice.from(large))).toBe(true);
    expect(set.check()).toBe(null);
  });
});
