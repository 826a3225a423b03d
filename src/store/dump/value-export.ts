/** Shows stored values to an RDB visitor: packed ones wherever their bytes lie, trees page by page. */
import { Slice } from '../../bytes/slice.ts';
import { RdbKey, type RdbVisitor } from '../../rdb/visitor.ts';
import { Type } from '../api.ts';
import { PAGE_BYTES } from '../arena.ts';
import type { Collection } from '../collection.ts';
import { HashHandle } from '../hash-value.ts';
import { ListHandle } from '../list.ts';
import { PageType, pageType } from '../page.ts';
import { FLAG_PERSISTED, FLAG_TREE } from '../record.ts';
import { SetHandle } from '../set.ts';
import { StreamHandle } from '../stream.ts';
import { StringHandle } from '../string-value.ts';
import { Tier } from '../tier.ts';
import { ZSetHandle } from '../zset.ts';
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
  private readonly string = new StringHandle(this.scratch);
  private readonly list = new ListHandle(this.scratch);
  private readonly set = new SetHandle(this.scratch);
  private readonly hash = new HashHandle(this.scratch);
  private readonly zset = new ZSetHandle(this.scratch);
  private readonly stream = new StreamHandle(this.scratch);
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
    const { value } = this.handle(type);
    value.u8 = u8;
    value.view = view;
    value.start = start;
    value.length = length;
    value.isTree = false;
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
    const handle = this.handle(type);
    handle.value.open(keyspace, this.key.key, 0, type, this.root);
    handle.opened();
    this.show(type);
    keyspace.removeRecord(this.root, 0);
    while (scratch.backgroundSlice(NO_HURRY_MS));
  }

  private handle(type: number): Collection {
    switch (type) {
      case Type.String:
        return this.string;
      case Type.List:
        return this.list;
      case Type.Set:
        return this.set;
      case Type.Hash:
        return this.hash;
      case Type.ZSet:
        return this.zset;
      case Type.Stream:
        return this.stream;
      default:
        throw new Error(`values of type ${type} cannot be written to a dump`);
    }
  }

  private show(type: number): void {
    const { key, visitor } = this;
    key.type = type as RdbKey['type'];
    switch (type) {
      case Type.String: {
        const { length } = this.string;
        key.count = length;
        visitor.beginKey(key);
        this.string.forEachRun(0, length, (run) => visitor.stringPart(run));
        break;
      }
      case Type.List:
        key.count = this.list.length;
        visitor.beginKey(key);
        this.list.forEachFrom(0, 1, this.element);
        break;
      case Type.Set:
        key.count = this.set.size;
        visitor.beginKey(key);
        this.set.forEachFrom(0, this.element);
        break;
      case Type.Hash:
        key.count = this.hash.size;
        visitor.beginKey(key);
        this.hash.forEachFrom(0, this.field);
        break;
      case Type.ZSet:
        key.count = this.zset.size;
        visitor.beginKey(key);
        this.zset.forEachFrom(0, 1, this.member);
        break;
      case Type.Stream:
        key.count = this.stream.length;
        visitor.beginKey(key);
        showStream(this.stream, visitor);
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
