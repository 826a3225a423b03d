/**
 * What lists, sets, hashes, sorted sets, streams and long strings have in common: a value that is packed in its
 * record while it is small and lives in trees of pages when it is not.
 *
 * Descriptor of a collection in its record, words: root, height and count of its tree; next page
 * number; first free page number; root, height and count of a second tree, if there is one; then what
 * the type itself keeps there.
 */
import { Slice } from '../bytes/slice.ts';
import { showKey } from '../rdb/error.ts';
import { SLAB_BYTES } from './arena.ts';
import { TREE_PREFIX_BYTES, type ValueHandle, type ValueRef } from './record.ts';
import type { Pages } from './pages.ts';
import { TreeCheck } from './tree-check.ts';
import type { KeyedTree } from './tree-keyed.ts';
import { SPARE_SLABS, type Tree } from './tree.ts';

const ONE_TREE_BYTES = 5 * 4;
export const TWO_TREES_BYTES = 8 * 4;

/**
 * A new slab for each of: pages, the record, page tables twice; the packed elements in pages; and what
 * the insertion of each of them asks for before it begins, so that none is refused half-way.
 */
const TREE_ROOM = (5 + SPARE_SLABS + 1) * SLAB_BYTES;

export abstract class Collection implements ValueHandle {
  readonly value: ValueRef;
  protected readonly pages: Pages;
  private readonly first: Tree;
  private readonly second: Tree | null;
  /** Of the member that `findHashed` looked for last. */
  protected hash = 0;
  private readonly ownBytes: number;

  /** The trees share the numbering of `pages`; `ownBytes` follow their descriptor. */
  constructor(value: ValueRef, first: Tree, second: Tree | null = null, ownBytes = 0) {
    this.value = value;
    this.pages = first.pages;
    this.first = first;
    this.second = second;
    this.ownBytes = ownBytes;
  }

  opened(): void {
    const { value } = this;
    if (!value.isTree) return;
    const { i32, descriptor: at } = value;
    this.first.open(i32[at], i32[at + 1], i32[at + 2]);
    this.pages.open(value.collection, i32[at + 3], i32[at + 4]);
    this.second?.open(i32[at + 5], i32[at + 6], i32[at + 7]);
  }

  /** Finds a member in a tree of one key word; its hash is in `hash` afterwards. */
  protected findHashed(tree: KeyedTree, member: Slice): boolean {
    const { ahead, hasher } = this.value.ground;
    const i = ahead.indexOf(member);
    this.hash = i < 0 ? hasher.hash32(member) : ahead.hashes[i];
    if (i >= 0 && ahead.isOf(this.pages, tree.root, tree.height)) return tree.findAlong(ahead, i, member);
    return tree.find(this.hash, 0, member);
  }

  /** After a change of a tree: brings the descriptor up to date, or removes the key of an empty collection. */
  protected save(): void {
    if (this.first.count === 0) {
      this.value.removeKey();
      return;
    }
    this.saveTrees();
  }

  /** The same for a collection that may be empty. */
  protected saveTrees(): void {
    this.value.touch();
    this.writeDescriptor();
  }

  private writeDescriptor(): void {
    const { first, second, pages } = this;
    const { i32, descriptor: at } = this.value;
    i32[at] = first.root;
    i32[at + 1] = first.height;
    i32[at + 2] = first.count;
    i32[at + 3] = pages.next;
    i32[at + 4] = pages.freeHead;
    if (second !== null) {
      i32[at + 5] = second.root;
      i32[at + 6] = second.height;
      i32[at + 7] = second.count;
    }
  }

  /**
   * Gives the value empty trees in place of its payload, which is lost. `bytes` is what is added next:
   * room for it is made sure of here, so that no empty collection is left behind.
   * Without `both` the second tree has no root yet.
   */
  protected makeTrees(bytes: number, both = true): void {
    this.pages.arena.reserve(bytes + TREE_ROOM);
    this.value.makeTree(this.rootBytes - TREE_PREFIX_BYTES);
    this.pages.open(this.value.collection, 1, 0);
    this.first.create();
    if (both) this.second?.create();
    else this.second?.open(0, 0, 0);
    this.writeDescriptor();
  }

  /** Bytes of pages and page table; 0 while packed. */
  get pageBytes(): number {
    if (!this.value.isTree) return 0;
    const { pages } = this;
    return (pages.next - 1 - pages.countFree()) * pages.pageBytes + pages.table.tableBytes(pages.slot);
  }

  /** Whether the value may be there without elements. */
  protected get mayBeEmpty(): boolean {
    return false;
  }

  /** Bytes of the payload that is the root of a tree. */
  get rootBytes(): number {
    return TREE_PREFIX_BYTES + (this.second === null ? ONE_TREE_BYTES : TWO_TREES_BYTES) + this.ownBytes;
  }

  /** Null when the value is sound, else what is wrong, with the page's number: for `ardent check` and imports. */
  check(): string | null {
    if (!this.value.isTree) return this.checkPacked();
    if (this.value.length !== this.rootBytes) return `the root has ${this.value.length} bytes`;
    const check = new TreeCheck(this.pages);
    const reason = this.checkTrees(check) ?? check.finish();
    return reason ?? (this.first.count > 0 || this.mayBeEmpty ? null : 'there are no elements');
  }

  /** After the check of a tree of one key word: null, or which entry is not where its hash leads. */
  protected checkHashes(tree: KeyedTree): string | null {
    const { hasher } = this.value.ground;
    const key = new Slice();
    if (!tree.select(0)) return null;
    do {
      tree.key(key);
      if (tree.wordAt(0) !== hasher.hash32(key))
        return `${showKey(key.toBuffer())} is not where its hash leads`;
    } while (tree.next());
    return null;
  }

  protected abstract checkPacked(): string | null;
  protected abstract checkTrees(check: TreeCheck): string | null;
}
