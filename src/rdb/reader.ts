/**
 * Reads an RDB file that comes in pieces. Memory: the piece, and the largest single string of the file
 * (an element, or what Redis wrote packed as one string); plain string values longer than PART_BYTES are
 * handed on in parts.
 */
import { parseDouble } from '../bytes/number.ts';
import { Damage, RdbError } from './error.ts';
import {
  ModuleOpcode,
  Opcode,
  QuicklistContainer,
  RDB_TYPE_NAMES,
  RDB_VERSION_MAX,
  RdbType,
} from './format.ts';
import { INCOMPLETE, LENGTH_UNKNOWN, RdbInput } from './input.ts';
import { ListpackWalker, type PackedWalker } from './listpack.ts';
import { StreamReader } from './stream-reader.ts';
import { exactInteger, Text } from './text.ts';
import { RdbKey, RdbValue, type RdbVisitor } from './visitor.ts';
import { IntsetWalker, ZiplistWalker, ZipmapWalker } from './ziplist.ts';

export interface RdbReaderOptions {
  /** Bytes of the whole file, when known: what announces more than is there is then refused at once. */
  size?: number;
  /** Compare the checksum at the end (default true). A file without one has zero there, or is older than version 5. */
  checksum?: boolean;
}

/** Plain strings above this many bytes are handed on as they come. */
const PART_BYTES = 64 * 1024;

const MAGIC = 'REDIS';
const HEADER_BYTES = 9;
const CHECKSUM_BYTES = 8;
/** First version whose files end with a checksum. */
const CHECKSUM_VERSION = 5;

const Stage = {
  Header: 0,
  Records: 1,
  /** In a plain string value. */
  Parts: 2,
  /** Between two elements of a collection. */
  Elements: 3,
  Stream: 4,
  /** In the data of a module, a value or beside the keys. */
  Module: 5,
  Checksum: 6,
  Done: 7,
} as const;
type Stage = (typeof Stage)[keyof typeof Stage];

export class RdbReader {
  private readonly visitor: RdbVisitor;
  private readonly input: RdbInput;
  private readonly checksum: boolean;
  private stage: Stage = Stage.Header;
  /** The file's version; 0 before it was read. */
  version = 0;
  /** Keys read so far. */
  keys = 0;
  /** The file has ended with a checksum, which was right unless `checksum` is false. */
  checksumFound = false;
  /** Collections without elements, which Redis passes over too. */
  emptyKeys = 0;

  private readonly key = new RdbKey();
  private readonly keyText = new Text();
  private inKey = false;
  /** The type byte of the value in progress. */
  private encoding = 0;
  /** Elements, nodes or bytes of the value that are still to come. */
  private rest = 0;
  /** The earliest deadline of a hash with field deadlines, which the others are counted from. */
  private earliestDeadline = 0;

  private readonly first = new Text();
  private readonly second = new Text();
  private readonly third = new Text();
  private readonly listpack = new ListpackWalker();
  private readonly ziplist = new ZiplistWalker();
  private readonly zipmap = new ZipmapWalker();
  private readonly intset = new IntsetWalker();
  private readonly stream: StreamReader;

  constructor(visitor: RdbVisitor, options: RdbReaderOptions = {}) {
    this.visitor = visitor;
    this.input = new RdbInput(options.size ?? Infinity);
    this.checksum = options.checksum ?? true;
    this.stream = new StreamReader(this.input, visitor);
  }

  /** Byte of the file up to which it was read. */
  get offset(): number {
    return this.input.offset;
  }

  /** The end of the file was read; bytes after it are left alone. */
  get done(): boolean {
    return this.stage === Stage.Done;
  }

  /** Takes the next bytes of the file. Throws RdbError, after which the reader is of no more use. */
  feed(bytes: Uint8Array): void {
    this.guard(() => {
      if (this.stage !== Stage.Done && this.input.append(bytes)) this.run();
    });
  }

