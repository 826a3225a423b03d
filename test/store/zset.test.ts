import { describe, expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { Type } from '../../src/store/api.ts';
import { ZSetHandle } from '../../src/store/zset.ts';
import { joinScore, scoreWords, splitScore } from '../../src/store/score.ts';
import { Random, seeds } from './random.ts';
import { ValueBench } from './value-bench.ts';

interface Scored {
  member: string;
  score: number;
}

function order(a: Scored, b: Scored): number {
  if (a.score !== b.score) return a.score < b.score ? -1 : 1;
  return a.member < b.member ? -1 : a.member > b.member ? 1 : 0;
}

const SCORES = [-Infinity, -1e300, -5.5, -5, -1e-300, 0, 1e-300, 1, 2, 3.5, 1e300, Infinity];

describe('zset', () => {
  test('words of scores have the order of the scores', () => {
    let last: { high: number; low: number } | null = null;
    for (const score of SCORES) {
      splitScore(score);
      const { high, low } = scoreWords;
      expect(joinScore(high, low)).toBe(score);
      if (last !== null) expect(high - last.high || low - last.low).toBeGreaterThan(0);
      last = { high, low };
    }
    splitScore(-0);
    expect(joinScore(scoreWords.high, scoreWords.low)).toBe(0);
  });

  for (const names of [60, 900]) {
    for (const longest of [15, 2000]) {
      for (const seed of seeds(2)) {
        test(`equals a sorted array: ${names} names up to ${longest}, SEED=${seed}`, () => {
          const bench = new ValueBench();
          const zset = new ZSetHandle(bench.ground);
          const open = () => bench.open(zset, Type.ZSet);
          const random = new Random(seed);
          const scores = new Map<string, number>();
          const sorted = () => [...scores].map(([member, score]) => ({ member, score })).sort(order);
          const name = () => {
            const n = random.below(names);
            return `${n}`.padEnd(n % 9 === 0 ? (n * 7919) % longest : 1, 'n');
          };
          const score = () => (random.below(4) === 0 ? random.pick(SCORES) : random.below(50) / 2);
          const into = new Slice();
          for (let step = 0; step < 4000; step++) {
            const growing = step % 2000 < 1200;
            const member = name();
            const slice = Slice.from(member);
            open();
            const dice = random.below(growing ? 6 : 10);
            if (dice < 4) {
              const value = score();
              expect(zset.set(slice, value)).toBe(!scores.has(member));
              scores.set(member, value);
            } else if (dice === 4) {
              expect(zset.score(slice)).toBe(scores.get(member));
            } else if (dice < 8) {
              expect(zset.remove(slice)).toBe(scores.delete(member));
            } else if (random.below(10) === 0) {
              const rank = random.below(zset.size + 1);
              // Few and many of all are removed in different ways.
              const count = random.below(2) === 0 ? 10 : random.below(zset.size + 1);
              const gone = sorted().slice(rank, rank + count);
              zset.removeRange(rank, count);
              for (const each of gone) scores.delete(each.member);
            }
            open();
            expect(zset.size).toBe(scores.size);
            if (step % 40 !== 0) continue;
            expect(zset.check()).toBe(null);
            const model = sorted();
            expect(zset.rank(Slice.from(member))).toBe(model.findIndex((each) => each.member === member));
            const bound = score();
            for (const inclusive of [false, true]) {
              const below = model.filter((each) => (inclusive ? each.score <= bound : each.score < bound));
              expect(zset.countBelow(bound, inclusive)).toBe(below.length);
            }
            const rank = random.below(model.length + 1);
            expect(zset.at(rank, into)).toBe(rank < model.length ? model[rank].score : NaN);
            if (rank < model.length) expect(into.latin1()).toBe(model[rank].member);
            for (const step of [1, -1] as const) {
              const seen: Scored[] = [];
              zset.forEachFrom(rank, step, (each, value) => {
                seen.push({ member: each.latin1(), score: value });
                return seen.length < 300;
              });
              const all = step === 1 ? model.slice(rank) : model.slice(0, rank + 1).reverse();
              expect(seen).toEqual(rank < model.length ? all.slice(0, 300) : []);
            }
            const scanned: Scored[] = [];
            let cursor = 0;
            do
              cursor = zset.scan(cursor, 9, (each, _, at) =>
                scanned.push({ member: each.latin1(), score: at }),
              );
            while (cursor !== 0);
            expect(scanned.sort(order)).toEqual(model);
          }
          open().removeRange(0, scores.size);
          expect(bench.keyspace.size).toBe(0);
          bench.settle();
          expect(bench.arena.classes().find((c) => c.bytes === 1984)?.blocks).toBe(0);
        });
      }
    }
  }

  for (const size of [20, 3000]) {
    test(`counts below a member among ${size} of one score`, () => {
      const bench = new ValueBench();
      const zset = bench.open(new ZSetHandle(bench.ground), Type.ZSet);
      const names = Array.from({ length: size }, (_, i) => `${(i * 7919) % size}`);
      for (const name of names) zset.set(Slice.from(name), 7);
      names.sort();
      for (const bound of ['', '0', '17', '17x', '5', '999999']) {
        expect(zset.countBelowLex(Slice.from(bound), false)).toBe(names.filter((n) => n < bound).length);
        expect(zset.countBelowLex(Slice.from(bound), true)).toBe(names.filter((n) => n <= bound).length);
      }
    });
  }
});
