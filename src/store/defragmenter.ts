/**
 * Makes memory usable again, and gives it back to the system, when much of what is held has no data in it: blocks
 * are moved out of slabs that are sparse, and out of the chunk with the fewest slabs in use, until these are
 * empty. In slices, between units of work, and only while there is enough to be won.
 *
 * What leads to a block is found from the block itself: a record by the hash of its key, a page by its collection
 * and number, a node of a page table likewise, a segment of a key table by the records it names. A block that
 * nobody leads to, that a unit of work waits for, or that waits for its delete row stays where it is: the slab
 * then goes on being used.
 */
import { Kind, KIND_SHIFT, type Arena } from './arena.ts';
import type { CollectionTable } from './collection-table.ts';
import { isSegment, slotOfSegment } from './key-table.ts';
import type { Keyspace } from './keyspace.ts';
import { TYPE_MASK, TYPE_SHIFT, TYPE_SYSTEM } from './record.ts';
import type { Residents } from './residents.ts';
import type { RowWriter } from './row-format.ts';

/** Slabs are emptied from where this part of them could be spared, and 1 MB, on… */
const SPARSE_SHARE = 1 / 10;
const SPARSE_MIN = 1024 * 1024;
/** … until of no class more than one slab in so many could. */
const DENSE_SHARE = 20;
/** A chunk is emptied when so many more slabs than its own are free, as a part of a chunk, and of all. */
const FREE_CHUNKS = 1.25;
const FREE_SHARE = 1 / 10;
/** After a round through the slabs, and after a chunk that could not be emptied. */
const REST_MS = 1000;

export interface DefragmenterGround {
  readonly arena: Arena;
  readonly collections: CollectionTable;
  readonly residents: Residents;
  readonly rows: RowWriter;
  keyspaceOf(record: number): Keyspace | undefined;
  /** All there are. */
  allKeyspaces(): Iterable<Keyspace | undefined>;
}

export class Defragmenter {
  /** Blocks moved since the start. */
  moved = 0;

  private readonly ground: DefragmenterGround;
  private readonly arena: Arena;
  private readonly relocate: (ref: number) => number;
  /** Slabs are to be emptied until none is sparse. */
  private sparse = false;
  /** The slab that was looked at last, and how many have been since one was emptied. */
  private slab = 0;
  private passed = 0;
  private slabsRestUntil = 0;
  private chunksRestUntil = 0;
  /** A block of the slab at hand could not be moved; there was no room for it. */
  private stuck = false;
  private roomless = false;

  constructor(ground: DefragmenterGround) {
    this.ground = ground;
    const { arena } = ground;
    this.arena = arena;
    this.relocate = (ref) => arena.relocate(ref);
  }

  /** Works for about `budgetMs`; true while there is more to do. */
  slice(budgetMs: number): boolean {
    const { arena } = this;
    // What is moved under a snapshot would have to be kept for it.
    if (arena.snapshot !== null || arena.journal !== null) return false;
    const start = performance.now();
    this.sparse ||=
      start >= this.slabsRestUntil &&
      arena.sparseBytes > Math.max(SPARSE_MIN, arena.slabBytes * SPARSE_SHARE);
    do {
      if (!this.step()) return false;
    } while (performance.now() - start < budgetMs);
    return true;
  }

  /** Memory is being won. */
  get active(): boolean {
    return this.sparse || this.arena.closedChunk >= 0;
  }

  /** Looks at one slab, and empties it if that is worth it; false when there is nothing to do. */
  private step(): boolean {
    const { arena } = this;
    if (arena.closedChunk >= 0) return this.stepThroughChunk();
    if (this.sparse) return this.stepThroughSparse();
    const { freeSlabs, slabsPerChunk } = arena;
    if (freeSlabs < Math.max(FREE_CHUNKS * slabsPerChunk, FREE_SHARE * (freeSlabs + arena.slabsInUse)))
      return false;
    if (performance.now() < this.chunksRestUntil) return false;
    const chunk = arena.emptiestChunk();
    if (chunk < 0) return false;
    arena.closeChunk(chunk);
    this.slab = chunk * slabsPerChunk - 1;
    return true;
  }

  /** The next slab of the closed chunk, which is gone with its last block. */
  private stepThroughChunk(): boolean {
    const { arena } = this;
    this.slab = arena.nextSlab(this.slab);
    if (Math.floor(this.slab / arena.slabsPerChunk) === arena.closedChunk) {
      this.empty(this.slab);
      if (!this.roomless) return true;
    }
    arena.openChunk();
    this.chunksRestUntil = performance.now() + REST_MS;
    return false;
  }

  /** The next slab in the order of addresses. */
  private stepThroughSparse(): boolean {
    const { arena } = this;
    this.slab = arena.nextSlab(this.slab);
    if (this.slab !== 0 && arena.isSparse(this.slab, DENSE_SHARE)) {
      arena.closeSlab(this.slab);
      if (this.empty(this.slab)) this.passed = 0;
      else arena.openSlabAgain(this.slab);
    }
    if (++this.passed <= arena.slabsInUse + 1) return true;
    this.passed = 0;
    this.sparse = false;
    this.slabsRestUntil = performance.now() + REST_MS;
    return true;
  }

  /** Moves the blocks of a slab elsewhere; false when some stay. */
  private empty(slab: number): boolean {
    this.stuck = false;
    this.roomless = false;
    this.arena.forEachBlock(slab, this.visit);
    return !this.stuck;
  }

  private readonly visit = (ref: number): void => {
    if (this.roomless) return;
    if (!this.arena.hasRoomLike(ref)) this.stuck = this.roomless = true;
    else if (!this.ground.residents.isPinned(ref) && this.move(ref)) this.moved++;
    else this.stuck = true;
  };

  private move(ref: number): boolean {
    const { arena, relocate } = this;
    const { collections } = this.ground;
    const head = arena.i32[ref >>> arena.chunkShift][(ref & arena.unitMask) << 2];
    switch (head >>> KIND_SHIFT) {
      case Kind.Record:
        return this.moveRecord(ref, (head >>> TYPE_SHIFT) & TYPE_MASK);
      case Kind.Page:
        return collections.movePage(ref, relocate);
      default:
        return isSegment(head) ? this.moveSegment(ref) : collections.moveNode(ref, relocate);
    }
  }

  private moveRecord(ref: number, type: number): boolean {
    const keyspace = this.ground.keyspaceOf(ref);
    if (keyspace === undefined || keyspace.droppedAt !== 0) return false;
    if (type === TYPE_SYSTEM) return keyspace.expiry.move(ref, this.relocate);
    const hash = this.ground.rows.hashOf(ref);
    if (type !== 0) return keyspace.moveRecord(ref, hash, this.relocate);
    // Of a key that is gone, which the engine knows.
    if (!this.arena.isClean(ref) || keyspace.held > 0) return false;
    keyspace.evict(ref, hash, type);
    return true;
  }

  private moveSegment(ref: number): boolean {
    const { arena, relocate } = this;
    const words = arena.i32[ref >>> arena.chunkShift];
    const at = slotOfSegment(words, (ref & arena.unitMask) << 2);
    if (at >= 0) {
      const keyspace = this.ground.keyspaceOf(words[at + 1]);
      if (keyspace === undefined || keyspace.droppedAt !== 0) return false;
      return keyspace.table.moveSegment(ref, words[at], relocate);
    }
    for (const keyspace of this.ground.allKeyspaces())
      if (keyspace?.droppedAt === 0 && keyspace.table.moveEmptySegment(ref, relocate)) return true;
    return false;
  }
}
