/**
 * Reads keys and values out of the slabs of an arena snapshot, in a thread that has nothing but their
 * bytes. What lies in a record is shown as it comes; trees when all slabs have been seen.
 */
import { ByteSink } from '../../bytes/sink.ts';
import { Slice, viewOf } from '../../bytes/slice.ts';
import { showKey } from '../../rdb/error.ts';
import { Type } from '../api.ts';
import { classUnits, Kind, KIND_SHIFT, SLAB_BYTES, SLAB_RUN } from '../arena.ts';
import {
  FLAG_DAMAGED,
  FLAG_DEADLINE,
  FLAG_TREE,
  KEY_LENGTH_MASK,
  keyOffset,
  PAYLOAD_LENGTH_MASK,
  payloadOffset,
  RECORD_HEADER_BYTES,
  TYPE_MASK,
  TYPE_SHIFT,
  TYPE_SYSTEM,
} from '../record.ts';
import { RowError } from '../row-source.ts';
import type { PageSpill } from './page-spill.ts';
import type { RowSink } from './row-sink.ts';

/** Words that tell of a slab or run in a batch: its number, its class (a run: SLAB_RUN), units handed out (a run: its slabs). */
export const SLAB_WORDS_TOLD = 3;

/** Slabs of a snapshot, one after the other. */
export interface SlabBatch {
  bytes: ArrayBuffer;
  /** SLAB_WORDS_TOLD for each. */
  slabs: Int32Array;
}

/** What takes the slabs of a snapshot. */
export interface SlabSink {
  /** Keys met so far. */
  readonly keys: number;
  /** Takes a batch, whose memory it may change, and needs until what it returns resolves. Throws RowError for a damaged value. */
  take(batch: SlabBatch): Promise<void> | void;
  /** All slabs have come. */
  finish(): void;
}

/** What of a database is known beforehand. */
export interface DumpedDatabase {
  index: number;
  /** By which its records name it. */
  keyspace: number;
  keys: number;
  expiring: number;
}

const NO_DATABASE = -1;

/** Logical database by number of its keyspace, -1 for none. */
export function databaseByNumber(databases: readonly DumpedDatabase[]): Int32Array {
  const indexOf = new Int32Array(1 << 16).fill(NO_DATABASE);
  for (const { keyspace, index, keys } of databases) if (keys > 0) indexOf[keyspace] = index;
  return indexOf;
}

export class SlabReader implements SlabSink {
  private readonly databases: readonly DumpedDatabase[];
  private readonly spill: PageSpill;
  private readonly values: RowSink;
  private readonly indexOf: Int32Array;
  private readonly announced = new Set<number>();
  /** Roots of trees: collection's slot, database, type and encoding, deadline, lengths of key and payload, both. */
  private readonly roots = new ByteSink();
  private readonly payload = new Slice();
  /** Keys shown. */
  keys = 0;

  constructor(values: RowSink, databases: readonly DumpedDatabase[], spill: PageSpill) {
    this.databases = databases.filter(({ keys }) => keys > 0);
    this.spill = spill;
    this.values = values;
    this.indexOf = databaseByNumber(databases);
  }

  take(batch: SlabBatch): void {
    const memory = Buffer.from(batch.bytes);
    const i32 = new Int32Array(batch.bytes, 0, batch.bytes.byteLength >>> 2);
    // Database by database, so that the file need not go back and forth between them all the time.
    for (const { index } of this.databases) this.takeRecords(batch, memory, i32, index);
    if (this.databases.length > 0) this.takePages(batch, memory, i32);
  }

  private announce(index: number): void {
    const database = this.databases.find((known) => known.index === index)!;
    this.announced.add(index);
    this.values.database(index, database.keys, database.expiring);
  }

