import { Slice } from '../bytes/slice.ts';
import type { SetValue, Visitor } from './api.ts';
import { Collection } from './collection.ts';
import { detachedPayload, itemBytes, PackedItems } from './packed.ts';
import { Pages } from './pages.ts';
import { ValueRef, type Ground } from './record.ts';
import { scanTree } from './scan.ts';
import type { TreeCheck } from './tree-check.ts';
import { KeyedTree, NO_VALUE } from './tree-keyed.ts';

/** A set: members packed in the order of their arrival, then a tree in the order of (hash, member). */
export class SetHandle extends Collection implements SetValue {
  private readonly packed: PackedItems;
  private readonly tree: KeyedTree;
  private readonly member = new Slice();

  constructor(ground: Ground) {
    const value = new ValueRef(ground);
    const tree = new KeyedTree(new Pages(ground.collections), 1);
    super(value, tree);
    this.packed = new PackedItems(value, 0, 1);
    this.tree = tree;
  }

  get size(): number {
    return this.value.isTree ? this.tree.count : this.packed.count;
  }

  private find(member: Slice): boolean {
    return this.findHashed(this.tree, member);
  }

  add(member: Slice): boolean {
    const { value, tree, packed } = this;
    if (!value.isTree) {
      if (packed.find(member) >= 0) return false;
      const bytes = itemBytes(member.end - member.start);
      if (packed.hasRoom(bytes)) {
        const offset = packed.offset(packed.count);
        packed.open(offset, bytes);
        packed.write(offset, member);
        return true;
      }
      this.moveToTree(member.end - member.start);
    }
    if (this.find(member)) return false;
    tree.insert(this.hash, 0, member, NO_VALUE);
    this.save();
    return true;
  }

  private moveToTree(bytes: number): void {
    const old = new PackedItems(detachedPayload(this.value), 0, 1);
    this.makeTrees(bytes);
    for (let rank = 0, offset = 1; rank < old.count; rank++, offset = old.after(offset)) {
      old.item(offset, 0, this.member);
      const hash = this.value.ground.hasher.hash32(this.member);
      this.tree.find(hash, 0, this.member);
      this.tree.insert(hash, 0, this.member, NO_VALUE);
    }
  }

  has(member: Slice): boolean {
    return this.value.isTree ? this.find(member) : this.packed.find(member) >= 0;
  }

  remove(member: Slice): boolean {
    if (!this.value.isTree) {
      const offset = this.packed.find(member);
      if (offset < 0) return false;
      this.packed.remove(offset, 1);
      return true;
    }
    if (!this.find(member)) return false;
    this.tree.remove();
    this.save();
    return true;
  }

  at(rank: number, into: Slice): boolean {
    if (rank >= this.size) return false;
    if (this.value.isTree) {
      this.tree.select(rank);
      this.tree.key(into);
    } else {
      this.packed.item(this.packed.offset(rank), 0, into);
    }
    return true;
  }

  removeAt(rank: number): void {
    if (rank >= this.size) return;
    if (this.value.isTree) {
      this.tree.select(rank);
      this.tree.remove();
      this.save();
    } else {
      this.packed.remove(this.packed.offset(rank), 1);
    }
  }

  forEachFrom(rank: number, visit: (member: Slice) => boolean): void {
    const { member, tree, packed } = this;
    const size = this.size;
    if (rank >= size) return;
    if (this.value.isTree) {
      tree.select(rank);
      do tree.key(member);
      while (visit(member) && tree.next());
      return;
    }
    let offset = packed.offset(rank);
    for (; rank < size; rank++) {
      packed.item(offset, 0, member);
      if (!visit(member)) return;
      offset = packed.after(offset);
    }
  }

  scan(cursor: number, count: number, visit: Visitor): number {
    if (!this.value.isTree) {
      this.forEachFrom(0, (member) => {
        visit(member, null, 0);
        return true;
      });
      return 0;
    }
    return scanTree(this.tree, cursor, count, () => {
      this.tree.key(this.member);
      visit(this.member, null, 0);
    });
  }

  protected override checkPacked(): string | null {
    return this.packed.check() ?? this.packed.checkTwins();
  }

  protected override checkTrees(check: TreeCheck): string | null {
    return check.keyed(this.tree) ?? this.checkHashes(this.tree);
  }
}
