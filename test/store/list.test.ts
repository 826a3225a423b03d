import { describe, expect, test } from 'vitest';
import { ByteSink } from '../../src/bytes/sink.ts';
import { Slice } from '../../src/bytes/slice.ts';
import { Type } from '../../src/store/api.ts';
import { ListHandle } from '../../src/store/list.ts';
import { Random, seeds } from './random.ts';
import { ValueBench } from './value-bench.ts';

describe('list', () => {
  for (const longest of [20, 6000]) {
    for (const seed of seeds(3)) {
      test(`equals an array: elements up to ${longest}, SEED=${seed}`, () => {
        const bench = new ValueBench();
        const list = new ListHandle(bench.ground);
        const random = new Random(seed);
        let model: string[] = [];
        const into = new Slice();
        for (let step = 0; step < 4000; step++) {
          const growing = step % 1000 < 600;
          const text = `${step} `.padEnd(random.below(random.below(10) === 0 ? longest : 20), 'e');
          const element = Slice.from(text);
          bench.open(list, Type.List);
          const length = model.length;
          const dice = random.below(growing ? 7 : 11);
          if (dice < 2) {
            list.pushLeft(element);
            model.unshift(text);
          } else if (dice < 4) {
            list.pushRight(element);
            model.push(text);
          } else if (dice === 4) {
            const index = random.below(length + 1);
            list.insert(index, element);
            model.splice(index, 0, text);
          } else if (dice === 5) {
            const index = random.below(length + 1);
            list.set(index, element);
            if (index < length) model[index] = text;
          } else if (dice < 10) {
            const index = random.below(length + 1);
            const count = random.below(random.below(10) === 0 ? 30 : 2);
            list.remove(index, count);
            model.splice(index, count);
          } else if (random.below(50) === 0) {
            list.remove(0, length);
            model = [];
          }
          bench.open(list, Type.List);
          expect(list.length).toBe(model.length);
          const index = random.below(model.length + 1);
          expect(list.at(index, into)).toBe(index < model.length);
          if (index < model.length) expect(into.latin1()).toBe(model[index]);
          if (step % 50 !== 0) continue;
          expect(list.check()).toBe(null);
          const out = new ByteSink(16);
          list.copyFramed(index, 20, out);
          const expected = model.slice(index, index + 20).map((e) => `$${e.length}\r\n${e}\r\n`);
          expect(out.written().latin1Slice()).toBe(expected.join(''));
          for (const step of [1, -1] as const) {
            const seen: string[] = [];
            list.forEachFrom(index, step, (each, at) => {
              expect(at).toBe(index + step * seen.length);
              seen.push(each.latin1());
              return seen.length < 50;
            });
            const all = step === 1 ? model.slice(index) : model.slice(0, index + 1).reverse();
            expect(seen).toEqual(index < model.length ? all.slice(0, 50) : []);
          }
        }
        bench.open(list, Type.List).remove(0, model.length);
        expect(bench.keyspace.size).toBe(0);
        bench.settle();
        expect(bench.arena.classes().find((c) => c.bytes === 1984)?.blocks).toBe(0);
      });
    }
  }
});
