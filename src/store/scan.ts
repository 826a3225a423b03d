import type { KeyedTree } from './tree-keyed.ts';
import { NO_VALUE } from './tree-keyed.ts';

/** Turns the order of signed words into that of unsigned ones. */
const SIGN = 0x80000000 | 0;

/**
 * Calls `visit`, with the cursor of the tree at each, for at least `count` entries of a tree ordered by
 * hash, and goes on to the end of the last hash; returns the next cursor, 0 at the end.
 *
 * A cursor is the hash that comes next, counted from the lowest. What is in the tree during a whole
 * iteration is visited whatever else comes and goes, because the place of an entry depends on nothing
 * but itself.
 */
export function scanTree(tree: KeyedTree, cursor: number, count: number, visit: () => void): number {
  if (cursor >= 2 ** 32) return 0;
  tree.find(cursor ^ SIGN, 0, NO_VALUE);
  if (!tree.settle()) return 0;
  for (let hash = tree.wordAt(0); ; count--) {
    const next = tree.wordAt(0);
    if (count <= 0 && next !== hash) return (next ^ SIGN) >>> 0;
    hash = next;
    visit();
    if (!tree.next()) return 0;
  }
}
