/**
 * Rows of an image on their way into a tier: as they are, but for keys whose time is over, and for trees whose
 * order is that of another server's hash key, which are taken apart and made anew.
 */
import { Slice } from '../../bytes/slice.ts';
import { Damage } from '../../rdb/error.ts';
import { RdbKey } from '../../rdb/visitor.ts';
import { Type } from '../api.ts';
import { PAGE_BYTES } from '../arena.ts';
import { pageRowBytes } from '../page.ts';
import type { RowBuilder, RowBuilderOptions } from './row-builder.ts';
import type { RowSink } from './row-sink.ts';
import { TREE_BYTES_MIN } from './image-slabs.ts';
import { ValueExport } from './value-export.ts';

/** What is done with the pages that come. */
const Pages = { Pass: 0, Rebuild: 1, Drop: 2, Refuse: 3 } as const;

export class ImageRows implements RowSink {
  readonly key = new RdbKey();
  encoding = 0;
  readonly counts = { keys: 0, expired: 0 };
  /** Keys met, whatever became of them. */
  keysRead = 0;
  private readonly options: RowBuilderOptions;
  private readonly builder: RowBuilder;
  private readonly foreign: boolean;
  private values: ValueExport | null = null;
  private readonly payload = new Slice();
  private pages: number = Pages.Refuse;
  /** The collection that pages are of which pass. */
  private slot = 0;

  /** @param foreign trees are in the order of another hash key, and made anew by `builder` */
  constructor(options: RowBuilderOptions, builder: RowBuilder, foreign: boolean) {
    this.options = options;
    this.builder = builder;
    this.foreign = foreign;
  }

  database(): void {
    // The header tells.
  }

  /** Whether the key is to be there. Throws Damage. */
  private begin(type: number): boolean {
    const { key, options, counts } = this;
    this.pages = Pages.Refuse;
    if (type === Type.None || type > Type.Stream) throw new Damage(`there are no values of type ${type}`);
    if (options.database >= 0) key.db = options.database;
    if (key.db >= options.databases) throw new Damage(`there is no database ${key.db}`);
    this.keysRead++;
    if (key.expiresAt < 0 || key.expiresAt > options.now) return true;
    counts.expired++;
    return false;
  }

  private record(type: number, slot: number, payload: Slice): void {
    const { key, encoding } = this;
    this.counts.keys++;
    this.builder.target.record(key.db, key.key, type, slot, encoding, Math.max(key.expiresAt, 0), payload);
  }

  packed(type: number, u8: Buffer, view: DataView, start: number, length: number): void {
    if (!this.begin(type)) return;
    this.builder.settle();
    this.payload.set(u8, view, start, start + length);
    this.record(type, 0, this.payload);
  }

  beginTree(type: number, payload: Slice): void {
    if (!this.begin(type)) {
      this.pages = Pages.Drop;
      return;
    }
    if (payload.length < TREE_BYTES_MIN) throw new Damage('the root of a tree is damaged');
    if (this.foreign && type !== Type.String && type !== Type.List) {
      const values = (this.values ??= new ValueExport(this.builder));
      this.pages = Pages.Rebuild;
      values.key.db = this.key.db;
      values.key.expiresAt = this.key.expiresAt;
      // In memory of its own: the tree may end in another chunk.
      values.key.key.setSlice(this.key.key.clone());
      values.beginTree(type, payload);
      return;
    }
    this.builder.settle();
    this.pages = Pages.Pass;
    this.slot = this.builder.target.openTree(payload);
    this.record(type, this.slot, payload);
  }

  page(u8: Buffer, start: number): void {
    if (this.pages === Pages.Refuse) throw new Damage('a page belongs to nothing');
    if (this.pages === Pages.Rebuild) this.values!.page(u8, start);
    if (this.pages === Pages.Pass)
      this.builder.target.page(this.slot, u8, start, pageRowBytes(u8.readInt32LE(start), PAGE_BYTES));
  }

  endTree(type: number): void {
    if (this.pages === Pages.Rebuild) this.values!.endTree(type);
    this.pages = Pages.Refuse;
  }
}
