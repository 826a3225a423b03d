/**
 * Rows of an image on their way into a tier: as they are, but for keys whose time is over, and for trees whose
 * order is that of another server's hash key, which are taken apart and made anew.
 */
import { Slice } from '../../bytes/slice.ts';
import { Damage } from '../../rdb/error.ts';
import { RdbKey } from '../../rdb/visitor.ts';
import { PAGE_BYTES } from '../arena.ts';
import { pageRowBytes } from '../page.ts';
import { TREE_PREFIX_BYTES, writeRoot } from '../record.ts';
import type { ImageValues } from './image-values.ts';
import type { RowBuilder, RowBuilderOptions } from './row-builder.ts';
import type { RowSink } from './row-sink.ts';

/** What is done with the pages that come. */
const Pages = { Gather: 0, Drop: 1, Refuse: 2 } as const;

export class ImageRows implements RowSink {
  readonly key = new RdbKey();
  encoding = 0;
  readonly counts = { keys: 0, expired: 0 };
  /** Keys met, whatever became of them. */
  keysRead = 0;
  private readonly options: RowBuilderOptions;
  private readonly builder: RowBuilder;
  private readonly values: ImageValues;
  private readonly payload = new Slice();
  private pages: number = Pages.Refuse;
  /** The tree whose pages come: its key and root in memory of their own, and its collection in the target's tier. */
  private treeKey = new Slice();
  private root = new Slice();
  private slot = 0;

  constructor(options: RowBuilderOptions, builder: RowBuilder, values: ImageValues) {
    this.options = options;
    this.builder = builder;
    this.values = values;
  }

  database(): void {
    // The header tells.
  }

  private get deadline(): number {
    return Math.max(this.key.expiresAt, 0);
  }

  /** Whether the key is to be there. Throws Damage. */
  private begin(type: number): boolean {
    const { key, options, counts, values } = this;
    this.pages = Pages.Refuse;
    if (options.database >= 0) key.db = options.database;
    values.head(type, this.encoding, key.db, key.expiresAt);
    this.keysRead++;
    if (key.expiresAt < 0 || !values.isOver(key.expiresAt)) return true;
    counts.expired++;
    return false;
  }

  private record(key: Slice, type: number, slot: number, payload: Slice): void {
    this.counts.keys++;
    this.builder.target.record(this.key.db, key, type, slot, this.encoding, this.deadline, payload);
  }

  packed(type: number, u8: Buffer, view: DataView, start: number, length: number): void {
    if (!this.begin(type)) return;
    this.builder.settle();
    const { key } = this.key;
    this.values.packed(key, type, u8, view, start, length);
    this.payload.set(u8, view, start, start + length);
    this.record(key, type, 0, this.payload);
  }

  beginTree(type: number, payload: Slice): void {
    if (!this.begin(type)) {
      this.pages = Pages.Drop;
      return;
    }
    if (payload.length < TREE_PREFIX_BYTES) throw new Damage('the root of a tree is damaged');
    this.builder.settle();
    const { tier } = this.builder.target;
    const { collections } = tier;
    this.values.follow(tier);
    this.pages = Pages.Gather;
    this.treeKey = this.key.key.clone();
    this.root = payload.clone();
    this.slot = collections.open(0);
    writeRoot(this.root.view, this.root.start, this.slot, collections.id[this.slot]);
  }

  page(u8: Buffer, start: number): void {
    if (this.pages === Pages.Refuse) throw new Damage('a page belongs to nothing');
    if (this.pages === Pages.Drop) return;
    const { arena } = this.builder.target.tier;
    const bytes = pageRowBytes(u8.readInt32LE(start), PAGE_BYTES);
    const ref = bytes === PAGE_BYTES ? arena.allocPage() : arena.alloc(bytes);
    const at = (ref & arena.unitMask) << 4;
    u8.copy(arena.u8[ref >>> arena.chunkShift], at, start, start + bytes);
    const i32 = arena.i32[ref >>> arena.chunkShift];
    i32[(at >>> 2) + 3] = this.slot;
    arena.touch(ref);
    this.values.page(this.slot, i32[(at >>> 2) + 2], ref);
  }

  endTree(type: number): void {
    const { slot, root, treeKey, values } = this;
    if (this.pages === Pages.Gather) {
      if (values.tree(treeKey, type, this.key.db, this.deadline, slot, root))
        this.record(treeKey, type, slot, root);
    }
    this.pages = Pages.Refuse;
  }
}
