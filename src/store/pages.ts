import { PAGE_BYTES, type Arena } from './arena.ts';
import { NODE_HEADER_WORDS, NODE_MASK, NODE_SHIFT, type CollectionTable } from './collection-table.ts';
import { HEADER_BYTES, pageHead, PageType, pageType } from './page.ts';

/** A page that its collection names is not there, or is not what it should be. */
export class PageError extends Error {
  readonly code = 'CORRUPT';
}

/**
 * The pages of one collection, open for reading and change: numbers are handed out, taken back and
 * translated to blocks. Recycled: `open` points it at a collection, and its owner saves `next` and
 * `freeHead` in the collection's descriptor after each change.
 *
 * A freed number stays as a page of type Free that is its header alone and names the next free number,
 * in memory and on disk, so that the list of free numbers survives without being kept anywhere else.
 */
export class Pages {
  readonly arena: Arena;
  readonly table: CollectionTable;
  readonly pageBytes: number;
  /** The collection's slot. */
  slot = 0;
  /** The number after the highest one ever used; numbers begin at 1. */
  next = 1;
  /** First free number, 0 when there is none. */
  freeHead = 0;
  /**
   * The collection's page table, as it stands in the collection table; numbers below `capacity` have an
   * entry. It is 0 while look-ups must ask whether their page is in memory.
   */
  private root = 0;
  private levels = 1;
  private capacity = 0;

  constructor(table: CollectionTable, pageBytes = PAGE_BYTES) {
    this.table = table;
    this.arena = table.arena;
    this.pageBytes = pageBytes;
  }

  open(slot: number, next: number, freeHead: number): void {
    this.slot = slot;
    this.next = next;
    this.freeHead = freeHead;
    this.refreshTable();
  }

  /** The block of a page. */
  ref(number: number): number {
    const ref = this.peek(number);
    return ref === 0 ? this.tracked(number) : ref;
  }

  /** The block of a page, 0 when it is not in memory or questions are to be asked. */
  peek(number: number): number {
    return number >>> 0 < this.capacity ? this.lookUp(number) : 0;
  }

  /** The same with all questions asked. */
  private tracked(number: number): number {
    const { table, slot } = this;
    const { residents } = table;
    const ref = table.find(slot, number);
    const id = table.id[slot];
    if (ref === 0) {
      if (residents.link !== null && number > 0 && number < this.next)
        residents.missPage(slot, id, number, this.next);
      throw new PageError(`page ${number} of collection ${id} is missing`);
    }
    residents.access('p', id, number);
    this.arena.use(ref);
    return ref;
  }

  /** The block of a page, 0 when it is not in memory. */
  resident(number: number): number {
    return this.table.find(this.slot, number);
  }

  /** As CollectionTable.find, without what is the same for all pages of the collection. */
  private lookUp(number: number): number {
    const { arena, levels } = this;
    let node = this.root;
    if (levels > 1) {
      if (levels > 2) {
        node = this.entry(node, number >>> (2 * NODE_SHIFT));
        if (node === 0) return 0;
      }
      node = this.entry(node, (number >>> NODE_SHIFT) & NODE_MASK);
      if (node === 0) return 0;
    }
    const at = ((node & arena.unitMask) << 2) + NODE_HEADER_WORDS + (number & NODE_MASK);
    return arena.i32[node >>> arena.chunkShift][at];
  }

  private entry(node: number, index: number): number {
    const { arena } = this;
    return arena.i32[node >>> arena.chunkShift][((node & arena.unitMask) << 2) + NODE_HEADER_WORDS + index];
  }

  /** Reads where the page table is; it moves when it grows. */
  private refreshTable(): void {
    const { table, slot } = this;
    this.root = table.root[slot];
    this.levels = table.levels[slot];
    this.capacity = table.residents.tracking ? 0 : table.capacity(slot);
  }

  private place(number: number, ref: number): void {
    this.table.place(this.slot, number, ref);
    if (number >= this.capacity) this.refreshTable();
  }

  /** A new page, dirty, its header written with no entries; returns its block. Its number is in the header. */
  allocate(type: PageType): number {
    const { arena, pageBytes } = this;
    const ref = pageBytes === PAGE_BYTES ? arena.allocPage() : arena.alloc(pageBytes);
    let number = this.freeHead;
    if (number !== 0) {
      const free = this.ref(number);
      const words = arena.i32[free >>> arena.chunkShift];
      const f = (free & arena.unitMask) << 2;
      if (pageType(words[f]) !== PageType.Free) throw new PageError(`page ${number} is not free`);
      this.freeHead = words[f + 1];
      arena.free(free);
    } else {
      number = this.next++;
    }
    this.place(number, ref);
    if (type === PageType.Inner) this.table.shape++;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const w = (ref & arena.unitMask) << 2;
    i32[w] = pageHead(type);
    i32[w + 1] = pageBytes;
    i32[w + 2] = number;
    i32[w + 3] = this.slot;
    arena.touch(ref);
    return ref;
  }

  /** The number of the page in a block. */
  number(ref: number): number {
    return this.arena.i32[ref >>> this.arena.chunkShift][((ref & this.arena.unitMask) << 2) + 2];
  }

  /** Gives a page back. */
  free(ref: number): void {
    const { arena } = this;
    const number = this.number(ref);
    this.table.shape++;
    arena.free(ref);
    const free = arena.alloc(HEADER_BYTES);
    const i32 = arena.i32[free >>> arena.chunkShift];
    const w = (free & arena.unitMask) << 2;
    i32[w] = pageHead(PageType.Free);
    i32[w + 1] = this.freeHead;
    i32[w + 2] = number;
    i32[w + 3] = this.slot;
    arena.touch(free);
    this.place(number, free);
    this.freeHead = number;
  }

  /** Free numbers, by walking their list; -1 when it is damaged. */
  countFree(): number {
    const { arena } = this;
    let count = 0;
    for (let number = this.freeHead; number !== 0; count++) {
      const ref = this.table.find(this.slot, number);
      if (ref === 0 || count >= this.next) return -1;
      const i32 = arena.i32[ref >>> arena.chunkShift];
      const w = (ref & arena.unitMask) << 2;
      if (pageType(i32[w]) !== PageType.Free || i32[w + 2] !== number) return -1;
      number = i32[w + 1];
    }
    return count;
  }
}
