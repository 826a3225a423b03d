/** Takes the slabs of an image: for the tier's own, as they lie, but for numbers that are another's; or row by row. */
import { allocatePadded, Slice } from '../../bytes/slice.ts';
import { Damage } from '../../rdb/error.ts';
import { Type } from '../api.ts';
import { classUnits, Kind, KIND_SHIFT, PAGE_BYTES, SLAB_BYTES, SLAB_RUN, SLAB_RUN_REST } from '../arena.ts';
import { pageRowBytes } from '../page.ts';
import {
  FLAG_DAMAGED,
  FLAG_DEADLINE,
  FLAG_PERSISTED,
  FLAG_TREE,
  KEY_LENGTH_MASK,
  keyOffset,
  NEXT_PAGE_WORD,
  PAYLOAD_LENGTH_MASK,
  payloadOffset,
  RECORD_HEADER_BYTES,
  TYPE_MASK,
  TYPE_SHIFT,
  writeRoot,
} from '../record.ts';
import type { ImageDatabase } from './image-format.ts';
import { PageSpill } from './page-spill.ts';
import type { RowBuilder, RowBuilderOptions } from './row-builder.ts';
import type { RowSink } from './row-sink.ts';
import { SlabReader } from './slab-reader.ts';
import type { ChunkTarget } from './chunk-target.ts';
import { ValueExport } from './value-export.ts';

const SLAB_UNIT_SHIFT = 12;
const SLAB_UNITS = 1 << SLAB_UNIT_SHIFT;
/** A tree's payload has at least these bytes. */
export const TREE_BYTES_MIN = (NEXT_PAGE_WORD + 1) * 4;
const PAGE_NUMBERS = 2 ** 27;
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

/** Reads rows out of the slabs, which do not stay: where not all may fit into memory. */
export class SlabRows implements SlabTaker {
  readonly counts = { keys: 0, expired: 0 };
  readonly keysRead = 0;
  readonly isFull = false;
  private readonly reader: SlabReader;

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
    const slabs: number[] = [];
    for (let i = 0; i < classes.length;) {
      const length = runLength(classes, i);
      const run = classes[i] === SLAB_RUN;
      const units = classUnits(classes[i]);
      slabs.push(i, classes[i], run ? length : Math.floor(SLAB_UNITS / units) * units);
      i += length;
    }
    this.reader.take({ bytes: memory.buffer as ArrayBuffer, slabs: Int32Array.from(slabs) });
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
  /** Where values are made anew whose order is that of another hash key; null: none is. */
  private readonly builder: RowBuilder | null;
  /** By a collection's slot in the file, its slot here. */
  private readonly slots = new Map<number, number>();
  /** Records of trees to be made anew. */
  private readonly foreign: number[] = [];
  private readonly key = new Slice();
  private readonly payload = new Slice();
  private values: ValueExport | null = null;

  constructor(options: RowBuilderOptions, target: ChunkTarget, builder: RowBuilder | null) {
    this.options = options;
    this.target = target;
    this.builder = builder;
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
    const head = i32[word];
    if (head === 0) return false;
    const kind = head >>> KIND_SHIFT;
    if (kind === Kind.Record) return this.record(ref, i32, word, bytes);
    if (kind === Kind.Page) return this.page(ref, i32, word, bytes);
    throw new Damage('a block is neither a record nor a page');
  };

  private record(ref: number, i32: Int32Array, word: number, bytes: number): boolean {
    const { target, options, key } = this;
    const { arena, collections } = target.tier;
    const chunk = ref >>> arena.chunkShift;
    const head = i32[word];
    const type = (head >>> TYPE_SHIFT) & TYPE_MASK;
    const start = payloadOffset(head);
    const length = i32[word + 1] & PAYLOAD_LENGTH_MASK;
    const isTree = (head & FLAG_TREE) !== 0;
    if (start + length > bytes || (head & FLAG_DAMAGED) !== 0 || (isTree && length < TREE_BYTES_MIN))
      throw new Damage('a record is damaged');
    if (type === Type.None || type > Type.Stream) throw new Damage(`there are no values of type ${type}`);
    const database = options.database >= 0 ? options.database : i32[word + 1] >>> 16;
    if (database >= options.databases) throw new Damage(`there is no database ${database}`);
    this.keysRead++;
    const base = word << 2;
    const deadline =
      (head & FLAG_DEADLINE) === 0 ? 0 : arena.view[chunk].getFloat64(base + RECORD_HEADER_BYTES, true);
    if (deadline !== 0 && deadline <= options.now) {
      this.counts.expired++;
      return false;
    }
    const keyStart = base + keyOffset(head);
    key.set(arena.u8[chunk], arena.view[chunk], keyStart, keyStart + (head & KEY_LENGTH_MASK));
    i32[word] = head & ~FLAG_PERSISTED;
    i32[word + 1] = (target.numberOf(database) << 16) | length;
    let slot = 0;
    if (isTree) {
      const at = word + (start >>> 2);
      slot = this.slotOf(i32[at]);
      if (collections.record[slot] !== 0) throw new Damage('two trees are one');
      collections.setRecord(slot, ref);
      writeRoot(arena.view[chunk], at << 2, slot, collections.id[slot]);
      if (this.builder !== null && type !== Type.String && type !== Type.List) {
        this.foreign.push(ref, database);
        return true;
      }
    }
    this.counts.keys++;
    target.add(database, key, ref, slot, deadline);
    return true;
  }

  private page(ref: number, i32: Int32Array, word: number, bytes: number): boolean {
    const { arena, collections } = this.target.tier;
    const number = i32[word + 2];
    if (pageRowBytes(i32[word], PAGE_BYTES) > bytes || number <= 0 || number >= PAGE_NUMBERS)
      throw new Damage('a page is damaged');
    const slot = this.slotOf(i32[word + 3]);
    if (collections.find(slot, number) !== 0) throw new Damage('a page occurs twice');
    i32[word + 3] = slot;
    arena.touch(ref);
    collections.place(slot, number, ref);
    return true;
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
    const { collections } = this.target.tier;
    for (const slot of this.slots.values()) {
      const record = collections.record[slot];
      // Of a collection that was dropped, or of a value that is left out.
      if (record === 0) collections.drop(slot);
      else if (collections.resident[slot] !== this.target.tier.database(0).keyspace.nextPage(record) - 1)
        throw new Damage('not all pages of a tree are there');
    }
    for (let i = 0; i < this.foreign.length; i += 2) this.makeAnew(this.foreign[i], this.foreign[i + 1]);
    while (collections.freeSlice(PAGES_A_STEP));
    if (this.slots.size > 0) this.target.held--;
  }

  private makeAnew(ref: number, database: number): void {
    const { target, payload } = this;
    const { arena, collections } = target.tier;
    const { keyspace } = target.tier.database(0);
    const values = (this.values ??= new ValueExport(this.builder!));
    const slot = keyspace.collection(ref);
    const type = keyspace.type(ref);
    keyspace.key(ref, values.key.key);
    keyspace.payload(ref, payload);
    values.key.db = database;
    values.key.expiresAt = keyspace.deadline(ref) || -1;
    values.beginTree(type, payload);
    collections.forEachPage(slot, (_, page) =>
      values.page(arena.u8[page >>> arena.chunkShift], (page & arena.unitMask) << 4),
    );
    values.endTree(type);
    collections.drop(slot);
    arena.free(ref);
  }
}