  /** The file has ended. Throws RdbError if that is too early. */
  finish(): void {
    if (this.done) return;
    this.guard(() => {
      const { input } = this;
      const end = input.base + input.end;
      try {
        // Once more, so that it is known what was being read.
        if (end > 0) this.step();
      } catch (error) {
        if (error !== INCOMPLETE) throw error;
      }
      throw new Damage(
        this.stage === Stage.Header && end === 0
          ? 'the file is empty'
          : `the file ends at ${end}, before ${this.inKey ? 'the value is complete' : 'its end mark'}`,
      );
    });
  }

  /**
   * Reads one value without a key in front: its type byte and what follows, which must be all of
   * `bytes`. The visitor sees it as the value of `key`. Throws RdbError.
   */
  value(key: Uint8Array, bytes: Uint8Array): void {
    this.guard(() => {
      const { input } = this;
      input.size = bytes.length;
      input.append(bytes);
      this.keyText.make(key.length).set(key);
      this.stage = Stage.Records;
      try {
        this.beginValue(input.byte(), true);
        while (this.stage !== Stage.Records) this.step();
      } catch (error) {
        if (error !== INCOMPLETE) throw error;
        throw new Damage('the value is cut short');
      }
      if (input.pos !== input.end) throw new Damage('bytes follow after the value');
    });
  }

