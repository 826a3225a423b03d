/**
 * The collections that have pages: for each its persistent id, the record that owns it and the table
 * that leads from a page's number to its block.
 *
 * A slot is a volatile number of a collection, written in each of its pages, so that a page can be
 * led back to its row key (id, number) and to its record. A page table is a radix tree of plain
 * blocks of 32-bit references, 512 to a node, up to three levels; while there is one node it grows by
 * doubling, so that the table of a small collection is small. Reference 0: no page in memory. Words of a
 * node: kind, slot, number of the first page below it, levels below it, then the references.
 */
import { Kind, KIND_SHIFT, type Arena } from './arena.ts';
import { Residents } from './residents.ts';

/** Page table nodes: entries by the bits of a page's number, after a header. */
export const NODE_SHIFT = 9;
const NODE_ENTRIES = 1 << NODE_SHIFT;
export const NODE_MASK = NODE_ENTRIES - 1;
const FIRST_ENTRIES = 4;
export const NODE_HEADER_WORDS = 4;
/** Enough for 134 million pages, more than the arena holds. */
const MAX_LEVELS = 3;
/** Instead of the levels of a page table: the slot is lent. */
const LENT = 255;
/** Slots looked at for a run of unused ones, before those to be lent are new. */
const LEND_SEARCH = 1 << 16;
/** So many unused ones in a row are worth to be lent. */
const LEND_LEAST = 64;

/** What the table knows of a collection, on its way from one table to another. */
export interface CollectionState {
  slot: number;
  id: number;
  record: number;
  root: number;
  levels: number;
  entries: number;
  resident: number;
}

/** Slots and ids for so many new collections, all in a row. */
export interface CollectionRange {
  slot: number;
  id: number;
  count: number;
}

export class CollectionTable {
  readonly arena: Arena;
  readonly residents: Residents;
  /** By slot. Slot 0 is unused, so that 0 can mean none. */
  record = new Int32Array(64);
  /** Page table: root block, levels (0 when the slot is unused, LENT), entries of the root. */
  root = new Int32Array(64);
  levels = new Uint8Array(64);
  entries = new Uint16Array(64);
  /** Pages in memory. */
  resident = new Int32Array(64);
  /** Ids are never reused; below 2^53. */
  id = new Float64Array(64);

  /** The id that the next new collection gets; persisted with each checkpoint. */
  nextId = 1;
  /** Changes when a way down a tree may have: an inner page or a collection is new, or a page is given up. */
  shape = 0;

  /**
   * Where slots and ids come from when collections are to be handed over to another table, which `lend`s them;
   * null: they are this table's own.
   */
  lender: (() => CollectionRange) | null = null;
  /** Ids that were lent end before this. */
  private lentEnd = 0;
  private lentSlotEnd = 0;

  private top = 1;
  /** Slots that were released, each once; some of them may have been lent since. */
  private readonly freeSlots: number[] = [];
  private listed = new Uint8Array(64);
  /** Unused slots below `top`. */
  private unused = 0;
  /** Where the search for slots to be lent goes on. */
  private lendAt = 1;
  /** Slots of dropped collections; the one whose pages are being freed (0: none), and its next number. */
  private readonly dropped: number[] = [];
  private freeingSlot = 0;
  private freeNumber = 0;

  constructor(arena: Arena, residents = new Residents(arena)) {
    this.arena = arena;
    this.residents = residents;
  }

  /** Slots in use are below this. */
  get end(): number {
    return this.top;
  }

  /** Collections in the table, dropped ones included until they are freed. */
  get size(): number {
    return this.top - 1 - this.unused;
  }

  /** A slot for a new collection of `record`, with an id of its own and no pages yet. */
  open(record: number): number {
    if (this.lender !== null && this.nextId >= this.lentEnd) this.borrow(this.lender());
    return this.add(this.nextId++, record);
  }

  /** A slot for a collection that exists on disk; its pages are placed as they are read. */
  add(id: number, record: number): number {
    const slot = this.takeFree() || this.top++;
    this.growTo(slot + 1);
    this.shape++;
    this.arena.journal?.onRollback(() => this.release(slot));
    this.id[slot] = id;
    this.record[slot] = record;
    this.levels[slot] = 1;
    this.entries[slot] = FIRST_ENTRIES;
    this.resident[slot] = 0;
    this.root[slot] = this.newNode(FIRST_ENTRIES, slot, 0, 0);
    return slot;
  }

  /** The slot can be used again; its page table is freed by the caller. */
  private release(slot: number): void {
    this.record[slot] = 0;
    this.root[slot] = 0;
    this.levels[slot] = 0;
    this.unused++;
    if (this.listed[slot] === 1) return;
    this.listed[slot] = 1;
    this.freeSlots.push(slot);
  }

