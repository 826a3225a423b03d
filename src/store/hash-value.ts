import { Slice } from '../bytes/slice.ts';
import type { Hash, Visitor } from './api.ts';
import { Collection } from './collection.ts';
import { detachedPayload, itemBytes, PACKED_BYTES_MAX, PackedItems } from './packed.ts';
import { Pages } from './pages.ts';
import { ValueRef, type Ground } from './record.ts';
import { scanTree } from './scan.ts';
import type { TreeCheck } from './tree-check.ts';
import { KeyedTree } from './tree-keyed.ts';

/** A hash: fields with their values packed in the order of their arrival, then a tree in the order of (hash, field). */
export class HashHandle extends Collection implements Hash {
  private readonly packed: PackedItems;
  private readonly tree: KeyedTree;
  private readonly fieldAt = new Slice();
  private readonly valueAt = new Slice();

  constructor(ground: Ground) {
    const value = new ValueRef(ground);
    const tree = new KeyedTree(new Pages(ground.collections), 1);
    super(value, tree);
    this.packed = new PackedItems(value, 0, 2);
    this.tree = tree;
  }

  get size(): number {
    return this.value.isTree ? this.tree.count : this.packed.count;
  }

  private find(field: Slice): boolean {
    return this.findHashed(this.tree, field);
  }

  get(field: Slice, into: Slice): boolean {
    if (!this.value.isTree) {
      const offset = this.packed.find(field);
      if (offset < 0) return false;
      this.packed.item(offset, 1, into);
      return true;
    }
    if (!this.find(field)) return false;
    this.tree.entry(this.fieldAt, into);
    return true;
  }

  set(field: Slice, value: Slice): boolean {
    if (!this.value.isTree) {
      const offset = this.packed.find(field);
      if (offset >= 0 ? this.replacePacked(offset, field, value) : this.addPacked(field, value))
        return offset < 0;
      this.moveToTree(field.end - field.start + value.end - value.start);
    }
    const found = this.find(field);
    if (found) this.tree.replaceValue(field, value);
    else this.tree.insert(this.hash, 0, field, value);
    this.save();
    return !found;
  }

  /** False when there is no room. */
  private addPacked(field: Slice, value: Slice): boolean {
    const { packed } = this;
    const bytes = itemBytes(field.end - field.start) + itemBytes(value.end - value.start);
    if (!packed.hasRoom(bytes)) return false;
    const offset = packed.offset(packed.count);
    packed.open(offset, bytes);
    packed.write(packed.write(offset, field), value);
    return true;
  }

  /** False when there is no room. */
  private replacePacked(offset: number, field: Slice, value: Slice): boolean {
    const { packed } = this;
    packed.item(offset, 1, this.valueAt);
    const growth = itemBytes(value.end - value.start) - itemBytes(this.valueAt.end - this.valueAt.start);
    if (this.value.length + growth > PACKED_BYTES_MAX) return false;
    packed.replaceSecond(offset, field, value);
    return true;
  }

  private moveToTree(bytes: number): void {
    const old = new PackedItems(detachedPayload(this.value), 0, 2);
    this.makeTrees(bytes);
    for (let rank = 0, offset = 1; rank < old.count; rank++, offset = old.after(offset)) {
      old.item(offset, 0, this.fieldAt);
      old.item(offset, 1, this.valueAt);
      const hash = this.value.ground.hasher.hash32(this.fieldAt);
      this.tree.find(hash, 0, this.fieldAt);
      this.tree.insert(hash, 0, this.fieldAt, this.valueAt);
    }
  }

  remove(field: Slice): boolean {
    if (!this.value.isTree) {
      const offset = this.packed.find(field);
      if (offset < 0) return false;
      this.packed.remove(offset, 1);
      return true;
    }
    if (!this.find(field)) return false;
    this.tree.remove();
    this.save();
    return true;
  }

  at(rank: number, field: Slice, value: Slice): boolean {
    if (rank >= this.size) return false;
    if (this.value.isTree) {
      this.tree.select(rank);
      this.tree.entry(field, value);
    } else {
      const offset = this.packed.offset(rank);
      this.packed.item(offset, 0, field);
      this.packed.item(offset, 1, value);
    }
    return true;
  }

  forEachFrom(rank: number, visit: (field: Slice, value: Slice) => boolean): void {
    const { tree, packed, fieldAt, valueAt } = this;
    const size = this.size;
    if (rank >= size) return;
    if (this.value.isTree) {
      tree.select(rank);
      do tree.entry(fieldAt, valueAt);
      while (visit(fieldAt, valueAt) && tree.next());
      return;
    }
    for (let offset = packed.offset(rank); rank < size; rank++, offset = packed.after(offset)) {
      packed.item(offset, 0, fieldAt);
      packed.item(offset, 1, valueAt);
      if (!visit(fieldAt, valueAt)) return;
    }
  }

  scan(cursor: number, count: number, visit: Visitor): number {
    if (!this.value.isTree) {
      this.forEachFrom(0, (field, value) => {
        visit(field, value, 0);
        return true;
      });
      return 0;
    }
    return scanTree(this.tree, cursor, count, () => {
      this.tree.entry(this.fieldAt, this.valueAt);
      visit(this.fieldAt, this.valueAt, 0);
    });
  }

  protected override checkPacked(): string | null {
    return this.packed.check() ?? this.packed.checkTwins();
  }

  protected override checkTrees(check: TreeCheck): string | null {
    return check.keyed(this.tree) ?? this.checkHashes(this.tree);
  }
}
