/** Takes the slabs of an image: for the tier's own, as they lie, but for numbers that are another's; or row by row. */
import { allocatePadded, Slice } from '../../bytes/slice.ts';
import { Damage } from '../../rdb/error.ts';
import {
  classUnits,
  Kind,
  KIND_SHIFT,
  MAX_SHARED_BYTES,
  PAGE_BYTES,
  SLAB_BYTES,
  SLAB_RUN,
  SLAB_RUN_REST,
} from '../arena.ts';
import { pageRowBytes } from '../page.ts';
import {
  FLAG_DEADLINE,
  FLAG_PERSISTED,
  FLAG_TREE,
  KEY_LENGTH_MASK,
  keyOffset,
  PAYLOAD_LENGTH_MASK,
  payloadOffset,
  RECORD_HEADER_BYTES,
  TREE_PREFIX_BYTES,
  TYPE_MASK,
  TYPE_SHIFT,
  writeRoot,
} from '../record.ts';
import type { ImageDatabase } from './image-format.ts';
import type { ImageValues } from './image-values.ts';
import { PageSpill } from './page-spill.ts';
import type { RowBuilderOptions } from './row-builder.ts';
import type { RowSink } from './row-sink.ts';
import { SlabReader } from './slab-reader.ts';
import type { ChunkTarget } from './chunk-target.ts';

const SLAB_UNIT_SHIFT = 12;
const SLAB_UNITS = 1 << SLAB_UNIT_SHIFT;
/** All that the first word of a record in a file may have, beside its kind. */
const HEAD_MASK = (TYPE_MASK << TYPE_SHIFT) | FLAG_DEADLINE | FLAG_PERSISTED | FLAG_TREE | KEY_LENGTH_MASK;
const KIND_BITS = 32 - KIND_SHIFT;
const PAGES_A_STEP = 1000;

/** Room for the slabs of one chunk of a file. */
export interface SlabRoom {
  classes: Uint32Array;
  first: number;
  memory: Buffer;
}

/** What takes the slabs of an image. */
export interface SlabTaker {
  readonly counts: { keys: number; expired: number };
  /** Keys met, whatever became of them. */
  readonly keysRead: number;
  /** No more slabs are to be opened before all those that are open were taken, and `settle` called. */
  readonly isFull: boolean;
  settle(): void;
  /** Memory that slabs of these classes are to be read into; `take` follows. Throws Damage. */
  open(classes: Uint32Array): SlabRoom;
  /** Takes what is in slabs now. Throws Damage. */
  take(room: SlabRoom): void;
  /** All slabs have been taken. Throws Damage. */
  finish(): void;
}

/** Throws Damage. */
function checkClasses(classes: Uint32Array): void {
  for (let i = 0; i < classes.length; i++) {
    const cls = classes[i];
    const rest = cls === SLAB_RUN_REST && i > 0 && classes[i - 1] >= SLAB_RUN;
    if (cls !== SLAB_RUN && !rest && classUnits(cls) === 0) throw new Damage('a slab is damaged');
  }
}

/** Slabs of the run that begins at an index, 1 if none does. */
function runLength(classes: Uint32Array, at: number): number {
  let slabs = 1;
  if (classes[at] === SLAB_RUN) while (classes[at + slabs] === SLAB_RUN_REST) slabs++;
  return slabs;
}

/** What a block of so many bytes is; Free for nothing. Nothing in it leads out of it. Throws Damage. */
function kindOf(i32: Int32Array, word: number, bytes: number): number {
  const head = i32[word];
  const kind = head >>> KIND_SHIFT;
  if (head === 0) return Kind.Free;
  if (kind === Kind.Page) {
    if (pageRowBytes(head, PAGE_BYTES) > bytes || bytes > MAX_SHARED_BYTES)
      throw new Damage('a page is damaged');
    return kind;
  }
  if (kind !== Kind.Record) throw new Damage('a block is neither a record nor a page');
  const length = i32[word + 1] & PAYLOAD_LENGTH_MASK;
  const isCut = bytes < RECORD_HEADER_BYTES || payloadOffset(head) + length > bytes;
  const isRootCut = (head & FLAG_TREE) !== 0 && length < TREE_PREFIX_BYTES;
  if (isCut || isRootCut || ((head << KIND_BITS) & ~(HEAD_MASK << KIND_BITS)) !== 0)
    throw new Damage('a record is damaged');
  return kind;
}