  /** A slot that was released; 0: there is none. */
  private takeFree(): number {
    for (let slot = this.freeSlots.pop(); slot !== undefined; slot = this.freeSlots.pop()) {
      this.listed[slot] = 0;
      if (this.levels[slot] !== 0) continue;
      this.unused--;
      return slot;
    }
    return 0;
  }

  /** The collection's root is in that record now. */
  setRecord(slot: number, record: number): void {
    const old = this.record[slot];
    this.arena.journal?.onRollback(() => (this.record[slot] = old));
    this.record[slot] = record;
  }

  /** Room for slots below `end`. */
  private growTo(end: number): void {
    if (end <= this.record.length) return;
    const larger = Math.max(this.record.length * 2, end);
    this.record = copyInto(new Int32Array(larger), this.record);
    this.root = copyInto(new Int32Array(larger), this.root);
    this.resident = copyInto(new Int32Array(larger), this.resident);
    this.levels = copyInto(new Uint8Array(larger), this.levels);
    this.listed = copyInto(new Uint8Array(larger), this.listed);
    this.entries = copyInto(new Uint16Array(larger), this.entries);
    this.id = copyInto(new Float64Array(larger), this.id);
  }

  private borrow(range: CollectionRange): void {
    for (; this.top < this.lentSlotEnd; this.top++) this.release(this.top);
    this.top = range.slot;
    this.lentSlotEnd = range.slot + range.count;
    this.nextId = range.id;
    this.lentEnd = range.id + range.count;
    this.growTo(this.lentSlotEnd);
  }

  /** Slots and ids for up to so many collections that are made elsewhere; each slot must be taken over or taken back. */
  lend(most: number): CollectionRange {
    let count = this.unusedRun(most);
    let slot = this.lendAt - count;
    if (count > 0) {
      this.unused -= count;
    } else {
      count = most;
      slot = this.top;
      this.top += count;
      this.growTo(this.top);
    }
    const id = this.nextId;
    this.nextId += count;
    this.levels.fill(LENT, slot, slot + count);
    return { slot, id, count };
  }

  /**
   * Moves `lendAt` behind up to so many unused slots in a row, and returns how many; 0: none were met. Each search goes
   * on where the last one ended.
   */
  private unusedRun(most: number): number {
    const { levels, top } = this;
    if (this.unused < LEND_LEAST) return 0;
    if (this.lendAt + LEND_LEAST > top) this.lendAt = 1;
    const end = Math.min(top, this.lendAt + LEND_SEARCH);
    let run = 0;
    for (; this.lendAt < end && run < most; this.lendAt++) {
      if (levels[this.lendAt] === 0) run++;
      else if (run >= LEND_LEAST) break;
      else run = 0;
    }
    return run >= LEND_LEAST ? run : 0;
  }

  /** Gives a collection away. */
  handOver(slot: number): CollectionState {
    const state = {
      slot,
      id: this.id[slot],
      record: this.record[slot],
      root: this.root[slot],
      levels: this.levels[slot],
      entries: this.entries[slot],
      resident: this.resident[slot],
    };
    this.record[slot] = this.root[slot] = this.levels[slot] = 0;
    return state;
  }

  /** Takes a collection over whose slot was lent. */
  takeOver({ slot, id, record, root, levels, entries, resident }: CollectionState): void {
    this.shape++;
    this.id[slot] = id;
    this.record[slot] = record;
    this.root[slot] = root;
    this.levels[slot] = levels;
    this.entries[slot] = entries;
    this.resident[slot] = resident;
  }

  /** The slots of a range that no collection came back in serve again. */
  takeBack({ slot, count }: CollectionRange): void {
    for (let one = slot; one < slot + count; one++) if (this.levels[one] === LENT) this.release(one);
  }

  private newNode(entries: number, slot: number, first: number, level: number): number {
    const ref = this.arena.alloc((entries + NODE_HEADER_WORDS) * 4);
    const i32 = this.arena.i32[ref >>> this.arena.chunkShift];
    const w = (ref & this.arena.unitMask) << 2;
    i32.fill(0, w, w + entries + NODE_HEADER_WORDS);
    i32[w] = Kind.Plain << KIND_SHIFT;
    i32[w + 1] = slot;
    i32[w + 2] = first;
    i32[w + 3] = level;
    return ref;
  }

  private read(node: number, entry: number): number {
    const { arena } = this;
    return arena.i32[node >>> arena.chunkShift][((node & arena.unitMask) << 2) + NODE_HEADER_WORDS + entry];
  }

