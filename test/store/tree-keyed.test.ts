import { describe, expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { Arena, PAGE_BYTES } from '../../src/store/arena.ts';
import { CollectionTable } from '../../src/store/collection-table.ts';
import { Pages } from '../../src/store/pages.ts';
import { TreeCheck } from '../../src/store/tree-check.ts';
import { KeyedTree } from '../../src/store/tree-keyed.ts';
import { Random, seeds } from './random.ts';

interface Entry {
  word0: number;
  word1: number;
  key: Buffer;
  value: Buffer;
}

function order(a: Entry, b: Entry): number {
  return a.word0 - b.word0 || a.word1 - b.word1 || Buffer.compare(a.key, b.key);
}

interface Shape {
  pageBytes: number;
  keyWords: 1 | 2;
  /** How many values a word takes; few make keys with equal words. */
  words: number;
  /** Bytes that keys have in common, so that separators get long. */
  prefix: number;
  /** Longest key and value, usually and now and then. */
  usual: number;
  rare: number;
}

const SHAPES: Shape[] = [
  { pageBytes: 256, keyWords: 1, words: 1e9, prefix: 0, usual: 16, rare: 40 },
  { pageBytes: 256, keyWords: 1, words: 3, prefix: 10, usual: 30, rare: 3000 },
  { pageBytes: 256, keyWords: 2, words: 2, prefix: 60, usual: 30, rare: 1000 },
  { pageBytes: 512, keyWords: 2, words: 5, prefix: 0, usual: 20, rare: 5000 },
  { pageBytes: PAGE_BYTES, keyWords: 1, words: 1e9, prefix: 0, usual: 20, rare: 700 },
  { pageBytes: PAGE_BYTES, keyWords: 2, words: 4, prefix: 0, usual: 325, rare: 700 },
  { pageBytes: PAGE_BYTES, keyWords: 2, words: 50, prefix: 700, usual: 20, rare: 10_000 },
];

function randomEntry(random: Random, shape: Shape): Entry {
  const size = () => random.below(random.below(20) === 0 ? shape.rare : shape.usual);
  const word = () => random.below(shape.words) - (shape.words >> 1);
  const bytes = (length: number) => Buffer.from(Array.from({ length }, () => 97 + random.below(3)));
  return {
    word0: word(),
    word1: shape.keyWords > 1 ? word() : 0,
    key: Buffer.concat([Buffer.alloc(random.below(4) === 0 ? 0 : shape.prefix, 'p'), bytes(size())]),
    value: bytes(size()),
  };
}

/** A tree with the sorted array that it must equal. */
class Pair {
  readonly arena = new Arena();
  readonly pages: Pages;
  readonly tree: KeyedTree;
  readonly model: Entry[] = [];
  readonly slot: number;

  constructor(shape: Shape) {
    const table = new CollectionTable(this.arena);
    this.pages = new Pages(table, shape.pageBytes);
    this.slot = table.open(1);
    this.pages.open(this.slot, 1, 0);
    this.tree = new KeyedTree(this.pages, shape.keyWords);
    this.tree.create();
  }

  /** Where the model has the entry or would have it. */
  place(entry: Entry): { at: number; found: boolean } {
    let from = 0;
    let end = this.model.length;
    while (from < end) {
      const middle = (from + end) >>> 1;
      if (order(this.model[middle], entry) < 0) from = middle + 1;
      else end = middle;
    }
    return { at: from, found: from < this.model.length && order(this.model[from], entry) === 0 };
  }

  find(entry: Entry): boolean {
    return this.tree.find(entry.word0, entry.word1, Slice.from(entry.key));
  }

  set(entry: Entry): void {
    const { at, found } = this.place(entry);
    expect(this.find(entry)).toBe(found);
    const key = Slice.from(entry.key);
    const value = Slice.from(entry.value);
    if (found) this.tree.replaceValue(key, value);
    else this.tree.insert(entry.word0, entry.word1, key, value);
    this.model.splice(at, found ? 1 : 0, entry);
  }

  remove(entry: Entry): void {
    const { at, found } = this.place(entry);
    expect(this.find(entry)).toBe(found);
    if (!found) return;
    expect(this.tree.rank()).toBe(at);
    this.tree.remove();
    this.model.splice(at, 1);
  }

  verifyAt(rank: number): void {
    const key = new Slice();
    const value = new Slice();
    expect(this.tree.select(rank)).toBe(true);
    expect(this.tree.rank()).toBe(rank);
    this.tree.entry(key, value);
    expect(key.toBuffer().equals(this.model[rank].key)).toBe(true);
    expect(value.toBuffer().equals(this.model[rank].value)).toBe(true);
    expect(this.tree.wordAt(0)).toBe(this.model[rank].word0);
  }

  verify(): void {
    const check = new TreeCheck(this.pages);
    expect(check.keyed(this.tree)).toBe(null);
    expect(check.finish()).toBe(null);
    expect(this.tree.count).toBe(this.model.length);
    const key = new Slice();
    if (this.model.length === 0) return;
    this.tree.select(0);
    for (let rank = 0; rank < this.model.length; rank++) {
      this.tree.key(key);
      if (!key.toBuffer().equals(this.model[rank].key)) throw new Error(`key at ${rank} differs`);
      expect(this.tree.next()).toBe(rank + 1 < this.model.length);
    }
    this.tree.select(this.model.length - 1);
    for (let rank = this.model.length - 1; rank >= 0; rank--) {
      this.tree.key(key);
      if (!key.toBuffer().equals(this.model[rank].key)) throw new Error(`key at ${rank} differs, backwards`);
      expect(this.tree.previous()).toBe(rank > 0);
    }
  }
}

describe('keyed tree', () => {
  for (const shape of SHAPES) {
    for (const seed of seeds(2)) {
      test(`equals a sorted array: ${JSON.stringify(shape)} SEED=${seed}`, () => {
        const random = new Random(seed);
        const pair = new Pair(shape);
        for (let step = 0; step < 4000; step++) {
          const growing = step % 2000 < 1300;
          const dice = random.below(20);
          if (dice < (growing ? 14 : 4)) {
            pair.set(randomEntry(random, shape));
          } else if (dice < 17 && pair.model.length > 0) {
            pair.remove(random.pick(pair.model));
          } else if (dice === 17) {
            pair.remove(randomEntry(random, shape));
          } else if (dice === 18 && pair.model.length > 0) {
            const entry = random.pick(pair.model);
            pair.set({ ...entry, value: randomEntry(random, shape).value });
          } else if (dice === 19 && random.below(10) === 0) {
            const rank = random.below(pair.model.length + 1);
            const count = random.below(60);
            pair.tree.removeRange(rank, count);
            pair.model.splice(rank, count);
          }
          if (pair.model.length > 0) pair.verifyAt(random.below(pair.model.length));
          if (step % 250 === 0) pair.verify();
        }
        pair.verify();
        while (pair.model.length > 0) {
          const rank = random.below(pair.model.length);
          pair.tree.select(rank);
          pair.tree.remove();
          pair.model.splice(rank, 1);
        }
        pair.verify();
        // All that is left is the root, an empty leaf.
        expect(pair.pages.next - 1 - pair.pages.countFree()).toBe(1);
        pair.pages.table.drop(pair.slot);
        while (pair.pages.table.freeSlice(10));
        expect(pair.arena.blockBytes).toBe(0);
      });
    }
  }

  test('a rank selected again after other uses of the cursor is found anew', () => {
    const random = new Random(7);
    const pair = new Pair(SHAPES[0]);
    while (pair.model.length < 300) pair.set(randomEntry(random, SHAPES[0]));
    const uses = [
      () => pair.find(random.pick(pair.model)),
      () => pair.tree.next(),
      () => pair.tree.previous(),
      () => pair.tree.settle(),
      () => pair.tree.nextLeaf(),
      () => pair.tree.previousLeaf(),
      () => pair.set(randomEntry(random, SHAPES[0])),
      () => pair.remove(pair.model[random.below(30)]),
      () => pair.verify(),
    ];
    for (let step = 0; step < 2000; step++) {
      const rank = random.below(Math.min(40, pair.model.length));
      pair.verifyAt(rank);
      random.pick(uses)();
      pair.verifyAt(rank);
      if (pair.model.length < 100) pair.set(randomEntry(random, SHAPES[0]));
    }
  });

  test('pages filled in order stay full', () => {
    const pair = new Pair({ ...SHAPES[0], pageBytes: PAGE_BYTES, keyWords: 2 });
    for (let i = 0; i < 20_000; i++) {
      const key = Slice.from(`member:${String(i).padStart(8, '0')}`);
      pair.tree.find(0, 0, key);
      pair.tree.insert(0, 0, key, new Slice());
    }
    const bytes = 20_000 * (15 + 12);
    expect((pair.pages.next * PAGE_BYTES) / bytes).toBeLessThan(1.15);
  });

  test('ten thousand keys with one word stay usable', () => {
    const pair = new Pair({ ...SHAPES[0], pageBytes: PAGE_BYTES });
    for (let i = 0; i < 10_000; i++) {
      const key = Slice.from(`key ${(i * 7919) % 10_000}`);
      expect(pair.tree.find(42, 0, key)).toBe(false);
      pair.tree.insert(42, 0, key, new Slice());
    }
    const check = new TreeCheck(pair.pages);
    expect(check.keyed(pair.tree)).toBe(null);
    for (let i = 0; i < 10_000; i++) expect(pair.tree.find(42, 0, Slice.from(`key ${i}`))).toBe(true);
    expect(pair.tree.find(42, 0, Slice.from('key 10000'))).toBe(false);
    expect(pair.tree.height).toBeLessThan(4);
  });

  test('damage is told with its page', () => {
    const pair = new Pair(SHAPES[0]);
    const random = new Random(1);
    for (let i = 0; i < 300; i++) pair.set(randomEntry(random, SHAPES[0]));
    pair.tree.select(150);
    const { arena } = pair;
    const word = ((pair.tree.leaf & arena.unitMask) << 2) + 4;
    arena.i32[pair.tree.leaf >>> arena.chunkShift][word] = 0x7fffffff;
    const number = pair.pages.number(pair.tree.leaf);
    expect(new TreeCheck(pair.pages).keyed(pair.tree)).toMatch(new RegExp(`^page ${number}: `));
  });
});
