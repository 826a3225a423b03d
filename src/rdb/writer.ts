/**
 * Writes an RDB file of version 10, which Redis 7.0 and later read, with the encodings that Redis 7.0
 * chooses by its default limits. It takes what the reader gives. Memory: FLUSH_BYTES, a node of a list
 * or a stream, and the largest element.
 */
import { formatDouble, parseInteger } from '../bytes/number.ts';
import { ByteSink } from '../bytes/sink.ts';
import { Slice } from '../bytes/slice.ts';
import { ListpackWalker } from './listpack.ts';
import { ListpackBuilder } from './listpack-builder.ts';
import { Opcode, QuicklistContainer, RDB_VERSION_WRITTEN, RdbType, StringEncoding } from './format.ts';
import { RdbOutput, type RdbOutputOptions } from './output.ts';
import { StreamWriter } from './stream-writer.ts';
import { Text } from './text.ts';
import {
  RdbValue,
  RdbVisitor,
  type RdbKey,
  type StreamConsumer,
  type StreamGroup,
  type StreamState,
} from './visitor.ts';

/** Up to which a collection is written packed: Redis 7.0's defaults. */
const PACKED_ENTRIES_MAX = 128;
const PACKED_VALUE_BYTES_MAX = 64;
const INTSET_MAX = 512;
/** Bytes of a list's node (`list-max-listpack-size -2`). */
const LIST_NODE_BYTES_MAX = 8192;
/** What a listpack adds to an element at most. */
const LISTPACK_ENTRY_OVERHEAD = 10;
/** Longer list elements do not fit a listpack: they are nodes by themselves. */
const LISTPACK_ELEMENT_BYTES_MAX = 1 << 30;
/** Compression may make parts of a string longer, by a byte for each 32. */
const partBytesMax = (length: number): number => length + (length >>> 5) + 1;

/** Memory at first for a value alone, bytes. */
const BARE_CAPACITY = 512;

/** How the collection in progress is written. */
const Form = {
  /** Nothing of it is written yet; `pack` or `integers` has all elements. */
  Packed: 0,
  /** Its key and count are written, and elements as they come. */
  Plain: 1,
  /** A compressed string in parts. */
  Compressed: 2,
} as const;
type Form = (typeof Form)[keyof typeof Form];

export interface RdbWriterOptions extends RdbOutputOptions {
  /** Only the value is written: type byte and what follows, as DUMP has it. */
  bare?: boolean;
}

export class RdbWriter extends RdbVisitor {
  private readonly out: RdbOutput;
  private readonly bare: boolean;
  private db = -1;
  private key!: RdbKey;
  private form: Form = Form.Packed;
  /** Elements of the key so far; bytes of a string. */
  private seen = 0;
  /** Where the count is to be filled in; -1: it is written. */
  private countAt = -1;
  /** Bytes of a compressed string so far. */
  private compressedBytes = 0;

  private readonly pack = new ListpackBuilder();
  private readonly sorted = new ListpackBuilder();
  private integers = new Float64Array(0);
  /** Of a packed sorted set: each member's score, and where its entries begin in `pack`. */
  private readonly scores = new Float64Array(PACKED_ENTRIES_MAX + 1);
  private readonly offsets = new Int32Array(PACKED_ENTRIES_MAX + 1);
  private readonly score = new Text();
  private ascending = true;
  private readonly intset = new ByteSink(64);
  private readonly walker = new ListpackWalker();
  private readonly first = new Text();
  private readonly second = new Text();
  private readonly whole = new Slice();
  private readonly stream: StreamWriter;

  /** Values of modules, data of modules and field deadlines have no place in the file; how many were left out. */
  readonly dropped = { moduleValues: 0, moduleAux: 0, fieldDeadlines: 0 };
  /** Keys written. */
  keys = 0;

  constructor(options: RdbWriterOptions) {
    super();
    this.bare = options.bare ?? false;
    this.out = this.bare ? new RdbOutput(options, BARE_CAPACITY) : new RdbOutput(options);
    this.stream = new StreamWriter(this.out, (type) => this.header(type));
  }

  /** Bytes written so far, handed on or not. */
  get offset(): number {
    return this.out.offset;
  }

  /** The version given is the source's; the file has RDB_VERSION_WRITTEN. */
  override begin(_version?: number): void {
    this.out.ascii(`REDIS${String(RDB_VERSION_WRITTEN).padStart(4, '0')}`);
  }