/** Reads rows out of the slabs, which do not stay: where not all may fit into memory. */
export class SlabRows implements SlabTaker {
  readonly counts = { keys: 0, expired: 0 };
  readonly keysRead = 0;
  readonly isFull = false;
  private readonly reader: SlabReader;
  /** Numbers of collections by those that they have in the file, which may be any. */
  private readonly slots = new Map<number, number>();

  /** @param spill path of a file for pages that wait for their record */
  constructor(rows: RowSink, databases: readonly ImageDatabase[], spill: string) {
    const named = databases.map((database) => ({ ...database, keyspace: database.index }));
    this.reader = new SlabReader(rows, named, new PageSpill(spill));
  }

  settle(): void {
    // Nothing is kept.
  }

  open(classes: Uint32Array): SlabRoom {
    checkClasses(classes);
    return { classes, first: 0, memory: allocatePadded(classes.length * SLAB_BYTES) };
  }

  take({ classes, memory }: SlabRoom): void {
    const i32 = new Int32Array(memory.buffer, 0, memory.length >>> 2);
    const slabs: number[] = [];
    for (let i = 0; i < classes.length;) {
      const length = runLength(classes, i);
      const run = classes[i] === SLAB_RUN;
      const units = run ? length * SLAB_UNITS : classUnits(classes[i]);
      const end = run ? units : Math.floor(SLAB_UNITS / units) * units;
      for (let unit = 0; unit < end; unit += units) this.look(i32, (i * SLAB_UNITS + unit) << 2, units << 4);
      slabs.push(i, classes[i], run ? length : end);
      i += length;
    }
    this.reader.take({ bytes: memory.buffer as ArrayBuffer, slabs: Int32Array.from(slabs) });
  }

  private look(i32: Int32Array, word: number, bytes: number): void {
    const kind = kindOf(i32, word, bytes);
    const head = i32[word];
    let slotAt = 0;
    if (kind === Kind.Page) slotAt = word + 3;
    else if (kind === Kind.Record && (head & FLAG_TREE) !== 0) slotAt = word + (payloadOffset(head) >>> 2);
    if (slotAt === 0) return;
    let slot = this.slots.get(i32[slotAt]);
    if (slot === undefined) this.slots.set(i32[slotAt], (slot = this.slots.size + 1));
    i32[slotAt] = slot;
  }

  finish(): void {
    this.reader.finish();
  }
}

/** Takes the slabs for the tier's own. */
export class ImageSlabs implements SlabTaker {
  readonly counts = { keys: 0, expired: 0 };
  keysRead = 0;
  private readonly options: RowBuilderOptions;
  private readonly target: ChunkTarget;
  private readonly values: ImageValues;
  /** By a collection's slot in the file, its slot here. */
  private readonly slots = new Map<number, number>();
  /** Slot and database of each tree. */
  private readonly trees: number[] = [];
  private readonly key = new Slice();
  private readonly payload = new Slice();

  constructor(options: RowBuilderOptions, target: ChunkTarget, values: ImageValues) {
    this.options = options;
    this.target = target;
    this.values = values;
  }

  /** Chunks of memory that something is being read into cannot be given away. */
  get isFull(): boolean {
    return this.target.held === 0 && this.target.isFull;
  }

  settle(): void {
    if (this.isFull) this.target.flush();
  }

  open(classes: Uint32Array): SlabRoom {
    checkClasses(classes);
    const { arena } = this.target.tier;
    const first = arena.openSlabs(classes.length);
    const ref = first << SLAB_UNIT_SHIFT;
    const at = (ref & arena.unitMask) << 4;
    const memory = arena.u8[ref >>> arena.chunkShift].subarray(at, at + classes.length * SLAB_BYTES);
    return { classes, first, memory };
  }

