/**
 * A string as commands read and change it: in its record up to INLINE_STRING_MAX bytes, above that in
 * an extent tree, whose pages are changed one by one.
 */
import type { ByteSink } from '../bytes/sink.ts';
import { allocatePadded, Slice, viewOf } from '../bytes/slice.ts';
import type { StringValue } from './api.ts';
import { Collection } from './collection.ts';
import { Pages } from './pages.ts';
import { ValueRef, type Ground } from './record.ts';
import type { TreeCheck } from './tree-check.ts';
import { ExtentTree } from './tree-extent.ts';

/** Longer strings are extents. */
export const INLINE_STRING_MAX = 16 * 1024;

export class StringHandle extends Collection implements StringValue {
  private readonly tree: ExtentTree;
  private readonly run = new Slice();

  constructor(ground: Ground) {
    const tree = new ExtentTree(new Pages(ground.collections));
    super(new ValueRef(ground), tree);
    this.tree = tree;
  }

  get length(): number {
    return this.value.isTree ? this.tree.count : this.value.length;
  }

  read(start: number, end: number, out: ByteSink): void {
    this.forEachRun(start, end, (run) => out.slice(run));
  }

  byteAt(offset: number): number {
    const { value } = this;
    if (value.isTree) return this.tree.byteAt(offset);
    return offset < value.length ? value.u8[value.start + offset] : 0;
  }

  forEachRun(start: number, end: number, visit: (run: Slice) => void): void {
    const { value, run } = this;
    if (value.isTree) {
      this.tree.forEachRun(start, end, run, visit);
      return;
    }
    const last = Math.min(end, value.length);
    if (start >= last) return;
    run.set(value.u8, value.view, value.start + start, value.start + last);
    visit(run);
  }

  /** Points `into` at all bytes; those of a long string are copied together. */
  whole(into: Slice): void {
    const { value } = this;
    if (!value.isTree) {
      into.set(value.u8, value.view, value.start, value.start + value.length);
      return;
    }
    const length = this.tree.count;
    const copy = allocatePadded(length);
    this.tree.read(0, length, copy, 0);
    into.set(copy, viewOf(copy.buffer), 0, length);
  }

  write(offset: number, bytes: Slice): void {
    const { value } = this;
    const end = offset + bytes.length;
    const length = this.length;
    if (Math.max(end, length) > INLINE_STRING_MAX) {
      this.writeExtents(offset, bytes);
      return;
    }
    if (end > length) {
      value.resize(end);
      if (offset > length) value.u8.fill(0, value.start + length, value.start + offset);
    } else {
      value.touch();
    }
    bytes.u8.copy(value.u8, value.start + offset, bytes.start, bytes.end);
  }

  private writeExtents(offset: number, bytes: Slice): void {
    const { value, tree } = this;
    if (!value.isTree) this.toExtents(offset + bytes.length);
    const growth = Math.max(0, offset + bytes.length - tree.count);
    tree.reserveBytes(growth);
    if (offset > tree.count) tree.appendZeros(offset - tree.count);
    const overlap = Math.min(bytes.length, tree.count - offset);
    tree.overwrite(offset, bytes.u8, bytes.start, bytes.start + overlap);
    tree.append(bytes.u8, bytes.start + overlap, bytes.end);
    if (growth > 0) this.save();
  }

  /** Moves the bytes from the record to a tree that will have `length` bytes. */
  private toExtents(length: number): void {
    const { value } = this;
    const bytes = Buffer.from(value.u8.subarray(value.start, value.start + value.length));
    this.makeTrees(length);
    this.tree.append(bytes, 0, bytes.length);
  }

  protected override checkPacked(): null {
    return null;
  }

  protected override checkTrees(check: TreeCheck): string | null {
    return check.positional(this.tree, (ref) => this.tree.checkLeaf(ref));
  }
}
