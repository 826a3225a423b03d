/**
 * Values of an image on their way into a tier. The checksums of a file tell of damage, not of what a program may have
 * written into it: each value is looked into as `ardent check` does, in the thread that reads, before it is passed
 * on. Trees are put together in the target's tier for it.
 */
import { Slice } from '../../bytes/slice.ts';
import { Damage, showKey } from '../../rdb/error.ts';
import { Type } from '../api.ts';
import type { Hasher } from '../hash.ts';
import { HEADER_BYTES } from '../page.ts';
import { NEXT_PAGE_WORD } from '../record.ts';
import { INLINE_STRING_MAX } from '../string-value.ts';
import type { Tier } from '../tier.ts';
import { Values } from '../values.ts';
import type { RowBuilder, RowBuilderOptions } from './row-builder.ts';
import { ValueExport } from './value-export.ts';

/** The largest of the numbers by which records note how a value is encoded. */
const ENCODING_MAX = 2;
const PAGES_A_STEP = 1000;
/** Deadlines are below. */
const DEADLINE_END = 2 ** 63;

export class ImageValues {
  private tier!: Tier;
  private readonly hasher: Hasher;
  /** Where values are made anew whose order is that of another hash key; null: none is. */
  private readonly builder: RowBuilder | null;
  private readonly options: RowBuilderOptions;
  private values!: Values;
  private exported: ValueExport | null = null;
  /** By collection, the largest number of its pages; and those of all together. */
  private readonly last = new Map<number, number>();
  private pages = 0;

  /**
   * @param hasher by which the trees of the file are ordered
   * @param builder makes values anew whose trees are ordered by another hasher; null: they stay
   */
  constructor(options: RowBuilderOptions, tier: Tier, hasher: Hasher, builder: RowBuilder | null) {
    this.options = options;
    this.hasher = hasher;
    this.builder = builder;
    this.follow(tier);
  }

  /** Trees are put together in this tier from now on. */
  follow(tier: Tier): void {
    if (tier === this.tier) return;
    const { arena, collections, ahead } = tier;
    this.tier = tier;
    this.values = new Values({ arena, collections, ahead, hasher: this.hasher, dropCollection: () => {} });
  }

  /** What every record has. Throws Damage. */
  head(type: number, encoding: number, database: number, deadline: number): void {
    const { databases } = this.options;
    if (type === Type.None || type > Type.Stream) throw new Damage(`there are no values of type ${type}`);
    if (encoding > ENCODING_MAX) throw new Damage(`there is no encoding ${encoding}`);
    if (database >= databases) throw new Damage(`there is no database ${database}`);
    if (deadline !== 0 && !(Number.isInteger(deadline) && deadline < DEADLINE_END))
      throw new Damage(`a key expires at ${deadline}`);
  }

  /** Whether the time of a key with that deadline, 0 for none, is over. */
  isOver(deadline: number): boolean {
    return deadline !== 0 && deadline <= this.options.now;
  }

  private refuse(key: Slice, reason: string): never {
    throw new Damage(`the value of key ${showKey(key.toBuffer())} is damaged: ${reason}`);
  }

  /** A value that lies in its record. Throws Damage. */
  packed(key: Slice, type: number, u8: Buffer, view: DataView, start: number, length: number): void {
    if (type === Type.String) {
      if (length > INLINE_STRING_MAX) this.refuse(key, `a string of ${length} bytes`);
      return;
    }
    const handle = this.values.of(type);
    handle.value.look(u8, view, start, length, false);
    const reason = length === 0 ? 'it is empty' : handle.check();
    if (reason !== null) this.refuse(key, reason);
  }

  /** A page, which lies in the tier. Throws Damage. */
  page(slot: number, number: number, ref: number): void {
    const { collections } = this.tier;
    // Each has a page of every number up to the largest, so that these are no more than fit the file.
    const last = this.last.get(slot) ?? 0;
    if (number > last) {
      this.pages += number - last;
      this.last.set(slot, number);
    }
    if (number <= 0 || this.pages > this.options.size / HEADER_BYTES) throw new Damage('a page is damaged');
    if (collections.find(slot, number) !== 0) throw new Damage('a page occurs twice');
    collections.place(slot, number, ref);
  }

  /**
   * A tree whose pages have all come; `payload` is its root. Whether it is to be passed on as it is: otherwise its value
   * was, and its pages are gone. Throws Damage.
   */
  tree(key: Slice, type: number, database: number, deadline: number, slot: number, payload: Slice): boolean {
    const { collections } = this.tier;
    const { u8, view, start, length } = payload;
    const handle = this.values.of(type);
    this.last.delete(slot);
    if (length !== handle.rootBytes) this.refuse(key, 'its root is cut off');
    if (collections.resident[slot] !== view.getInt32(start + 4 * NEXT_PAGE_WORD, true) - 1)
      this.refuse(key, 'not all pages of its tree are there');
    handle.value.look(u8, view, start, length, true);
    handle.opened();
    const reason = handle.check();
    if (reason !== null) this.refuse(key, reason);
    if (this.builder === null || type === Type.String || type === Type.List || type === Type.Stream)
      return true;
    this.makeAnew(key, type, database, deadline, slot, payload);
    return false;
  }

  private makeAnew(
    key: Slice,
    type: number,
    database: number,
    deadline: number,
    slot: number,
    payload: Slice,
  ): void {
    const { arena, collections } = this.tier;
    const values = (this.exported ??= new ValueExport(this.builder!));
    values.key.key.setSlice(key);
    values.key.db = database;
    values.key.expiresAt = deadline || -1;
    values.beginTree(type, payload);
    collections.forEachPage(slot, (_, page) =>
      values.page(arena.u8[page >>> arena.chunkShift], (page & arena.unitMask) << 4),
    );
    collections.drop(slot);
    while (collections.freeSlice(PAGES_A_STEP));
    values.endTree(type);
  }
}