  override aux(name: Slice, value: Slice): void {
    this.out.byte(Opcode.Aux);
    this.out.string(name);
    this.out.string(value);
    this.out.settle();
  }

  override library(code: Slice): void {
    this.out.byte(Opcode.Function2);
    this.out.string(code);
    this.out.settle();
  }

  override moduleAux(): void {
    this.dropped.moduleAux++;
  }

  override resize(db: number, keys: number, expiring: number): void {
    this.select(db);
    this.out.byte(Opcode.ResizeDb);
    this.out.length(keys);
    this.out.length(expiring);
  }

  private select(db: number): void {
    if (db === this.db) return;
    this.db = db;
    this.out.byte(Opcode.SelectDb);
    this.out.length(db);
  }

  override beginKey(key: RdbKey): void {
    this.key = key;
    this.seen = 0;
    this.countAt = -1;
    switch (key.type) {
      case RdbValue.String:
        if (key.count < 0) throw new RangeError('the length of a string must be known');
        return;
      case RdbValue.Hash:
        return this.beginCollection(RdbType.Hash, PACKED_ENTRIES_MAX);
      case RdbValue.ZSet:
        this.ascending = true;
        return this.beginCollection(RdbType.ZSet2, PACKED_ENTRIES_MAX);
      case RdbValue.Set:
        return this.beginCollection(RdbType.Set, INTSET_MAX);
      case RdbValue.List:
        this.pack.begin();
        return;
      case RdbValue.Stream:
        this.stream.begin();
        return;
      case RdbValue.Module:
        this.dropped.moduleValues++;
    }
  }

  private beginCollection(type: number, packedMax: number): void {
    this.pack.begin();
    if (this.key.count > packedMax) this.beginPlain(type);
    else this.form = Form.Packed;
  }

  /** What stands before a value: deadline, access, type, key. */
  private header(type: number): void {
    const { out, key } = this;
    if (this.bare) {
      out.byte(type);
      return;
    }
    this.select(key.db);
    if (key.expiresAt >= 0) {
      out.byte(Opcode.ExpireMs);
      out.milliseconds(key.expiresAt);
    }
    if (key.idleSeconds >= 0) {
      out.byte(Opcode.Idle);
      out.length(key.idleSeconds);
    }
    if (key.frequency >= 0) {
      out.byte(Opcode.Freq);
      out.byte(key.frequency);
    }
    out.byte(type);
    out.string(key.key);
  }

  private beginPlain(type: number): void {
    this.form = Form.Plain;
    this.header(type);
    if (this.key.count >= 0) this.out.length(this.key.count);
    else this.countAt = this.out.reserveLength();
  }

  override stringPart(bytes: Slice): void {
    const { out, key } = this;
    const length = bytes.end - bytes.start;
    if (length === 0 && key.count > 0) return;
    if (this.seen === 0) {
      this.header(RdbType.String);
      if (length === key.count) {
        out.string(bytes);
        this.seen = length;
        return;
      }
      this.beginParts(bytes);
    } else if (this.form === Form.Compressed) {
      this.compressedBytes += out.compressedPart(bytes, partBytesMax(length));
    } else {
      out.slice(bytes);
    }
    this.seen += length;
    out.settle();
  }

  /** A string that comes in parts is compressed when its first part can be. */
  private beginParts(bytes: Slice): void {
    const { out, key } = this;
    const from = out.pos;
    this.form = Form.Compressed;
    if (out.compresses && key.count < 0xffffffff / 2) {
      out.byte(0xc0 | StringEncoding.Lzf);
      this.countAt = out.reserveLength();
      out.length(key.count);
      this.compressedBytes = out.compressedPart(bytes, bytes.end - bytes.start);
      if (this.compressedBytes >= 0) return;
      out.withdrawLength(from);
      this.countAt = -1;
    }
    this.form = Form.Plain;
    out.length(key.count);
    out.slice(bytes);
  }

  override element(bytes: Slice): void {
    if (this.key.type === RdbValue.List) this.listElement(bytes);
    else this.setMember(bytes);
    this.seen++;
    this.out.settle();
  }

