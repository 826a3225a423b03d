import { describe, expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { OutOfTierError, Type } from '../../src/store/api.ts';
import { HashHandle } from '../../src/store/hash-value.ts';
import { ListHandle } from '../../src/store/list.ts';
import { ZSetHandle } from '../../src/store/zset.ts';
import { Random, seeds } from './random.ts';
import { ValueBench } from './value-bench.ts';

/** False when the tier was full. */
function attempt(change: () => void): boolean {
  try {
    change();
    return true;
  } catch (error) {
    if (error instanceof OutOfTierError) return false;
    throw error;
  }
}

describe('in a full tier a change is made wholly or not at all', () => {
  for (const seed of seeds(3)) {
    test(`SEED=${seed}`, () => {
      const random = new Random(seed);
      const bench = new ValueBench();
      const zset = new ZSetHandle(bench.ground);
      const hash = new HashHandle(bench.ground);
      const list = new ListHandle(bench.ground);
      const scores = new Map<string, number>();
      const fields = new Map<string, string>();
      const elements: string[] = [];
      let refused = 0;
      for (let step = 0; step < 6000; step++) {
        // The limit wanders around what is in use.
        if (step % 20 === 0) bench.arena.limit = bench.arena.slabBytes + random.below(20) * 64 * 1024;
        const name = `name ${random.below(400)}`;
        const text = `${step}`.padEnd(random.below(random.below(5) === 0 ? 8000 : 40), 't');
        const part = Slice.from(name.padEnd(random.below(8) === 0 ? 900 : 1, '.'));
        let done = true;
        switch (random.below(4)) {
          case 0: {
            const score = random.below(1000);
            bench.open(zset, Type.ZSet, 'zset');
            done = attempt(() => zset.set(part, score));
            if (done) scores.set(part.latin1(), score);
            break;
          }
          case 1:
            bench.open(hash, Type.Hash, 'hash');
            done = attempt(() => hash.set(part, Slice.from(text)));
            if (done) fields.set(part.latin1(), text);
            break;
          case 2: {
            bench.open(list, Type.List, 'list');
            const index = random.below(elements.length + 1);
            done = attempt(() => list.insert(index, Slice.from(text)));
            if (done) elements.splice(index, 0, text);
            break;
          }
          default:
            bench.open(list, Type.List, 'list');
            if (elements.length === 0) break;
            done = attempt(() => list.set(elements.length - 1, Slice.from(text)));
            if (done) elements[elements.length - 1] = text;
        }
        if (!done) refused++;
        if (done && step % 100 !== 0) continue;
        bench.open(zset, Type.ZSet, 'zset');
        bench.open(hash, Type.Hash, 'hash');
        bench.open(list, Type.List, 'list');
        expect([zset.size, hash.size, list.length]).toEqual([scores.size, fields.size, elements.length]);
        if (step % 10 !== 0) continue;
        expect([zset.check(), hash.check(), list.check()]).toEqual([null, null, null]);
      }
      expect(refused).toBeGreaterThan(50);
      for (const [member, score] of scores) expect(zset.score(Slice.from(member))).toBe(score);
      const into = new Slice();
      for (const [field, value] of fields) {
        expect(hash.get(Slice.from(field), into)).toBe(true);
        expect(into.latin1()).toBe(value);
      }
    });
  }
});
