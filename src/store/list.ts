import type { ByteSink } from '../bytes/sink.ts';
import { Slice } from '../bytes/slice.ts';
import type { List } from './api.ts';
import { Collection } from './collection.ts';
import { checkedElementBytes, elementAt, elementBytes, framedBytes, STUB, writeFramed } from './framing.ts';
import { detachedPayload, Packed, PACKED_BYTES_MAX } from './packed.ts';
import { Pages } from './pages.ts';
import { ValueRef, type Ground } from './record.ts';
import type { TreeCheck } from './tree-check.ts';
import { ListTree } from './tree-list.ts';

/** Framed elements packed in a record. */
class PackedList extends Packed {
  override elementBytes(u8: Buffer, at: number): number {
    return elementBytes(u8, at);
  }

  protected override checkedBytes(u8: Buffer, at: number, end: number): number {
    return u8[at] === STUB ? -1 : checkedElementBytes(u8, at, end);
  }

  insert(index: number, element: Slice): void {
    const offset = this.offset(index);
    this.open(offset, framedBytes(element.length));
    writeFramed(this.value.u8, this.value.view, this.value.start + offset, element);
  }

  replace(index: number, element: Slice): void {
    const offset = this.offset(index);
    const { u8, start } = this.value;
    this.stretch(offset, elementBytes(u8, start + offset), framedBytes(element.length));
    writeFramed(this.value.u8, this.value.view, this.value.start + offset, element);
  }

  element(offset: number, into: Slice): void {
    const { u8, view, start } = this.value;
    elementAt(u8, view, start + offset, into);
  }

  copy(index: number, count: number, out: ByteSink): void {
    const from = this.offset(index);
    let to = from;
    for (let left = count; left > 0; left--) to = this.after(to);
    const { u8, start } = this.value;
    out.copy(u8, start + from, start + to);
  }
}

/** A list: elements in their order, framed, packed and later in a tree. */
export class ListHandle extends Collection implements List {
  private readonly packed: PackedList;
  private readonly tree: ListTree;
  private readonly element = new Slice();

  constructor(ground: Ground) {
    const value = new ValueRef(ground);
    const tree = new ListTree(new Pages(ground.collections));
    super(value, tree);
    this.packed = new PackedList(value);
    this.tree = tree;
  }

  get length(): number {
    return this.value.isTree ? this.tree.count : this.packed.count;
  }

  pushLeft(element: Slice): void {
    this.insert(0, element);
  }

  pushRight(element: Slice): void {
    this.insert(this.length, element);
  }

  insert(index: number, element: Slice): void {
    if (!this.value.isTree) {
      if (this.packed.hasRoom(framedBytes(element.end - element.start))) {
        this.packed.insert(index, element);
        return;
      }
      this.moveToTree(element.end - element.start);
    }
    this.tree.insert(index, element);
    this.save();
  }

  private moveToTree(bytes: number): void {
    const old = new PackedList(detachedPayload(this.value));
    this.makeTrees(bytes);
    for (let rank = 0, offset = 1; rank < old.count; rank++, offset = old.after(offset)) {
      old.element(offset, this.element);
      this.tree.insert(rank, this.element);
    }
  }

  at(index: number, into: Slice): boolean {
    if (index >= this.length) return false;
    if (this.value.isTree) {
      this.tree.select(index);
      this.tree.element(into);
    } else {
      this.packed.element(this.packed.offset(index), into);
    }
    return true;
  }

  set(index: number, element: Slice): void {
    if (index >= this.length) return;
    if (!this.value.isTree) {
      const { packed } = this;
      packed.element(packed.offset(index), this.element);
      const growth = framedBytes(element.length) - framedBytes(this.element.length);
      if (this.value.length + growth <= PACKED_BYTES_MAX) {
        packed.replace(index, element);
        return;
      }
      this.moveToTree(element.end - element.start);
    }
    this.tree.replace(index, element);
    this.save();
  }

  remove(index: number, count: number): void {
    const run = Math.min(count, this.length - index);
    if (run <= 0) return;
    if (this.value.isTree) {
      this.tree.removeRange(index, run);
      this.save();
    } else {
      this.packed.remove(this.packed.offset(index), run);
    }
  }

  forEachFrom(index: number, step: 1 | -1, visit: (element: Slice, index: number) => boolean): void {
    const { packed, element } = this;
    const length = this.length;
    if (index < 0 || index >= length) return;
    if (this.value.isTree) {
      this.tree.forEachFrom(index, step, element, visit);
      return;
    }
    for (let offset = packed.offset(index); ;) {
      packed.element(offset, element);
      if (!visit(element, index)) return;
      index += step;
      if (index < 0 || index >= length) return;
      offset = step === 1 ? packed.after(offset) : packed.offset(index);
    }
  }

  copyFramed(index: number, count: number, out: ByteSink): void {
    const run = Math.min(count, this.length - index);
    if (run <= 0) return;
    if (this.value.isTree) this.tree.copyFramed(index, run, out);
    else this.packed.copy(index, run, out);
  }

  protected override checkPacked(): string | null {
    return this.packed.check();
  }

  protected override checkTrees(check: TreeCheck): string | null {
    const { tree } = this;
    return check.positional(tree, (ref) =>
      tree.checkLeaf(ref, (first, length) => check.chain(first, length)),
    );
  }
}