  take({ classes, first }: SlabRoom): void {
    const { arena } = this.target.tier;
    for (let i = 0; i < classes.length;) {
      const slabs = runLength(classes, i);
      if (classes[i] === SLAB_RUN) arena.cutRun(first + i, slabs, this.visit);
      else arena.cut(first + i, classes[i], this.visit);
      i += slabs;
    }
  }

  /** Whether a block stays. */
  private readonly visit = (ref: number, bytes: number): boolean => {
    const { arena } = this.target.tier;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const word = (ref & arena.unitMask) << 2;
    const kind = kindOf(i32, word, bytes);
    if (kind === Kind.Record) return this.record(ref, i32, word);
    if (kind === Kind.Page) this.page(ref, i32, word);
    return kind === Kind.Page;
  };

  private record(ref: number, i32: Int32Array, word: number): boolean {
    const { target, options, values, key } = this;
    const { arena, collections } = target.tier;
    const chunk = ref >>> arena.chunkShift;
    const u8 = arena.u8[chunk];
    const view = arena.view[chunk];
    const head = i32[word];
    const base = word << 2;
    const type = (head >>> TYPE_SHIFT) & TYPE_MASK;
    const length = i32[word + 1] & PAYLOAD_LENGTH_MASK;
    const database = options.database >= 0 ? options.database : i32[word + 1] >>> 16;
    const deadline = (head & FLAG_DEADLINE) === 0 ? 0 : view.getFloat64(base + RECORD_HEADER_BYTES, true);
    if ((head & FLAG_DEADLINE) !== 0 && deadline === 0) throw new Damage('a record is damaged');
    values.head(type, i32[word + 2] >>> 24, database, deadline);
    this.keysRead++;
    if (values.isOver(deadline)) {
      this.counts.expired++;
      return false;
    }
    const keyStart = base + keyOffset(head);
    const start = base + payloadOffset(head);
    key.set(u8, view, keyStart, keyStart + (head & KEY_LENGTH_MASK));
    i32[word] = head & ~FLAG_PERSISTED;
    i32[word + 1] = (target.numberOf(database) << 16) | length;
    if ((head & FLAG_TREE) !== 0) {
      const slot = this.slotOf(i32[start >>> 2]);
      if (collections.record[slot] !== 0) throw new Damage('two trees are one');
      collections.setRecord(slot, ref);
      writeRoot(view, start, slot, collections.id[slot]);
      this.trees.push(slot, database);
      return true;
    }
    values.packed(key, type, u8, view, start, length);
    this.counts.keys++;
    target.add(database, key, ref, 0, deadline);
    return true;
  }

  private page(ref: number, i32: Int32Array, word: number): void {
    const slot = this.slotOf(i32[word + 3]);
    this.values.page(slot, i32[word + 2], ref);
    i32[word + 3] = slot;
    this.target.tier.arena.touch(ref);
  }

  private slotOf(there: number): number {
    let slot = this.slots.get(there);
    if (slot === undefined) {
      // Pages come in any order: what was read stays here until all have come.
      if (this.slots.size === 0) this.target.held++;
      slot = this.target.tier.collections.open(0);
      this.slots.set(there, slot);
    }
    return slot;
  }

  finish(): void {
    const { target, trees } = this;
    const { collections } = target.tier;
    // Pages of a collection that was dropped, or of a value that is left out.
    for (const slot of this.slots.values()) if (collections.record[slot] === 0) collections.drop(slot);
    for (let i = 0; i < trees.length; i += 2) this.tree(trees[i], trees[i + 1]);
    while (collections.freeSlice(PAGES_A_STEP));
    if (this.slots.size > 0) target.held--;
  }

  private tree(slot: number, database: number): void {
    const { target, key, payload } = this;
    const { arena, collections } = target.tier;
    const { keyspace } = target.tier.database(0);
    const ref = collections.record[slot];
    const deadline = keyspace.deadline(ref);
    keyspace.key(ref, key);
    keyspace.payload(ref, payload);
    if (this.values.tree(key, keyspace.type(ref), database, deadline, slot, payload)) {
      this.counts.keys++;
      target.add(database, key, ref, slot, deadline);
    } else {
      arena.free(ref);
    }
  }
}