  private write(node: number, entry: number, ref: number): void {
    const { arena } = this;
    if (arena.journal !== null) arena.journal.keep(node);
    arena.i32[node >>> arena.chunkShift][((node & arena.unitMask) << 2) + NODE_HEADER_WORDS + entry] = ref;
  }

  /** Page numbers below this have an entry in the page table. */
  capacity(slot: number): number {
    return this.entries[slot] << (NODE_SHIFT * (this.levels[slot] - 1));
  }

  /** The block of a page; 0 when it is not in memory or `number` lies beyond the table. */
  find(slot: number, number: number): number {
    const levels = this.levels[slot];
    if (number >>> (NODE_SHIFT * (levels - 1)) >= this.entries[slot]) return 0;
    let node = this.root[slot];
    for (let level = levels - 1; level > 0; level--) {
      node = this.read(node, (number >>> (NODE_SHIFT * level)) & NODE_MASK);
      if (node === 0) return 0;
    }
    return this.read(node, number & NODE_MASK);
  }

  /** Sets the block of a page, 0 when it leaves memory, enlarging the table as needed; pages may come in any order. */
  place(slot: number, number: number, ref: number): void {
    while (number >>> (NODE_SHIFT * (this.levels[slot] - 1)) >= this.entries[slot]) this.enlarge(slot);
    let node = this.root[slot];
    for (let level = this.levels[slot] - 1; level > 0; level--) {
      const entry = (number >>> (NODE_SHIFT * level)) & NODE_MASK;
      let child = this.read(node, entry);
      if (child === 0) {
        const first = number & -(1 << (NODE_SHIFT * level));
        child = this.newNode(NODE_ENTRIES, slot, first, level - 1);
        this.write(node, entry, child);
      }
      node = child;
    }
    const before = this.read(node, number & NODE_MASK);
    if ((before === 0) !== (ref === 0)) this.count(slot, ref === 0 ? -1 : 1);
    this.write(node, number & NODE_MASK, ref);
  }

  /** Moves a block to where `relocate` says: a page, unless its collection is gone. False when nothing leads to it. */
  movePage(ref: number, relocate: (ref: number) => number): boolean {
    const { arena } = this;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const w = (ref & arena.unitMask) << 2;
    const slot = i32[w + 3];
    const number = i32[w + 2];
    if (this.record[slot] === 0 || this.find(slot, number) !== ref) return false;
    this.shape++;
    this.place(slot, number, relocate(ref));
    return true;
  }

  /** The same with a node of a page table. */
  moveNode(ref: number, relocate: (ref: number) => number): boolean {
    const { arena } = this;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const w = (ref & arena.unitMask) << 2;
    const slot = i32[w + 1];
    if (this.record[slot] === 0) return false;
    if (this.root[slot] === ref) {
      this.root[slot] = relocate(ref);
      return true;
    }
    const first = i32[w + 2];
    const level = i32[w + 3] + 1;
    let parent = this.root[slot];
    for (let above = this.levels[slot] - 1; above > level && parent !== 0; above--)
      parent = this.read(parent, (first >>> (NODE_SHIFT * above)) & NODE_MASK);
    const entry = (first >>> (NODE_SHIFT * level)) & NODE_MASK;
    if (parent === 0 || this.read(parent, entry) !== ref) return false;
    this.write(parent, entry, relocate(ref));
    return true;
  }

  private count(slot: number, pages: number): void {
    this.arena.journal?.onRollback(() => (this.resident[slot] -= pages));
    this.resident[slot] += pages;
  }

  /** Forgets a collection without pages in memory, whose record leaves it. */
  unload(slot: number): void {
    this.freeTable(this.root[slot], this.entries[slot], this.levels[slot]);
    this.release(slot);
  }

  private freeTable(node: number, entries: number, levels: number): void {
    for (let entry = 0; levels > 1 && entry < entries; entry++) {
      const child = this.read(node, entry);
      if (child !== 0) this.freeTable(child, NODE_ENTRIES, levels - 1);
    }
    this.arena.free(node);
  }

  /** Doubles the root, or puts a level above it. */
  private enlarge(slot: number): void {
    const { arena } = this;
    const old = this.root[slot];
    const entries = this.entries[slot];
    const whole = entries === NODE_ENTRIES;
    if (whole && this.levels[slot] === MAX_LEVELS) throw new RangeError('a collection has too many pages');
    const larger = whole ? FIRST_ENTRIES : entries * 2;
    const levels = this.levels[slot];
    const root = this.newNode(larger, slot, 0, whole ? levels : levels - 1);
    arena.journal?.onRollback(() => {
      this.root[slot] = old;
      this.entries[slot] = entries;
      this.levels[slot] = levels;
    });
    if (whole) {
      this.write(root, 0, old);
      this.levels[slot]++;
    } else {
      const from = ((old & arena.unitMask) << 2) + NODE_HEADER_WORDS;
      const to = ((root & arena.unitMask) << 2) + NODE_HEADER_WORDS;
      const source = arena.i32[old >>> arena.chunkShift];
      arena.i32[root >>> arena.chunkShift].set(source.subarray(from, from + entries), to);
      arena.free(old);
    }
    this.root[slot] = root;
    this.entries[slot] = larger;
  }

