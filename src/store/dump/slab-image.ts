/**
 * From the slabs of an arena snapshot to those of an image: as they lie, but for what is no record or page of
 * a database, which becomes zeros, and for the number by which a record names its database.
 */
import { showKey } from '../../rdb/error.ts';
import { Type } from '../api.ts';
import { classUnits, Kind, KIND_SHIFT, SLAB_BYTES, SLAB_RUN, SLAB_RUN_REST } from '../arena.ts';
import {
  FLAG_DAMAGED,
  FLAG_PERSISTED,
  KEY_LENGTH_MASK,
  keyOffset,
  PAYLOAD_LENGTH_MASK,
  TYPE_MASK,
  TYPE_SHIFT,
  TYPE_SYSTEM,
} from '../record.ts';
import { RowError } from '../row-source.ts';
import type { ImageWriter } from './image-writer.ts';
import {
  databaseByNumber,
  SLAB_WORDS_TOLD,
  type DumpedDatabase,
  type SlabBatch,
  type SlabSink,
} from './slab-reader.ts';

const SLAB_WORDS = SLAB_BYTES / 4;

export class SlabImage implements SlabSink {
  /** Keys written. */
  keys = 0;
  private readonly writer: ImageWriter;
  private readonly indexOf: Int32Array;

  constructor(writer: ImageWriter, databases: readonly DumpedDatabase[]) {
    this.writer = writer;
    this.indexOf = databaseByNumber(databases);
  }

  take(batch: SlabBatch): Promise<void> {
    const { slabs } = batch;
    const u8 = Buffer.from(batch.bytes);
    const i32 = new Int32Array(batch.bytes, 0, batch.bytes.byteLength >>> 2);
    const classes: number[] = [];
    for (let told = 0, slab = 0; told < slabs.length; told += SLAB_WORDS_TOLD) {
      const cls = slabs[told + 1];
      const run = cls === SLAB_RUN;
      const length = run ? slabs[told + 2] : 1;
      const from = slab * SLAB_WORDS;
      slab += length;
      if (
        !this.keep(u8, i32, from, length * SLAB_WORDS, run ? 0 : classUnits(cls) << 2, slabs[told + 2] << 2)
      )
        continue;
      // What is empty is left out.
      const to = classes.length * SLAB_WORDS;
      if (to !== from) i32.copyWithin(to, from, from + length * SLAB_WORDS);
      for (let i = 0; i < length; i++) classes.push(run ? (i === 0 ? SLAB_RUN : SLAB_RUN_REST) : cls);
    }
    return this.writer.slabs(classes, u8);
  }

  finish(): void {
    // Nothing is kept back.
  }

  /**
   * Clears what does not belong into the file.
   * @param words of the slab or run
   * @param step words of a block; 0: there is only one
   * @param fresh words that were ever handed out
   * @returns whether anything is left
   */
  private keep(
    u8: Buffer,
    i32: Int32Array,
    from: number,
    words: number,
    step: number,
    fresh: number,
  ): boolean {
    let found = false;
    if (step === 0) return this.belongs(u8, i32, from);
    for (let word = from; word < from + fresh; word += step) {
      if (this.belongs(u8, i32, word)) found = true;
      else i32.fill(0, word, word + step);
    }
    i32.fill(0, from + fresh, from + words);
    return found;
  }

  private belongs(u8: Buffer, i32: Int32Array, word: number): boolean {
    const head = i32[word];
    const kind = head >>> KIND_SHIFT;
    if (kind === Kind.Page) return true;
    if (kind !== Kind.Record) return false;
    const index = this.indexOf[i32[word + 1] >>> 16];
    const type = (head >>> TYPE_SHIFT) & TYPE_MASK;
    if (index < 0 || type === Type.None || type === TYPE_SYSTEM) return false;
    if ((head & FLAG_DAMAGED) !== 0) {
      const start = (word << 2) + keyOffset(head);
      const key = u8.subarray(start, start + (head & KEY_LENGTH_MASK));
      throw new RowError(`the value of key ${showKey(key)} is damaged`);
    }
    i32[word] = head & ~FLAG_PERSISTED;
    i32[word + 1] = (index << 16) | (i32[word + 1] & PAYLOAD_LENGTH_MASK);
    this.keys++;
    return true;
  }
}
