/**
 * Reads keys and values out of an engine's rows, of one view of it, in the order of their keys: values
 * that lie in their rows are shown as they come; of trees the roots come first and are kept, then the
 * pages of one collection after the other.
 */
import { ByteSink } from '../../bytes/sink.ts';
import { SLICE_PADDING, Slice, viewOf } from '../../bytes/slice.ts';
import { DAMAGED_LENGTH, type Engine } from '../../engines/engine.ts';
import { showKey } from '../../rdb/error.ts';
import {
  KEY_ROW_PREFIX,
  LONG_KEY_ROW_BYTES,
  RowKind,
  VALUE_FLAG_DAMAGED,
  VALUE_FLAG_DEADLINE,
  VALUE_FLAG_TREE,
  VALUE_HEADER_BYTES,
} from '../row-format.ts';
import { collectionOfRoot } from '../record.ts';
import { RowError } from '../row-source.ts';
import type { RowSink } from './row-sink.ts';
import type { DumpedDatabase } from './slab-reader.ts';

const CHUNK_BYTES = 1024 * 1024;
/** Bytes before the key of a root that is kept: type and encoding, database, deadline, lengths of key and payload. */
const ROOT_BYTES = 24;

export class RowDump {
  keys = 0;
  private readonly values: RowSink;
  /** By id in rows. */
  private readonly databases = new Map<number, DumpedDatabase>();
  private readonly announced = new Set<number>();
  private readonly roots = new ByteSink();
  /** Where the root of a collection is kept, by its id. */
  private readonly rootOf = new Map<number, number>();
  private readonly payload = new Slice();
  /** The collection whose pages come, and its type; -1: none that is wanted. */
  private tree = -1;
  private treeType = 0;

  /** @param databases `keyspace` is the id that rows name a database by */
  constructor(values: RowSink, databases: readonly DumpedDatabase[]) {
    this.values = values;
    for (const database of databases) this.databases.set(database.keyspace, database);
  }

  /** Reads all rows. `opened` is called when the view is taken. Throws RowError for a damaged row. */
  async run(engine: Engine, opened: () => void): Promise<void> {
    let first = true;
    for await (const { bytes, length } of engine.scan({
      start: Uint8Array.of(RowKind.LongKey),
      chunkBytes: CHUNK_BYTES,
    })) {
      if (first) opened();
      first = false;
      const u8 = Buffer.from(new ArrayBuffer(length + SLICE_PADDING), 0, length);
      u8.set(new Uint8Array(bytes, 0, length));
      this.take(u8, length);
    }
    if (first) opened();
    this.endTree();
  }

  private take(u8: Buffer, length: number): void {
    const view = viewOf(u8.buffer);
    for (let pos = 0; pos < length;) {
      const start = pos + 8;
      const valueStart = start + view.getUint32(pos, true);
      const valueLength = view.getUint32(pos + 4, true);
      if (valueLength === DAMAGED_LENGTH)
        throw new RowError(`row ${u8.toString('hex', start, valueStart)} of the engine is damaged`);
      pos = valueStart + valueLength;
      switch (u8[start]) {
        case RowKind.Key:
        case RowKind.LongKey:
          this.key(u8, view, start, valueStart, pos);
          break;
        case RowKind.Page:
          this.page(u8, view, start, valueStart);
          break;
      }
    }
  }

  private key(u8: Buffer, view: DataView, start: number, valueStart: number, end: number): void {
    const database = this.databases.get(view.getUint32(start + 1));
    if (database === undefined) return; // of a database that is gone
    const { values } = this;
    const { key } = values;
    const flags = u8[valueStart + 1];
    let pos = valueStart + VALUE_HEADER_BYTES;
    key.db = database.index;
    key.expiresAt = -1;
    if ((flags & VALUE_FLAG_DEADLINE) !== 0) {
      key.expiresAt = view.getFloat64(pos, true);
      pos += 8;
    }
    if (u8[start] === RowKind.LongKey && valueStart - start === LONG_KEY_ROW_BYTES) {
      const length = view.getUint32(pos, true);
      key.key.set(u8, view, pos + 4, pos + 4 + length);
      pos += 4 + length;
    } else {
      key.key.set(u8, view, start + KEY_ROW_PREFIX, valueStart);
    }
    if ((flags & VALUE_FLAG_DAMAGED) !== 0)
      throw new RowError(`the value of key ${showKey(key.key.toBuffer())} is damaged`);
    this.keys++;
    const type = u8[valueStart];
    values.encoding = u8[valueStart + 2];
    if ((flags & VALUE_FLAG_TREE) !== 0) {
      this.keepRoot(type, u8, view, pos, end);
      return;
    }
    this.announce(database);
    values.packed(type, u8, view, pos, end - pos);
  }

  private announce(database: DumpedDatabase): void {
    if (this.announced.has(database.index)) return;
    this.announced.add(database.index);
    this.values.database(database.index, database.keys, database.expiring);
  }

  private keepRoot(type: number, u8: Buffer, view: DataView, start: number, end: number): void {
    const { roots } = this;
    const { key } = this.values;
    const id = collectionOfRoot(view, start);
    this.rootOf.set(id, roots.pos);
    roots.u32(type | (this.values.encoding << 8));
    roots.u32(key.db);
    roots.ensure(8);
    roots.view.setFloat64(roots.pos, key.expiresAt, true);
    roots.pos += 8;
    roots.u32(key.key.length);
    roots.u32(end - start);
    roots.slice(key.key);
    roots.copy(u8, start, end);
  }

  private page(u8: Buffer, view: DataView, start: number, valueStart: number): void {
    const id = view.getUint16(start + 1) * 2 ** 32 + view.getUint32(start + 3);
    if (id !== this.tree) {
      this.endTree();
      this.beginTree(id);
    }
    if (this.treeType !== 0) this.values.page(u8, valueStart);
  }

  private beginTree(id: number): void {
    this.tree = id;
    const at = this.rootOf.get(id);
    if (at === undefined) return; // of a collection that is gone, or an index of deadlines
    const { values, roots } = this;
    const { u8, view } = roots;
    const keyEnd = at + ROOT_BYTES + view.getUint32(at + 16, true);
    const { key } = values;
    key.db = view.getUint32(at + 4, true);
    key.expiresAt = view.getFloat64(at + 8, true);
    key.key.set(u8, view, at + ROOT_BYTES, keyEnd);
    this.payload.set(u8, view, keyEnd, keyEnd + view.getUint32(at + 20, true));
    this.treeType = u8[at];
    values.encoding = u8[at + 1];
    values.beginTree(this.treeType, this.payload);
  }

  private endTree(): void {
    if (this.treeType === 0) return;
    for (const database of this.databases.values())
      if (database.index === this.values.key.db) this.announce(database);
    this.values.endTree(this.treeType);
    this.rootOf.delete(this.tree);
    this.treeType = 0;
  }
}