  private listElement(bytes: Slice): void {
    const { pack } = this;
    const length = bytes.end - bytes.start;
    if (pack.count > 0 && pack.pos + length + LISTPACK_ENTRY_OVERHEAD > LIST_NODE_BYTES_MAX) {
      this.listNode();
    }
    if (length > LISTPACK_ELEMENT_BYTES_MAX) {
      this.nodeHeader(QuicklistContainer.Plain);
      this.out.string(bytes);
    } else {
      pack.append(bytes);
    }
  }

  private nodes = 0;

  /** Writes the elements that wait as a node. */
  private listNode(): void {
    const { pack } = this;
    this.nodeHeader(QuicklistContainer.Packed);
    pack.finish();
    this.out.stringOf(pack.u8, pack.view, 0, pack.pos);
    pack.begin();
  }

  private nodeHeader(container: number): void {
    if (this.countAt < 0) {
      this.header(RdbType.ListQuicklist2);
      this.countAt = this.out.reserveLength();
      this.nodes = 0;
    }
    this.nodes++;
    this.out.length(container);
  }

  private endList(): void {
    const { out, pack } = this;
    if (this.countAt < 0) {
      // All of it is one node, and known to be.
      this.header(RdbType.ListQuicklist2);
      out.length(1);
      out.length(QuicklistContainer.Packed);
      pack.finish();
      out.stringOf(pack.u8, pack.view, 0, pack.pos);
      return;
    }
    if (pack.count > 0) this.listNode();
    out.fillLength(this.countAt, this.nodes);
  }

  private setMember(bytes: Slice): void {
    const { out, integers } = this;
    if (this.form === Form.Packed) {
      const value = parseInteger(bytes.u8, bytes.start, bytes.end);
      if (!Number.isNaN(value) && this.seen < INTSET_MAX) {
        this.keepInteger(value);
        return;
      }
      this.beginPlain(RdbType.Set);
      for (let i = 0; i < this.seen; i++) {
        this.first.setInteger(integers[i]);
        out.string(this.first.slice);
      }
    }
    out.string(bytes);
  }

  private keepInteger(value: number): void {
    if (this.seen === this.integers.length) {
      const grown = new Float64Array(Math.max(16, 2 * this.seen));
      grown.set(this.integers);
      this.integers = grown;
    }
    this.integers[this.seen] = value;
  }

  private endIntset(): void {
    const { intset, seen } = this;
    const members = this.integers.subarray(0, seen);
    members.sort();
    const low = members[0];
    const high = members[seen - 1];
    const width = low >= -32768 && high <= 32767 ? 2 : low >= -2147483648 && high <= 2147483647 ? 4 : 8;
    intset.clear();
    intset.u32(width);
    intset.u32(seen);
    intset.ensure(seen * width);
    const { view } = intset;
    for (let i = 0; i < seen; i++) {
      const at = 8 + i * width;
      if (width === 2) view.setInt16(at, members[i], true);
      else if (width === 4) view.setInt32(at, members[i], true);
      else view.setBigInt64(at, BigInt(members[i]), true);
    }
    intset.pos = 8 + seen * width;
    this.header(RdbType.SetIntset);
    this.out.stringOf(intset.u8, intset.view, 0, intset.pos);
  }

  override field(field: Slice, value: Slice, expiresAt: number): void {
    const { out, pack } = this;
    if (expiresAt >= 0) this.dropped.fieldDeadlines++;
    if (this.form === Form.Packed) {
      if (
        this.seen < PACKED_ENTRIES_MAX &&
        field.end - field.start <= PACKED_VALUE_BYTES_MAX &&
        value.end - value.start <= PACKED_VALUE_BYTES_MAX
      ) {
        pack.append(field);
        pack.append(value);
        this.seen++;
        return;
      }
      this.beginPlain(RdbType.Hash);
      const entries = this.reopen();
      for (let i = 0; i < entries; i++) {
        this.walker.next(this.first);
        out.string(this.first.slice);
      }
    }
    out.string(field);
    out.string(value);
    this.seen++;
    out.settle();
  }

  /** Stands before the first entry of what was packed. */
  private reopen(): number {
    const { pack, whole } = this;
    pack.finish();
    whole.set(pack.u8, pack.view, 0, pack.pos);
    return this.walker.open(whole);
  }

