import { describe, expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { Type } from '../../src/store/api.ts';
import { HashHandle } from '../../src/store/hash-value.ts';
import { Random, seeds } from './random.ts';
import { ValueBench } from './value-bench.ts';

describe('hash', () => {
  for (const longest of [30, 2500]) {
    for (const seed of seeds(3)) {
      test(`equals a Map: values up to ${longest}, SEED=${seed}`, () => {
        const bench = new ValueBench();
        const hash = new HashHandle(bench.ground);
        const random = new Random(seed);
        const model = new Map<string, string>();
        const field = new Slice();
        const value = new Slice();
        for (let step = 0; step < 5000; step++) {
          const growing = step % 2500 < 1500;
          const name = `field ${random.below(step < 500 ? 30 : 600)}`;
          bench.open(hash, Type.Hash);
          const dice = random.below(growing ? 6 : 10);
          if (dice < 4) {
            const text = `${step} `.padEnd(random.below(random.below(10) === 0 ? longest : 30), 'v');
            expect(hash.set(Slice.from(name), Slice.from(text))).toBe(!model.has(name));
            model.set(name, text);
          } else if (dice === 4) {
            expect(hash.get(Slice.from(name), value)).toBe(model.has(name));
            if (model.has(name)) expect(value.latin1()).toBe(model.get(name));
          } else if (dice < 8) {
            expect(hash.remove(Slice.from(name))).toBe(model.delete(name));
          } else {
            const rank = random.below(hash.size + 1);
            expect(hash.at(rank, field, value)).toBe(rank < model.size);
            if (rank < model.size) expect(model.get(field.latin1())).toBe(value.latin1());
          }
          bench.open(hash, Type.Hash);
          expect(hash.size).toBe(model.size);
          if (step % 100 !== 0) continue;
          expect(hash.check()).toBe(null);
          const seen = new Map<string, string>();
          hash.forEachFrom(0, (f, v) => {
            seen.set(f.latin1(), v.latin1());
            return true;
          });
          expect(seen).toEqual(model);
          const scanned = new Map<string, string>();
          let cursor = 0;
          do cursor = hash.scan(cursor, 7, (f, v) => scanned.set(f.latin1(), (v as Slice).latin1()));
          while (cursor !== 0);
          expect(scanned).toEqual(model);
        }
        for (const name of model.keys()) {
          expect(bench.open(hash, Type.Hash).remove(Slice.from(name))).toBe(true);
        }
        expect(bench.keyspace.size).toBe(0);
        bench.settle();
        expect(bench.arena.classes().find((c) => c.bytes === 1984)?.blocks).toBe(0);
      });
    }
  }
});