  private guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof Damage)) throw error;
      const { key, inKey } = this;
      throw new RdbError(error.message, this.offset, inKey ? this.keyText.slice.toBuffer() : null, key.db);
    }
  }

  private run(): void {
    const { input } = this;
    try {
      while (this.stage !== Stage.Done) this.step();
    } catch (error) {
      if (error !== INCOMPLETE) throw error;
      input.pos = input.item;
    }
  }

  private step(): void {
    switch (this.stage) {
      case Stage.Header:
        return this.header();
      case Stage.Records:
        return this.record();
      case Stage.Parts:
        return this.parts();
      case Stage.Elements:
        return this.elements();
      case Stage.Stream:
        if (this.stream.step()) this.endKey();
        return;
      case Stage.Module:
        return this.moduleItem();
      case Stage.Checksum:
        return this.checkSum();
    }
  }

  private header(): void {
    const { input } = this;
    const { u8 } = input;
    for (let i = 0; i < Math.min(MAGIC.length, input.end); i++) {
      if (u8[i] !== MAGIC.charCodeAt(i))
        throw new Damage('this is no RDB file: it does not begin with REDIS');
    }
    input.need(HEADER_BYTES);
    const digits = u8.latin1Slice(MAGIC.length, HEADER_BYTES);
    const version = /^\d{4}$/.test(digits) ? Number(digits) : 0;
    if (version < 1 || version > RDB_VERSION_MAX) {
      throw new Damage(`RDB version "${digits}" is not one of 1 to ${RDB_VERSION_MAX}`);
    }
    this.version = version;
    input.pos = HEADER_BYTES;
    input.commit();
    this.stage = Stage.Records;
    this.visitor.begin(version);
  }

  /** One opcode and what belongs to it, or the beginning of a key. */
  private record(): void {
    const { input, key, first, second, visitor } = this;
    const opcode = input.byte();
    switch (opcode) {
      case Opcode.ExpireMs: {
        const at = input.milliseconds();
        key.expiresAt = Math.max(1, at);
        break;
      }
      case Opcode.Expire:
        input.need(4);
        key.expiresAt = Math.max(1, input.view.getInt32(input.pos, true) * 1000);
        input.pos += 4;
        break;
      case Opcode.Idle:
        key.idleSeconds = input.length();
        break;
      case Opcode.Freq:
        key.frequency = input.byte();
        break;
      case Opcode.SelectDb: {
        const db = input.length();
        if (db < 0 || db > 0x7fffffff) throw new Damage(`database ${db}`);
        key.db = db;
        break;
      }
      case Opcode.ResizeDb: {
        const keys = input.length();
        const expiring = input.length();
        if (keys >= 0 && expiring >= 0) visitor.resize(key.db, keys, expiring);
        break;
      }
      case Opcode.SlotInfo:
        // Slot, keys in it, keys in it that expire: a hint of the cluster that wrote the file.
        for (let i = 0; i < 3; i++) input.length();
        break;
      case Opcode.Aux:
        input.text(first);
        input.text(second);
        input.commit();
        visitor.aux(first.slice, second.slice);
        return;
      case Opcode.Function2:
        input.text(first);
        input.commit();
        visitor.library(first.slice);
        return;
      case Opcode.FunctionPreGa:
        throw new Damage('functions in the form of Redis 7.0 release candidates, which no release reads');
      case Opcode.ModuleAux: {
        const name = this.moduleName();
        if (input.length() !== ModuleOpcode.Uint)
          throw new Damage('module data does not say when it belongs');
        input.length();
        this.stage = Stage.Module;
        input.commit();
        visitor.moduleAux(name);
        return;
      }
      case Opcode.Eof:
        input.commit();
        input.sum(input.pos);
        if (this.version >= CHECKSUM_VERSION) {
          this.stage = Stage.Checksum;
        } else {
          this.stage = Stage.Done;
          visitor.end();
        }
        return;
      default:
        this.beginValue(opcode, false);
        return;
    }
    input.commit();
  }

  /** After the type byte; `keyIsKnown`: no key stands in front of the value. */
  private beginValue(encoding: number, keyIsKnown: boolean): void {
    const { input, key, keyText } = this;
    if (RDB_TYPE_NAMES[encoding] === undefined) {
      input.pos--;
      throw new Damage(`${encoding} is neither a type of value nor an opcode`);
    }
    if (!keyIsKnown) input.text(keyText);
    this.inKey = true;
    key.key.setSlice(keyText.slice);
    key.encoding = this.encoding = encoding;
    key.count = -1;
    switch (encoding) {
      case RdbType.String:
        return this.beginString();
      case RdbType.List:
        return this.beginElements(RdbValue.List, input.count(1));
      case RdbType.Set:
        return this.beginElements(RdbValue.Set, input.count(1));
      case RdbType.ZSet:
        return this.beginElements(RdbValue.ZSet, input.count(2));
      case RdbType.ZSet2:
        return this.beginElements(RdbValue.ZSet, input.count(9));
      case RdbType.Hash:
        return this.beginElements(RdbValue.Hash, input.count(2));
      case RdbType.HashMetadata:
        this.earliestDeadline = input.milliseconds();
        return this.beginElements(RdbValue.Hash, input.count(3));
      case RdbType.HashMetadataPreGa:
        return this.beginElements(RdbValue.Hash, input.count(3));
      case RdbType.ListQuicklist:
      case RdbType.ListQuicklist2:
        return this.beginElements(RdbValue.List, input.count(1));
      case RdbType.StreamListpacks:
      case RdbType.StreamListpacks2:
      case RdbType.StreamListpacks3: {
        const nodes = input.count(STREAM_NODE_BYTES_MIN);
        this.begin(RdbValue.Stream, -1);
        this.stage = Stage.Stream;
        this.stream.begin(encoding, nodes);
        return;
      }
      case RdbType.Module2:
        key.moduleName = this.moduleName();
        this.begin(RdbValue.Module, -1);
        this.stage = Stage.Module;
        return;
      case RdbType.ModulePreGa:
        throw new Damage(`a value of module ${this.moduleName()} in a form that only the module can read`);
      case RdbType.HashZipmap:
        return this.packed(RdbValue.Hash, this.zipmap, 2);
      case RdbType.ListZiplist:
        return this.packed(RdbValue.List, this.ziplist, 1);
      case RdbType.SetIntset:
        return this.packed(RdbValue.Set, this.intset, 1);
      case RdbType.ZSetZiplist:
        return this.packed(RdbValue.ZSet, this.ziplist, 2);
      case RdbType.HashZiplist:
        return this.packed(RdbValue.Hash, this.ziplist, 2);
      case RdbType.HashListpack:
        return this.packed(RdbValue.Hash, this.listpack, 2);
      case RdbType.ZSetListpack:
        return this.packed(RdbValue.ZSet, this.listpack, 2);
      case RdbType.SetListpack:
        return this.packed(RdbValue.Set, this.listpack, 1);
      case RdbType.HashListpackEx:
        input.milliseconds();
        return this.packed(RdbValue.Hash, this.listpack, 3);
      case RdbType.HashListpackExPreGa:
        return this.packed(RdbValue.Hash, this.listpack, 3);
    }
  }

  /** The key is known and what was read so far is not read again; its memory may move, so the key is copied. */
  private begin(type: RdbValue, count: number): void {
    const { key, keyText } = this;
    if (keyText.slice.u8 === this.input.u8) {
      keyText.keep(keyText.slice);
      key.key.setSlice(keyText.slice);
    }
    key.type = type;
    key.count = count;
    this.input.commit();
    this.visitor.beginKey(key);
  }

  private endKey(): void {
    this.visitor.endKey();
    this.keys++;
    this.nextRecord();
  }

  private nextRecord(): void {
    const { key } = this;
    key.expiresAt = -1;
    key.idleSeconds = -1;
    key.frequency = -1;
    this.inKey = false;
    this.stage = Stage.Records;
    this.input.commit();
  }

  private beginString(): void {
    const { input, key, first, visitor } = this;
    const length = input.plainLengthAbove(PART_BYTES);
    if (length >= 0) {
      if (input.offset + length > input.size) input.need(length);
      this.begin(RdbValue.String, length);
      this.rest = length;
      this.stage = Stage.Parts;
      return;
    }
    input.text(first);
    key.type = RdbValue.String;
    key.count = first.slice.length;
    visitor.beginKey(key);
    visitor.stringPart(first.slice);
    this.endKey();
  }

  private parts(): void {
    const { input, first } = this;
    const length = Math.min(this.rest, input.end - input.pos);
    if (length === 0) input.need(1);
    input.bytes(length, first.slice);
    this.rest -= length;
    input.commit();
    this.visitor.stringPart(first.slice);
    if (this.rest === 0) this.endKey();
  }

  private beginElements(type: RdbValue, rest: number): void {
    if (rest === 0) return this.passOverEmpty();
    const countIsKnown = type !== RdbValue.List || this.encoding === RdbType.List;
    this.begin(type, countIsKnown ? rest : -1);
    this.rest = rest;
    this.stage = Stage.Elements;
  }

  private passOverEmpty(): void {
    this.emptyKeys++;
    this.nextRecord();
  }

  private elements(): void {
    const { input, encoding, visitor, first, second } = this;
    while (this.rest > 0) {
      switch (encoding) {
        case RdbType.List:
        case RdbType.Set:
          input.text(first);
          input.commit();
          visitor.element(first.slice);
          break;
        case RdbType.Hash:
          input.text(first);
          input.text(second);
          input.commit();
          visitor.field(first.slice, second.slice, -1);
          break;
        case RdbType.ZSet:
        case RdbType.ZSet2: {
          input.text(first);
          const score = encoding === RdbType.ZSet ? this.textScore() : input.double();
          if (Number.isNaN(score)) throw new Damage('a score is not a number');
          input.commit();
          visitor.member(first.slice, score);
          break;
        }
        case RdbType.HashMetadata:
        case RdbType.HashMetadataPreGa: {
          const deadline = input.length();
          input.text(first);
          input.text(second);
          let expiresAt = deadline;
          if (deadline === 0) expiresAt = -1;
          else if (encoding === RdbType.HashMetadata) expiresAt += this.earliestDeadline - 1;
          if (
            deadline === LENGTH_UNKNOWN ||
            expiresAt > FIELD_DEADLINE_MAX ||
            (deadline !== 0 && expiresAt < 0)
          ) {
            throw new Damage(`a field expires at ${expiresAt}`);
          }
          input.commit();
          visitor.field(first.slice, second.slice, expiresAt);
          break;
        }
        default:
          this.listNode();
      }
      this.rest--;
    }
    this.endKey();
  }

  /** A score of the first sorted sets: a length and decimal text, or 253 to 255 for what has no digits. */
  private textScore(): number {
    const { input, second } = this;
    const length = input.byte();
    if (length === 255) return -Infinity;
    if (length === 254) return Infinity;
    if (length === 253) return NaN;
    input.bytes(length, second.slice);
    return parseDouble(second.slice);
  }

  /** A node of a list: packed elements, or a long element by itself. */
  private listNode(): void {
    const { input, first, second, visitor } = this;
    let walker: PackedWalker = this.ziplist;
    let container: number = QuicklistContainer.Packed;
    if (this.encoding === RdbType.ListQuicklist2) {
      container = input.length();
      walker = this.listpack;
    }
    input.text(first);
    if (container === QuicklistContainer.Plain) {
      input.commit();
      visitor.element(first.slice);
      return;
    }
    if (container !== QuicklistContainer.Packed) throw new Damage(`a list has a node of kind ${container}`);
    const count = walker.open(first.slice);
    input.commit();
    for (let i = 0; i < count; i++) {
      walker.next(second);
      visitor.element(second.slice);
    }
  }

  /** A collection packed in one string; `each`: how many of its entries make one element. */
  private packed(type: RdbValue, walker: PackedWalker, each: number): void {
    const { input, key, first, second, third, visitor } = this;
    input.text(first);
    const entries = walker.open(first.slice);
    if (entries % each !== 0) {
      throw new Damage(`${entries} packed entries are not a multiple of ${each}`);
    }
    const count = entries / each;
    if (count === 0) return this.passOverEmpty();
    key.type = type;
    key.count = count;
    visitor.beginKey(key);
    for (let i = 0; i < count; i++) {
      walker.next(second);
      if (type === RdbValue.Hash) {
        walker.next(third);
        const expiresAt = each === 3 ? this.packedDeadline(walker) : -1;
        visitor.field(second.slice, third.slice, expiresAt);
      } else if (type === RdbValue.ZSet) {
        walker.next(third);
        const score = Number.isNaN(third.integer) ? parseDouble(third.slice) : third.integer;
        if (Number.isNaN(score)) throw new Damage('a score is not a number');
        visitor.member(second.slice, score);
      } else {
        visitor.element(second.slice);
      }
    }
    this.endKey();
  }

  private readonly deadline = new Text();

  private packedDeadline(walker: PackedWalker): number {
    walker.next(this.deadline);
    const value = exactInteger(this.deadline);
    if (value === undefined || value < 0n || value > FIELD_DEADLINE_MAX) {
      throw new Damage('a field expires at no possible time');
    }
    return value === 0n ? -1 : Number(value);
  }

  /** A module's id: nine characters of six bits, and ten bits of version. */
  private moduleName(): string {
    this.input.length64(this.idView, 0);
    let id = this.idView.getBigUint64(0, false) >> 10n;
    let name = '';
    for (let i = 0; i < 9; i++) {
      name = MODULE_NAME_CHARACTERS[Number(id & 63n)] + name;
      id >>= 6n;
    }
    return name;
  }

  private readonly idView = new DataView(new ArrayBuffer(8));

  private moduleItem(): void {
    const { input, first } = this;
    const opcode = input.length();
    switch (opcode) {
      case ModuleOpcode.Eof:
        if (this.inKey) this.endKey();
        else this.nextRecord();
        return;
      case ModuleOpcode.Sint:
      case ModuleOpcode.Uint:
        input.length64(this.idView, 0);
        break;
      case ModuleOpcode.Float:
        input.skip(4);
        break;
      case ModuleOpcode.Double:
        input.skip(8);
        break;
      case ModuleOpcode.String:
        input.text(first);
        break;
      default:
        throw new Damage(`module data has an item of kind ${opcode}`);
    }
    input.commit();
  }

  private checkSum(): void {
    const { input } = this;
    input.need(CHECKSUM_BYTES);
    const low = input.view.getInt32(input.pos, true);
    const high = input.view.getInt32(input.pos + 4, true);
    const { crc } = input;
    this.checksumFound = low !== 0 || high !== 0;
    if (this.checksum && this.checksumFound && (low !== crc.low || high !== crc.high)) {
      const told = input.view.getBigUint64(input.pos, true).toString(16).padStart(16, '0');
      throw new Damage(`the checksum of the file is ${crc.toString()}, and it says ${told}`);
    }
    input.pos += CHECKSUM_BYTES;
    input.commit();
    this.stage = Stage.Done;
    this.visitor.end();
  }
}

/** Bytes that a node of a stream takes at least: its id and an almost empty listpack. */
const STREAM_NODE_BYTES_MIN = 18;
/** Latest time at which Redis lets a field of a hash expire, Unix ms. */
const FIELD_DEADLINE_MAX = 2 ** 48 - 2;
const MODULE_NAME_CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