  override member(member: Slice, score: number): void {
    const { out } = this;
    if (this.form === Form.Packed) {
      if (this.seen < PACKED_ENTRIES_MAX && member.end - member.start <= PACKED_VALUE_BYTES_MAX) {
        this.packMember(member, score);
        return;
      }
      this.beginPlain(RdbType.ZSet2);
      this.reopen();
      for (let i = 0; i < this.seen; i++) {
        this.walker.next(this.first);
        this.walker.next(this.second);
        out.string(this.first.slice);
        out.double(this.scores[i]);
      }
    }
    out.string(member);
    out.double(score);
    this.seen++;
    out.settle();
  }

  private packMember(member: Slice, score: number): void {
    const { pack, scores, seen } = this;
    scores[seen] = score;
    this.offsets[seen] = pack.pos;
    if (seen > 0 && this.ascending && !(score > scores[seen - 1])) this.ascending = false;
    pack.append(member);
    appendScore(pack, score, this.score);
    this.seen++;
  }

  /** A packed sorted set must stand in the order of scores, then of bytes. */
  private sort(): ListpackBuilder {
    const { pack, sorted, scores, offsets, seen, first } = this;
    if (this.ascending) return pack;
    const members: { score: number; from: number; to: number; member: Buffer }[] = [];
    offsets[seen] = pack.pos;
    this.reopen();
    for (let i = 0; i < seen; i++) {
      this.walker.next(first);
      members.push({
        score: scores[i],
        from: offsets[i],
        to: offsets[i + 1],
        member: first.slice.toBuffer(),
      });
      this.walker.next(this.second);
    }
    members.sort((a, b) => a.score - b.score || Buffer.compare(a.member, b.member));
    sorted.begin();
    for (const { from, to } of members) sorted.copy(pack.u8, from, to);
    sorted.count = 2 * seen;
    return sorted;
  }

  override streamEntry(id: Slice, fields: readonly Slice[], count: number): void {
    this.stream.entry(id, fields, count);
    this.out.settle();
  }

  override streamEnd(state: StreamState): void {
    this.stream.end(state);
  }

  override streamGroup(group: StreamGroup): void {
    this.stream.group(group);
    this.out.settle();
  }

  override streamPending(id: Slice, deliveredAt: number, deliveries: number): void {
    this.out.slice(id);
    this.out.milliseconds(deliveredAt);
    this.out.length(deliveries);
    this.out.settle();
  }

  override streamConsumers(count: number): void {
    this.out.length(count);
  }

  override streamConsumer(consumer: StreamConsumer): void {
    this.out.string(consumer.name);
    this.out.milliseconds(consumer.seenAt);
    this.out.length(consumer.pending);
    this.out.settle();
  }

  override streamOwned(id: Slice): void {
    this.out.slice(id);
    this.out.settle();
  }

  override endKey(): void {
    const { out, key, seen, countAt } = this;
    const { type } = key;
    this.keys++;
    if (type === RdbValue.String) {
      if (seen !== key.count) throw new RangeError(`a string of ${key.count} bytes had ${seen}`);
      if (countAt >= 0) out.fillLength(countAt, this.compressedBytes);
    } else if (type === RdbValue.List) {
      if (seen > 0) this.endList();
    } else if (type === RdbValue.Module || type === RdbValue.Stream) {
      // Nothing, or written to its end.
    } else if (this.form === Form.Plain) {
      if (countAt >= 0) out.fillLength(countAt, seen);
      else if (seen !== key.count) {
        throw new RangeError(`a collection of ${key.count} elements had ${seen}`);
      }
    } else if (seen > 0) {
      if (type === RdbValue.Set) {
        this.endIntset();
      } else {
        const pack = type === RdbValue.ZSet ? this.sort() : this.pack;
        this.header(type === RdbValue.ZSet ? RdbType.ZSetListpack : RdbType.HashListpack);
        pack.finish();
        out.stringOf(pack.u8, pack.view, 0, pack.pos);
      }
    }
    out.settle();
  }

  /** Hands on everything written so far. */
  flush(): void {
    this.out.flush();
  }

  override end(): void {
    this.out.byte(Opcode.Eof);
    this.out.end();
  }
}

/** A score as Redis packs it: an integer when it is one, else 17 digits; so is -0, which an integer cannot be. */
function appendScore(pack: ListpackBuilder, score: number, text: Text): void {
  if (Number.isSafeInteger(score) && !Object.is(score, -0)) {
    pack.appendInteger(score);
    return;
  }
  const digits = formatDouble(score);
  const memory = text.make(digits.length);
  for (let i = 0; i < digits.length; i++) memory[i] = digits.charCodeAt(i);
  pack.append(text.slice);
}
