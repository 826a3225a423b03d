/** Shows stored values to an RDB visitor: packed ones wherever their bytes lie, trees page by page. */
import { Slice } from '../../bytes/slice.ts';
import { RdbKey, type RdbVisitor } from '../../rdb/visitor.ts';
import { Type } from '../api.ts';
import { PAGE_BYTES } from '../arena.ts';
import { PageType, pageType } from '../page.ts';
import { FLAG_PERSISTED, FLAG_TREE } from '../record.ts';
import { Tier } from '../tier.ts';
import { Values } from '../values.ts';
import type { RowSink } from './row-sink.ts';
import { showStream } from './stream-events.ts';

/** Milliseconds: freeing what was shown is not bound here, where nobody waits for a turn. */
const NO_HURRY_MS = 1000;

export class ValueExport implements RowSink {
  readonly key = new RdbKey();
  encoding = 0;
  private readonly visitor: RdbVisitor;
  /** Where one tree at a time is put together. */
  private readonly scratch = new Tier({ databases: 1, hashKey: [0, 0] });
  private readonly values = new Values(this.scratch);
  private readonly part = new Slice();
  private root = 0;
  private slot = 0;

  constructor(visitor: RdbVisitor) {
    this.visitor = visitor;
  }

  database(index: number, keys: number, expiring: number): void {
    this.visitor.resize(index, keys, expiring);
  }

  packed(type: number, u8: Buffer, view: DataView, start: number, length: number): void {
    if (type === Type.String) {
      const { key, part, visitor } = this;
      key.type = Type.String;
      key.count = length;
      visitor.beginKey(key);
      part.set(u8, view, start, start + length);
      visitor.stringPart(part);
      visitor.endKey();
      return;
    }
    this.values.of(type).value.look(u8, view, start, length, false);
    this.show(type);
  }

  beginTree(type: number, payload: Slice): void {
    const { scratch, key } = this;
    const { arena, collections } = scratch;
    const keyspace = scratch.database(0).keyspace;
    this.root = keyspace.install(key.key, 0, type, payload, 0, 0, true);
    this.slot = collections.add(1, this.root);
    const i32 = arena.i32[this.root >>> arena.chunkShift];
    const word = (this.root & arena.unitMask) << 2;
    i32[word] = (i32[word] | FLAG_TREE) & ~FLAG_PERSISTED;
    i32[keyspace.payloadWord(this.root)] = this.slot;
  }

  page(u8: Buffer, start: number): void {
    if (pageType(u8.readInt32LE(start)) === PageType.Free) return;
    const { arena, collections } = this.scratch;
    const ref = arena.allocPage();
    const at = (ref & arena.unitMask) << 4;
    u8.copy(arena.u8[ref >>> arena.chunkShift], at, start, start + PAGE_BYTES);
    const i32 = arena.i32[ref >>> arena.chunkShift];
    i32[(at >>> 2) + 3] = this.slot;
    collections.place(this.slot, i32[(at >>> 2) + 2], ref);
  }

  /** Shows the tree, and gives it up. Throws PageError when a page is missing. */
  endTree(type: number): void {
    const { scratch } = this;
    const keyspace = scratch.database(0).keyspace;
    const handle = this.values.of(type);
    handle.value.open(keyspace, this.key.key, 0, type, this.root);
    handle.opened();
    this.show(type);
    keyspace.removeRecord(this.root, 0);
    while (scratch.backgroundSlice(NO_HURRY_MS));
  }

  private show(type: number): void {
    const { key, visitor } = this;
    key.type = type as RdbKey['type'];
    switch (type) {
      case Type.String: {
        const { length } = this.values.string;
        key.count = length;
        visitor.beginKey(key);
        this.values.string.forEachRun(0, length, (run) => visitor.stringPart(run));
        break;
      }
      case Type.List:
        key.count = this.values.list.length;
        visitor.beginKey(key);
        this.values.list.forEachFrom(0, 1, this.element);
        break;
      case Type.Set:
        key.count = this.values.set.size;
        visitor.beginKey(key);
        this.values.set.forEachFrom(0, this.element);
        break;
      case Type.Hash:
        key.count = this.values.hash.size;
        visitor.beginKey(key);
        this.values.hash.forEachFrom(0, this.field);
        break;
      case Type.ZSet:
        key.count = this.values.zset.size;
        visitor.beginKey(key);
        this.values.zset.forEachFrom(0, 1, this.member);
        break;
      case Type.Stream:
        key.count = this.values.stream.length;
        visitor.beginKey(key);
        showStream(this.values.stream, visitor);
        break;
    }
    visitor.endKey();
  }

  private readonly element = (element: Slice): boolean => {
    this.visitor.element(element);
    return true;
  };

  private readonly field = (field: Slice, value: Slice): boolean => {
    this.visitor.field(field, value, -1);
    return true;
  };

  private readonly member = (member: Slice, score: number): boolean => {
    this.visitor.member(member, score);
    return true;
  };
}
