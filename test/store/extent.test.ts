import { describe, expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { Arena, PAGE_BYTES } from '../../src/store/arena.ts';
import { CollectionTable } from '../../src/store/collection-table.ts';
import { Pages } from '../../src/store/pages.ts';
import { TreeCheck } from '../../src/store/tree-check.ts';
import { ExtentTree } from '../../src/store/tree-extent.ts';
import { INLINE_STRING_MAX, StringHandle } from '../../src/store/string-value.ts';
import { Type } from '../../src/store/api.ts';
import { Random, seeds } from './random.ts';
import { ValueBench } from './value-bench.ts';

describe('extent tree', () => {
  for (const pageBytes of [256, PAGE_BYTES]) {
    for (const seed of seeds(2)) {
      test(`equals a buffer: pages of ${pageBytes}, SEED=${seed}`, () => {
        const random = new Random(seed);
        const table = new CollectionTable(new Arena());
        const pages = new Pages(table, pageBytes);
        pages.open(table.open(1), 1, 0);
        const tree = new ExtentTree(pages);
        tree.create();
        let model = Buffer.alloc(0);
        const some = () => Buffer.from(Array.from({ length: random.below(900) }, () => random.below(256)));
        for (let step = 0; step < 400; step++) {
          const bytes = some();
          switch (random.below(3)) {
            case 0:
              tree.append(bytes, 0, bytes.length);
              model = Buffer.concat([model, bytes]);
              break;
            case 1:
              tree.appendZeros(bytes.length);
              model = Buffer.concat([model, Buffer.alloc(bytes.length)]);
              break;
            default: {
              const part = bytes.subarray(0, model.length);
              const offset = random.below(model.length - part.length + 1);
              tree.overwrite(offset, part, 0, part.length);
              part.copy(model, offset);
            }
          }
          expect(tree.count).toBe(model.length);
          if (model.length === 0) continue;
          const start = random.below(model.length);
          const end = start + random.below(model.length - start + 1);
          const copy = Buffer.alloc(end - start);
          tree.read(start, end, copy, 0);
          expect(copy.equals(model.subarray(start, end))).toBe(true);
          let at = start;
          tree.forEachRun(start, end, new Slice(), (run) => {
            expect(run.toBuffer().equals(model.subarray(at, at + run.length))).toBe(true);
            at += run.length;
          });
          expect(at).toBe(end);
          expect(tree.byteAt(start)).toBe(model[start]);
        }
        const check = new TreeCheck(pages);
        expect(check.positional(tree, (ref) => tree.checkLeaf(ref))).toBe(null);
        expect(check.finish()).toBe(null);
        // All leaves but the last are full.
        expect(pages.next).toBeLessThan((model.length / tree.capacity) * 1.1 + 3);
      });
    }
  }
});

describe('string', () => {
  for (const seed of seeds(2)) {
    test(`grows from the record into extents: equals a buffer, SEED=${seed}`, () => {
      const random = new Random(seed);
      const bench = new ValueBench();
      const string = new StringHandle(bench.ground);
      let model = Buffer.alloc(0);
      for (let step = 0; step < 300; step++) {
        const bytes = Buffer.from(Array.from({ length: 1 + random.below(300) }, () => random.below(256)));
        const offset =
          random.below(4) === 0 ? model.length + random.below(500) : random.below(model.length + 1);
        const end = Math.max(model.length, offset + bytes.length);
        model = Buffer.concat([model, Buffer.alloc(end - model.length)]);
        bytes.copy(model, offset);
        bench.open(string, Type.String).write(offset, Slice.from(bytes));
        bench.open(string, Type.String);
        expect(string.length).toBe(model.length);
        expect(string.value.isTree).toBe(model.length > INLINE_STRING_MAX);
        expect(string.check()).toBe(null);
        expect(string.byteAt(offset)).toBe(bytes[0]);
        if (step % 10 !== 0) continue;
        const all = new Slice();
        string.whole(all);
        expect(all.toBuffer().equals(model)).toBe(true);
      }
      expect(string.value.isTree).toBe(true);
    });
  }

  test('the expiry index of a keyspace can be checked', () => {
    const { keyspace } = new ValueBench();
    expect(keyspace.expiry.check()).toBe(null);
    for (let i = 0; i < 5000; i++) keyspace.expiry.add(1e12 + ((i * 7919) % 5000), i);
    expect(keyspace.expiry.first()).toBe(1e12);
    for (let i = 0; i < 4000; i++) keyspace.expiry.remove(1e12 + ((i * 7919) % 5000), i);
    expect(keyspace.expiry.check()).toBe(null);
  });
});
