/**
 * The undo journal of one unit of work: how each block was before the unit's first change of it, which
 * blocks were allocated and given up, and what else changed. `rollback` puts everything back.
 *
 * Blocks are kept as they lie (physical undo), whatever structure they belong to: records, pages,
 * segments of key tables, nodes of page tables. What is outside the arena (counts, directories) is kept
 * as functions that restore it. Blocks that are given up stay until `commit`, so that they need no copy.
 *
 * The journal is there only while a unit may have to be undone: when not everything is in memory, or
 * when memory is nearly used up. Otherwise `Arena.journal` is null, and all it costs is asking for that.
 */
import type { Arena } from './arena.ts';

/** Memory that stays for the next unit of work. */
const KEPT_BYTES = 1024 * 1024;
const FIRST_BYTES = 64 * 1024;
const FIRST_PLACES = 256;
const KEPT_PLACES = 4096;

export class Journal {
  /** Number of the current unit, so that whoever saves its state once a unit can tell. */
  unit = 0;

  private readonly arena: Arena;
  /** Blocks that need no copy: those copied already, and those that are new. A hash set of references. */
  private known = new Int32Array(FIRST_PLACES);
  private knownCount = 0;
  /** Blocks that were copied, and where their bytes begin in `bytes`. */
  private kept: number[] = [];
  private bytes = Buffer.alloc(FIRST_BYTES);
  private used = 0;
  private readonly allocations = new Set<number>();
  private frees: number[] = [];
  private restores: (() => void)[] = [];

  constructor(arena: Arena) {
    this.arena = arena;
  }

  /** Bytes of memory that the journal takes. */
  get memoryBytes(): number {
    return this.bytes.length + this.known.byteLength;
  }

  begin(): void {
    this.unit++;
    this.arena.journal = this;
  }

  /** Before a block is changed: copies it, unless that is done or it is new. */
  keep(ref: number): void {
    if (!this.add(ref)) return;
    const { arena } = this;
    const size = arena.sizeOf(ref);
    if (this.used + size > this.bytes.length) {
      const larger = Buffer.alloc(Math.max(this.used + size, 2 * this.bytes.length));
      this.bytes.copy(larger, 0, 0, this.used);
      this.bytes = larger;
    }
    const at = (ref & arena.unitMask) << 4;
    arena.u8[ref >>> arena.chunkShift].copy(this.bytes, this.used, at, at + size);
    this.kept.push(ref, this.used);
    this.used += size;
  }

  /** A block is new: to roll back is to free it. */
  allocated(ref: number): void {
    this.add(ref);
    this.allocations.add(ref);
  }

  /**
   * A block is given up: true when it must stay as it is until the unit commits. One that the unit has
   * made goes at once, so that a value which grows step by step does not need all its sizes together.
   */
  retains(ref: number): boolean {
    if (this.allocations.delete(ref)) return false;
    this.frees.push(ref);
    return true;
  }

  /** Something outside the arena is about to change; `restore` puts it back. Called last to first. */
  onRollback(restore: () => void): void {
    this.restores.push(restore);
  }

  /** Elements [from, to) of an array are about to change. */
  elements(array: Int32Array | Uint16Array | Uint8Array, from: number, to = from + 1): void {
    if (to === from + 1) {
      const old = array[from];
      this.restores.push(() => (array[from] = old));
      return;
    }
    const old = array.slice(from, to);
    this.restores.push(() => array.set(old, from));
  }

  commit(): void {
    const { arena, frees } = this;
    arena.journal = null;
    for (const ref of frees) arena.free(ref);
    this.clear();
  }

  rollback(): void {
    const { arena, kept, restores, allocations } = this;
    arena.journal = null;
    for (let i = restores.length - 1; i >= 0; i--) restores[i]();
    for (let i = 0; i < kept.length; i += 2) {
      const ref = kept[i];
      const at = (ref & arena.unitMask) << 4;
      const from = kept[i + 1];
      this.bytes.copy(arena.u8[ref >>> arena.chunkShift], at, from, from + arena.sizeOf(ref));
    }
    for (const ref of allocations) arena.free(ref);
    this.clear();
  }

  private clear(): void {
    if (this.known.length > KEPT_PLACES) this.known = new Int32Array(FIRST_PLACES);
    else this.known.fill(0);
    this.knownCount = 0;
    this.used = 0;
    this.kept.length = 0;
    this.allocations.clear();
    this.frees.length = 0;
    this.restores.length = 0;
    if (this.bytes.length > KEPT_BYTES) this.bytes = Buffer.alloc(FIRST_BYTES);
  }

  /** Adds a reference to `known`; false when it was there. */
  private add(ref: number): boolean {
    if (this.knownCount * 2 >= this.known.length) this.growKnown();
    if (!this.put(ref)) return false;
    this.knownCount++;
    return true;
  }

  private put(ref: number): boolean {
    const { known } = this;
    const mask = known.length - 1;
    for (let place = Math.imul(ref, 0x9e3779b1) >>> 8; ; place++) {
      const there = known[place & mask];
      if (there === ref) return false;
      if (there !== 0) continue;
      known[place & mask] = ref;
      return true;
    }
  }

  private growKnown(): void {
    const old = this.known;
    this.known = new Int32Array(old.length * 2);
    for (const ref of old) if (ref !== 0) this.put(ref);
  }
}
