import { describe, expect, test } from 'vitest';
import { ByteSink } from '../../src/bytes/sink.ts';
import { Slice } from '../../src/bytes/slice.ts';
import { Arena, PAGE_BYTES } from '../../src/store/arena.ts';
import { CollectionTable } from '../../src/store/collection-table.ts';
import { Pages } from '../../src/store/pages.ts';
import { TreeCheck } from '../../src/store/tree-check.ts';
import { ListTree } from '../../src/store/tree-list.ts';
import { Random, seeds } from './random.ts';

interface Sizes {
  pageBytes: number;
  usual: number;
  rare: number;
}

const SIZES: Sizes[] = [
  { pageBytes: 256, usual: 12, rare: 60 },
  { pageBytes: 256, usual: 200, rare: 2000 },
  { pageBytes: 512, usual: 300, rare: 600 },
  { pageBytes: PAGE_BYTES, usual: 8, rare: 3000 },
  { pageBytes: PAGE_BYTES, usual: 1900, rare: 20_000 },
];

function setUp(pageBytes: number) {
  const arena = new Arena();
  const table = new CollectionTable(arena);
  const pages = new Pages(table, pageBytes);
  const slot = table.open(1);
  pages.open(slot, 1, 0);
  const tree = new ListTree(pages);
  tree.create();
  return { arena, table, pages, slot, tree };
}

function framed(elements: Buffer[]): Buffer {
  return Buffer.concat(elements.flatMap((e) => [Buffer.from(`$${e.length}\r\n`), e, Buffer.from('\r\n')]));
}

describe('list tree', () => {
  for (const sizes of SIZES) {
    for (const seed of seeds(2)) {
      test(`equals an array: ${JSON.stringify(sizes)} SEED=${seed}`, () => {
        const random = new Random(seed);
        const { arena, table, pages, slot, tree } = setUp(sizes.pageBytes);
        const model: Buffer[] = [];
        let serial = 0;
        const element = () => {
          const length = random.below(random.below(10) === 0 ? sizes.rare : sizes.usual);
          return Buffer.alloc(length, `${serial++}-`);
        };
        const check = () => {
          const check = new TreeCheck(pages);
          const leaf = (ref: number) => tree.checkLeaf(ref, (first, length) => check.chain(first, length));
          expect(check.positional(tree, leaf)).toBe(null);
          expect(check.finish()).toBe(null);
          expect(tree.count).toBe(model.length);
        };
        const into = new Slice();
        /** The element that was read last: it is often removed, and its place read again. */
        let shown = 0;
        for (let step = 0; step < 3000; step++) {
          const growing = step % 1500 < 1000;
          const dice = random.below(growing ? 12 : 20);
          const length = model.length;
          if (dice < 9) {
            const index = dice < 3 ? 0 : dice < 6 ? length : random.below(length + 1);
            const added = element();
            tree.insert(index, Slice.from(added));
            model.splice(index, 0, added);
          } else if (dice === 9 && length > 0) {
            const index = random.below(length);
            const changed = random.below(2) === 0 ? element() : Buffer.alloc(model[index].length, 'x');
            tree.replace(index, Slice.from(changed));
            model[index] = changed;
          } else if (length > 0) {
            const count = random.below(8) === 0 ? random.below(40) : 1;
            const place = dice < 17 ? shown : random.below(length);
            const index = dice < 12 ? 0 : dice < 14 ? length - 1 : Math.min(place, length - 1);
            tree.removeRange(index, count);
            model.splice(index, count);
          }
          if (model.length > 0) {
            if (random.below(3) > 0) shown = random.below(model.length);
            else shown = Math.min(shown, model.length - 1);
            expect(tree.select(shown)).toBe(true);
            tree.element(into);
            expect(into.toBuffer().equals(model[shown])).toBe(true);
          }
          if (step % 100 === 0) {
            check();
            const index = random.below(model.length + 1);
            const count = Math.min(random.below(300), model.length - index);
            const out = new ByteSink(64);
            if (count > 0) tree.copyFramed(index, count, out);
            expect(out.written().equals(framed(model.slice(index, index + count)))).toBe(true);
            const seen: Buffer[] = [];
            const visit = (each: Slice, at: number) => {
              expect(each.toBuffer().equals(model[at])).toBe(true);
              seen.push(each.toBuffer());
              return seen.length < 200;
            };
            tree.forEachFrom(index, 1, into, visit);
            expect(seen.length).toBe(Math.min(200, model.length - index));
            seen.length = 0;
            tree.forEachFrom(index, -1, into, visit);
            expect(seen.length).toBe(index < model.length ? Math.min(200, index + 1) : 0);
          }
        }
        check();
        while (model.length > 0) {
          const index = random.below(model.length);
          tree.removeRange(index, 5);
          model.splice(index, 5);
        }
        check();
        expect(pages.next - 1 - pages.countFree()).toBe(1);
        table.drop(slot);
        while (table.freeSlice(7));
        expect(arena.blockBytes).toBe(0);
      });
    }
  }

  for (const end of ['left', 'right']) {
    test(`pushes at the ${end} fill pages`, () => {
      const { pages, tree } = setUp(PAGE_BYTES);
      const element = Slice.from('abcdefghij');
      for (let i = 0; i < 30_000; i++) tree.insert(end === 'left' ? 0 : i, element);
      // 10 bytes and their frame, 17.
      expect((pages.next * PAGE_BYTES) / (30_000 * 17)).toBeLessThan(1.05);
    });
  }
});