  private takeRecords(batch: SlabBatch, u8: Buffer, i32: Int32Array, database: number): void {
    const { slabs } = batch;
    const view = viewOf(batch.bytes);
    const { indexOf } = this;
    for (let told = 0, slab = 0; told < slabs.length; told += SLAB_WORDS_TOLD) {
      const run = slabs[told + 1] === SLAB_RUN;
      const units = run ? 1 : classUnits(slabs[told + 1]);
      const end = run ? 1 : slabs[told + 2];
      const first = (slab * SLAB_BYTES) >>> 2;
      for (let unit = 0; unit < end; unit += units) {
        const word = first + (unit << 2);
        const head = i32[word];
        if (head >>> KIND_SHIFT !== Kind.Record || indexOf[i32[word + 1] >>> 16] !== database) continue;
        const type = (head >>> TYPE_SHIFT) & TYPE_MASK;
        if (type !== Type.None && type !== TYPE_SYSTEM) this.record(u8, view, i32, word, database);
      }
      slab += run ? slabs[told + 2] : 1;
    }
  }

  private record(u8: Buffer, view: DataView, i32: Int32Array, word: number, database: number): void {
    const { values } = this;
    const { key } = values;
    const head = i32[word];
    const base = word << 2;
    const start = base + keyOffset(head);
    const deadline = (head & FLAG_DEADLINE) === 0 ? -1 : view.getFloat64(base + RECORD_HEADER_BYTES, true);
    const payload = base + payloadOffset(head);
    const length = i32[word + 1] & PAYLOAD_LENGTH_MASK;
    const type = (head >>> TYPE_SHIFT) & TYPE_MASK;
    if ((head & FLAG_DAMAGED) !== 0)
      throw new RowError(
        `the value of key ${showKey(u8.subarray(start, start + (head & KEY_LENGTH_MASK)))} is damaged`,
      );
    this.keys++;
    if ((head & FLAG_TREE) !== 0) {
      const { roots } = this;
      const keyLength = head & KEY_LENGTH_MASK;
      roots.u32(i32[payload >>> 2]);
      roots.u32(database);
      roots.u32(type | ((i32[word + 2] >>> 24) << 8));
      roots.ensure(8);
      roots.view.setFloat64(roots.pos, deadline, true);
      roots.pos += 8;
      roots.u32(keyLength);
      roots.u32(length);
      roots.copy(u8, start, start + keyLength);
      roots.copy(u8, payload, payload + length);
      return;
    }
    if (!this.announced.has(database)) this.announce(database);
    key.db = database;
    key.expiresAt = deadline;
    values.encoding = i32[word + 2] >>> 24;
    key.key.set(u8, view, start, start + (head & KEY_LENGTH_MASK));
    values.packed(type, u8, view, payload, length);
  }

  private takePages(batch: SlabBatch, u8: Buffer, i32: Int32Array): void {
    const { slabs } = batch;
    for (let told = 0, slab = 0; told < slabs.length; told += SLAB_WORDS_TOLD) {
      const run = slabs[told + 1] === SLAB_RUN;
      const units = run ? 1 : classUnits(slabs[told + 1]);
      const end = run ? 0 : slabs[told + 2];
      const first = (slab * SLAB_BYTES) >>> 2;
      for (let unit = 0; unit < end; unit += units) {
        const word = first + (unit << 2);
        const head = i32[word];
        if (head >>> KIND_SHIFT !== Kind.Page) continue;
        this.spill.add(i32[word + 3], u8, word << 2);
      }
      slab += run ? slabs[told + 2] : 1;
    }
  }

  /** All slabs have come: shows the trees. */
  finish(): void {
    const { roots, values } = this;
    const { u8, view } = roots;
    const page = (memory: Buffer, start: number): void => values.page(memory, start);
    for (let pos = 0; pos < roots.pos;) {
      const slot = view.getInt32(pos, true);
      const database = view.getInt32(pos + 4, true);
      const type = u8[pos + 8];
      values.encoding = u8[pos + 9];
      const keyStart = pos + 28;
      const keyEnd = keyStart + view.getInt32(pos + 20, true);
      const end = keyEnd + view.getInt32(pos + 24, true);
      if (!this.announced.has(database)) this.announce(database);
      values.key.db = database;
      values.key.expiresAt = view.getFloat64(pos + 12, true);
      values.key.key.set(u8, view, keyStart, keyEnd);
      this.payload.set(u8, view, keyEnd, end);
      values.beginTree(type, this.payload);
      this.spill.forEach(slot, page);
      values.endTree(type);
      pos = end;
    }
    this.spill.close();
  }
}