  /** Gives a collection up: its pages and page table are freed later, in slices, and the slot with them. */
  drop(slot: number): void {
    this.setRecord(slot, 0);
    this.arena.journal?.onRollback(() => this.dropped.pop());
    this.dropped.push(slot);
  }

  /** Pages of dropped collections are still to be freed. */
  get freeing(): boolean {
    return this.freeingSlot !== 0 || this.dropped.length > 0;
  }

  /** Frees about `pages` pages of dropped collections; true while there are more. */
  freeSlice(pages: number): boolean {
    for (let left = pages; left > 0; left--) {
      if (this.freeingSlot === 0) {
        this.freeingSlot = this.dropped.pop() ?? 0;
        this.freeNumber = 0;
        if (this.freeingSlot === 0) return false;
      }
      const slot = this.freeingSlot;
      if (this.freeNumber < this.capacity(slot)) {
        this.freeNumber += this.freeStep(slot, this.freeNumber);
        continue;
      }
      this.arena.free(this.root[slot]);
      this.release(slot);
      this.freeingSlot = 0;
    }
    return this.freeing;
  }

  /** Frees the page of a number, or passes over a stretch without pages; returns how many numbers that was. */
  private freeStep(slot: number, number: number): number {
    let node = this.root[slot];
    let passed = 1;
    for (let level = this.levels[slot] - 1; level > 0 && passed === 1; level--) {
      node = this.read(node, (number >>> (NODE_SHIFT * level)) & NODE_MASK);
      if (node === 0) passed = NODE_ENTRIES ** level;
    }
    if (passed === 1) {
      const ref = this.read(node, number & NODE_MASK);
      if (ref !== 0) this.arena.free(ref);
      this.write(node, number & NODE_MASK, 0);
    }
    this.freeNodes(slot, number + passed);
    return passed;
  }

  /** Frees the nodes below the root that end directly before `number`. */
  private freeNodes(slot: number, number: number): void {
    const last = number - 1;
    for (let level = 1; level < this.levels[slot] && number % NODE_ENTRIES ** level === 0; level++) {
      let parent = this.root[slot];
      for (let above = this.levels[slot] - 1; above > level && parent !== 0; above--) {
        parent = this.read(parent, (last >>> (NODE_SHIFT * above)) & NODE_MASK);
      }
      if (parent === 0) continue;
      const entry = (last >>> (NODE_SHIFT * level)) & NODE_MASK;
      const node = this.read(parent, entry);
      if (node === 0) continue;
      this.arena.free(node);
      this.write(parent, entry, 0);
    }
  }

  /** Calls `visit` with the number and block of every page, in the order of numbers. Pages of other collections may be placed meanwhile. */
  forEachPage(slot: number, visit: (number: number, ref: number) => void): void {
    this.visitNode(this.root[slot], this.entries[slot], this.levels[slot], 0, visit);
  }

  private visitNode(
    node: number,
    entries: number,
    levels: number,
    first: number,
    visit: (number: number, ref: number) => void,
  ): void {
    const span = NODE_ENTRIES ** (levels - 1);
    for (let entry = 0; entry < entries; entry++) {
      const child = this.read(node, entry);
      if (child === 0) continue;
      if (levels === 1) visit(first + entry, child);
      else this.visitNode(child, NODE_ENTRIES, levels - 1, first + entry * span, visit);
    }
  }

  /** Bytes of the page table of a slot. */
  tableBytes(slot: number): number {
    return this.nodeBytes(this.root[slot], this.entries[slot], this.levels[slot]);
  }

  private nodeBytes(node: number, entries: number, levels: number): number {
    let bytes = this.arena.sizeOf(node);
    if (levels === 1) return bytes;
    for (let entry = 0; entry < entries; entry++) {
      const child = this.read(node, entry);
      if (child !== 0) bytes += this.nodeBytes(child, NODE_ENTRIES, levels - 1);
    }
    return bytes;
  }
}

function copyInto<T extends Int32Array | Uint8Array | Uint16Array | Float64Array>(to: T, from: T): T {
  to.set(from);
  return to;
}
