import { describe, expect, test } from 'vitest';
import { Arena } from '../../src/store/arena.ts';
import { CollectionTable } from '../../src/store/collection-table.ts';
import { pageHead, pageRowBytes, PageType } from '../../src/store/page.ts';
import { PageError, Pages } from '../../src/store/pages.ts';
import { Random, seeds } from './random.ts';

/** A block that stands for a page. */
function block(arena: Arena): number {
  const ref = arena.alloc(16);
  arena.i32[ref >>> arena.chunkShift][(ref & arena.unitMask) << 2] = pageHead(PageType.Leaf);
  return ref;
}

describe('page table', () => {
  for (const highest of [3, 4, 600, 5000, 700_000]) {
    for (const seed of seeds(2)) {
      test(`numbers up to ${highest} in any order, SEED=${seed}`, () => {
        const random = new Random(seed);
        const arena = new Arena();
        const table = new CollectionTable(arena);
        const slots = [table.open(1), table.open(2)];
        const models = slots.map(() => new Map<number, number>());
        for (let step = 0; step < 3000; step++) {
          const which = random.below(2);
          const number = 1 + random.below(highest);
          if (models[which].has(number)) continue;
          const ref = block(arena);
          table.place(slots[which], number, ref);
          models[which].set(number, ref);
        }
        for (const [which, slot] of slots.entries()) {
          const model = models[which];
          for (const [number, ref] of model) expect(table.find(slot, number)).toBe(ref);
          for (let i = 0; i < 1000; i++) {
            const number = random.below(2 * highest);
            expect(table.find(slot, number)).toBe(model.get(number) ?? 0);
          }
          const seen: number[] = [];
          table.forEachPage(slot, (number, ref) => {
            expect(model.get(number)).toBe(ref);
            seen.push(number);
          });
          expect(seen).toEqual([...model.keys()].sort((a, b) => a - b));
        }
        table.drop(slots[0]);
        table.drop(slots[1]);
        let slices = 0;
        while (table.freeSlice(100)) slices++;
        expect(slices).toBeGreaterThan(highest < 100 ? -1 : 2);
        expect(table.size).toBe(0);
        expect(arena.blockBytes).toBe(0);
      });
    }
  }

  test('ids are not used again, slots are', () => {
    const table = new CollectionTable(new Arena());
    const slot = table.open(1);
    const id = table.id[slot];
    table.drop(slot);
    expect(table.size).toBe(1);
    while (table.freeSlice(10));
    expect(table.open(1)).toBe(slot);
    expect(table.id[slot]).toBe(id + 1);
  });
});

describe('pages', () => {
  test('numbers are used again, the last freed first, and a free page is a header', () => {
    const arena = new Arena();
    const table = new CollectionTable(arena);
    const pages = new Pages(table);
    pages.open(table.open(1), 1, 0);
    const refs = [1, 2, 3, 4].map(() => pages.allocate(PageType.Leaf));
    expect(refs.map((ref) => pages.number(ref))).toEqual([1, 2, 3, 4]);
    pages.free(refs[1]);
    pages.free(refs[3]);
    expect(pages.countFree()).toBe(2);
    expect(arena.sizeOf(pages.ref(2))).toBe(16);
    const head = arena.i32[pages.ref(2) >>> arena.chunkShift][(pages.ref(2) & arena.unitMask) << 2];
    expect(pageRowBytes(head, pages.pageBytes)).toBe(16);
    // What the descriptor keeps is enough to go on.
    const again = new Pages(table);
    again.open(pages.slot, pages.next, pages.freeHead);
    expect([1, 2, 3].map(() => again.number(again.allocate(PageType.Leaf)))).toEqual([4, 2, 5]);
    expect(again.countFree()).toBe(0);
  });

  test('a missing page is an error that names it', () => {
    const table = new CollectionTable(new Arena());
    const pages = new Pages(table);
    pages.open(table.open(1), 9, 0);
    for (const number of [3, 5000, -1]) {
      expect(() => pages.ref(number)).toThrow(PageError);
      expect(() => pages.ref(number)).toThrow(`page ${number} of collection 1 is missing`);
    }
  });
});
