/** Ways found ahead lead where searches from the root lead, whatever happens to the tree between. */
import { expect, test } from 'vitest';
import { allocatePadded, Slice, viewOf } from '../../src/bytes/slice.ts';
import { Arena } from '../../src/store/arena.ts';
import { CollectionTable } from '../../src/store/collection-table.ts';
import { Hasher } from '../../src/store/hash.ts';
import { Pages } from '../../src/store/pages.ts';
import { TreeAhead } from '../../src/store/tree-ahead.ts';
import { TreeCheck } from '../../src/store/tree-check.ts';
import { KeyedTree } from '../../src/store/tree-keyed.ts';
import { Random, seeds } from './random.ts';

const PAGE = 256;
const MEMBERS = 32;

/** Hashes of few values: many members share one, and separators have bytes. */
class CoarseHasher extends Hasher {
  private readonly mask: number;

  constructor(mask: number) {
    super(1, 2);
    this.mask = mask;
  }

  override hashRange(view: DataView, start: number, end: number): number {
    return super.hashRange(view, start, end) & this.mask;
  }
}

for (const mask of [-1, ~0xfffff, 0x7f]) {
  for (const seed of seeds(3)) {
    test(`ways in a tree of hashes & ${mask}, SEED=${seed}`, () => {
      const random = new Random(seed);
      const hasher = new CoarseHasher(mask);
      const arena = new Arena();
      const table = new CollectionTable(arena);
      const pages = new Pages(table, PAGE);
      pages.open(table.open(1), 1, 0);
      const tree = new KeyedTree(pages, 1);
      tree.create();
      const ahead = new TreeAhead(new Pages(table, PAGE), hasher);
      const model = new Map<string, string>();
      const found = new Slice();
      const key = new Slice();
      let along = 0;

      const change = (member: Slice, remove: boolean): void => {
        const i = ahead.indexOf(member);
        const hash = i < 0 ? hasher.hash32(member) : ahead.hashes[i];
        expect(hash).toBe(hasher.hash32(member));
        const known = i >= 0 && ahead.isOf(pages, tree.root, tree.height);
        if (known) along++;
        const has = known ? tree.findAlong(ahead, i, member) : tree.find(hash, 0, member);
        const name = member.latin1();
        expect(has).toBe(model.has(name));
        if (has) {
          tree.entry(key, found);
          expect(found.latin1()).toBe(model.get(name));
        }
        if (remove) {
          if (has) tree.remove();
          model.delete(name);
          return;
        }
        const value = 'v'.repeat(random.below(random.below(30) === 0 ? 400 : 20));
        if (has) tree.replaceValue(member, Slice.from(Buffer.from(value)));
        else tree.insert(hash, 0, member, Slice.from(Buffer.from(value)));
        model.set(name, value);
      };

      for (let round = 0; round < 400; round++) {
        // The tree grows, shrinks to little, and grows again.
        const shrinks = round % 200 > 120;
        const memory = allocatePadded(MEMBERS * 8);
        const members = Array.from({ length: 2 + random.below(MEMBERS - 1) }, (_, i) => {
          const member = new Slice();
          const length = memory.write(`m${random.below(4000)}`, i * 8, 'latin1');
          member.set(memory, viewOf(memory.buffer), i * 8, i * 8 + length);
          return member;
        });
        const { slot, next, freeHead } = pages;
        const words = Int32Array.of(slot, 0, 0, tree.root, tree.height, tree.count, next, freeHead);
        ahead.begin(words, 0, 3, members, members.length);
        for (const member of members) {
          const what = random.below(10);
          if (what === 0) continue;
          if (what === 1) change(Slice.from(Buffer.from(`m${random.below(4000)}`)), shrinks);
          change(member, shrinks ? what < 9 : what < 3);
        }
        ahead.end();
      }
      expect(new TreeCheck(pages).keyed(tree)).toBe(null);
      expect(tree.count).toBe(model.size);
      // Most of them were led by what was found.
      expect(along).toBeGreaterThan(1000);
    });
  }
}
