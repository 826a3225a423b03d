/** From what an RDB file says to records and pages as the tier stores them. */
import { isInt64 } from '../../bytes/number.ts';
import { Slice } from '../../bytes/slice.ts';
import { Damage } from '../../rdb/error.ts';
import {
  RdbKey,
  RdbValue,
  RdbVisitor,
  type StreamConsumer,
  type StreamGroup,
  type StreamState,
} from '../../rdb/visitor.ts';
import { Type } from '../api.ts';
import type { TierDatabase } from '../database.ts';
import { framedBytes, writeFramed } from '../framing.ts';
import { itemBytes, PACKED_BYTES_MAX, PACKED_COUNT_MAX } from '../packed.ts';
import { FLAG_TREE, MAX_KEY_BYTES } from '../record.ts';
import { INLINE_STRING_MAX } from '../string-value.ts';
import type { RowTarget } from './row-target.ts';
import { StreamImport } from './stream-events.ts';

/** Up to which a value keeps the encoding that Redis calls compact; see the server's encodings. */
export interface CompactLimits {
  hashMaxListpackEntries: number;
  hashMaxListpackValue: number;
  setMaxIntsetEntries: number;
  zsetMaxListpackEntries: number;
  zsetMaxListpackValue: number;
}

/** Of a file: the least that a key and its value take, unless both are tiny. */
const KEY_BYTES_MIN = 8;

const COMPACT = 0;
const CONVERTED = 1;

export interface RowBuilderOptions {
  limits: CompactLimits;
  /** Unix ms: what was due before is left out. */
  now: number;
  /** All keys go to this database; -1: to their own. */
  database: number;
  databases: number;
  /** Bytes of the file. */
  size: number;
}

export class RowBuilder extends RdbVisitor {
  /** Keys passed on; keys that had expired; values of modules, which are not understood. */
  readonly counts = { keys: 0, expired: 0, modules: 0 };
  private readonly options: RowBuilderOptions;
  /** May be another one between two keys. */
  target: RowTarget;
  private key!: RdbKey;
  /** The value is left out. */
  private skipped = false;
  private encoding = COMPACT;
  private elements = 0;
  private longest = 0;
  /** The only database that keys were in, with `options.database`. */
  private source = -1;

  /** Elements of the collection in progress, packed as in a record, while they fit. */
  private readonly packed = Buffer.from(new ArrayBuffer(PACKED_BYTES_MAX + 1024), 0, PACKED_BYTES_MAX + 1024);
  private readonly packedView = new DataView(this.packed.buffer);
  private length = 0;
  private isPacked = false;
  private lastScore = 0;
  private lastMember = 0;
  private readonly first = new Slice();
  private readonly second = new Slice();
  private readonly name = Slice.from('v');
  private readonly payload = new Slice();
  private readonly stream = new StreamImport(() => this.scratch.stream(this.name, true));

  constructor(options: RowBuilderOptions, target: RowTarget) {
    super();
    this.options = options;
    this.target = target;
  }

  /** Where what is not packed is put together. Handles that it has lent before are taken back. */
  private get scratch(): TierDatabase {
    this.target.tier.beginCommand();
    return this.target.tier.database(0);
  }

  override resize(db: number, keys: number): void {
    const { options } = this;
    // Not more than can be in the file, whatever it says.
    const most = options.size / KEY_BYTES_MIN;
    this.target.expect(options.database >= 0 ? options.database : db, Math.min(keys, most));
  }

  /** Between two keys. */
  settle(): void {
    this.target = this.target.settle();
  }

  override beginKey(key: RdbKey): void {
    const { options } = this;
    this.settle();
    this.key = key;
    this.skipped = true;
    if (key.type === RdbValue.Module) {
      this.counts.modules++;
      return;
    }
    if (key.expiresAt >= 0 && key.expiresAt <= options.now) {
      this.counts.expired++;
      return;
    }
    if (key.key.length > MAX_KEY_BYTES) throw new Damage(`a key has at most ${MAX_KEY_BYTES} bytes`);
    if (options.database >= 0 && this.source >= 0 && this.source !== key.db)
      throw new Damage(
        `keys of the databases ${this.source} and ${key.db} cannot both go to database ${options.database}`,
      );
    this.source = key.db;
    if (options.database < 0 && key.db >= options.databases)
      throw new Damage(`the key is in database ${key.db}, and there are ${options.databases}`);
    this.skipped = false;
    this.encoding = COMPACT;
    this.elements = 0;
    this.longest = 0;
    this.length = 1;
    this.isPacked = key.count <= PACKED_COUNT_MAX;
  }

  // ---- Strings

  override stringPart(bytes: Slice): void {
    if (this.skipped) return;
    const length = bytes.end - bytes.start;
    if (length === this.key.count && length <= INLINE_STRING_MAX) {
      this.record(Type.String, 0, bytes);
      return;
    }
    this.elements++;
    const value = this.scratch.string(this.name, true);
    value.write(value.length, bytes);
  }

  // ---- Collections

  override element(bytes: Slice): void {
    if (this.skipped) return;
    this.elements++;
    if (this.key.type === RdbValue.List) {
      if (this.isPacked && this.listElement(bytes)) return;
      this.unpack();
      this.scratch.list(this.name, true).pushRight(bytes);
      return;
    }
    if (this.encoding === COMPACT && !isInt64(bytes)) this.encoding = CONVERTED;
    if (this.isPacked && this.packItems(bytes, null)) return;
    this.unpack();
    if (!this.scratch.set(this.name, true).add(bytes)) throw new Damage('a member occurs twice');
  }

  override field(field: Slice, value: Slice): void {
    if (this.skipped) return;
    this.elements++;
    this.longest = Math.max(this.longest, field.length, value.length);
    if (this.isPacked && this.packItems(field, value)) return;
    this.unpack();
    if (!this.scratch.hash(this.name, true).set(field, value)) throw new Damage('a field occurs twice');
  }

  override member(member: Slice, score: number): void {
    if (this.skipped) return;
    this.elements++;
    this.longest = Math.max(this.longest, member.length);
    if (this.isPacked && this.packMember(member, score)) return;
    this.unpack();
    if (!this.scratch.zset(this.name, true).set(member, score)) throw new Damage('a member occurs twice');
  }

  // ---- Streams, which the scratch database packs where they are small

  override streamEntry(id: Slice, fields: readonly Slice[], count: number): void {
    if (!this.skipped) this.stream.entry(id, fields, count);
  }

  override streamEnd(state: StreamState): void {
    if (!this.skipped) this.stream.state(state);
  }

  override streamGroup(group: StreamGroup): void {
    if (!this.skipped) this.stream.streamGroup(group);
  }

  override streamPending(id: Slice, deliveredAt: number, deliveries: number): void {
    if (!this.skipped) this.stream.pending(id, deliveredAt, deliveries);
  }

  override streamConsumer(consumer: StreamConsumer): void {
    if (!this.skipped) this.stream.streamConsumer(consumer);
  }

  override streamOwned(id: Slice): void {
    if (!this.skipped) this.stream.owned(id);
  }

  private hasRoom(bytes: number): boolean {
    return this.length + bytes <= PACKED_BYTES_MAX && this.elements <= PACKED_COUNT_MAX;
  }

  private listElement(bytes: Slice): boolean {
    if (!this.hasRoom(framedBytes(bytes.length))) return false;
    this.length = writeFramed(this.packed, this.packedView, this.length, bytes);
    return true;
  }

  private packItems(first: Slice, second: Slice | null): boolean {
    const bytes = itemBytes(first.length) + (second === null ? 0 : itemBytes(second.length));
    if (!this.hasRoom(bytes)) return false;
    this.refuseTwin(first, 0, second === null ? 1 : 2);
    this.item(first);
    if (second !== null) this.item(second);
    return true;
  }

  /** Members must come in their order, by score and bytes, as Redis writes small sorted sets. */
  private packMember(member: Slice, score: number): boolean {
    if (!this.hasRoom(8 + itemBytes(member.length))) return false;
    if (this.elements > 1) {
      this.itemAt(this.lastMember, this.first);
      if (score < this.lastScore || (score === this.lastScore && this.first.compare(member) >= 0))
        return false;
      this.refuseTwin(member, 8, 1);
    }
    this.packedView.setFloat64(this.length, score + 0, true);
    this.length += 8;
    this.lastScore = score;
    this.lastMember = this.length;
    this.item(member);
    return true;
  }

  private item(bytes: Slice): void {
    const length = bytes.end - bytes.start;
    const { packed } = this;
    let at = this.length;
    if (length > 127) packed[at++] = 0x80 | (length >>> 8);
    packed[at++] = length & 0xff;
    if (length > 32) bytes.u8.copy(packed, at, bytes.start, bytes.end);
    else for (let i = 0; i < length; i++) packed[at + i] = bytes.u8[bytes.start + i];
    this.length = at + length;
  }

  /** Points `into` at the item at an offset; returns the offset after it. */
  private itemAt(at: number, into: Slice): number {
    let length = this.packed[at++];
    if (length > 127) length = ((length & 127) << 8) | this.packed[at++];
    into.set(this.packed, this.packedView, at, at + length);
    return at + length;
  }

  private refuseTwin(key: Slice, prefix: number, items: number): void {
    const { first, packed } = this;
    const length = key.end - key.start;
    const last = length === 0 ? 0 : key.u8[key.end - 1];
    for (let at = 1; at < this.length;) {
      at = this.itemAt(at + prefix, first);
      if (
        first.end - first.start === length &&
        (length === 0 || packed[at - 1] === last) &&
        first.equals(key)
      )
        throw new Damage('an element occurs twice');
      for (let item = 1; item < items; item++) at = this.itemAt(at, first);
    }
  }

  /** The collection has become too large for a record: what is packed moves to the scratch database. */
  private unpack(): void {
    if (!this.isPacked) return;
    this.isPacked = false;
    const { first, second, scratch: db } = this;
    const end = this.length;
    for (let at = 1; at < end;) {
      switch (this.key.type) {
        case RdbValue.List: {
          const colon = this.packed.indexOf(13, at);
          const length = Number(this.packed.latin1Slice(at + 1, colon));
          first.set(this.packed, this.packedView, colon + 2, colon + 2 + length);
          db.list(this.name, true).pushRight(first);
          at = colon + 4 + length;
          break;
        }
        case RdbValue.Set:
          at = this.itemAt(at, first);
          db.set(this.name, true).add(first);
          break;
        case RdbValue.Hash:
          at = this.itemAt(at, first);
          at = this.itemAt(at, second);
          db.hash(this.name, true).set(first, second);
          break;
        default: {
          const score = this.packedView.getFloat64(at, true);
          at = this.itemAt(at + 8, first);
          db.zset(this.name, true).set(first, score);
        }
      }
    }
  }

  override endKey(): void {
    if (this.skipped) return;
    const { key } = this;
    this.counts.keys++;
    if (key.type === RdbValue.String) {
      if (this.elements > 0) this.fromScratch();
      return;
    }
    if (key.type === RdbValue.Stream) {
      this.stream.end();
      this.fromScratch();
      return;
    }
    if (this.elements === 0) {
      this.counts.keys--;
      return;
    }
    this.chooseEncoding();
    if (!this.isPacked) {
      this.fromScratch();
      return;
    }
    this.packed[0] = this.elements;
    this.payload.set(this.packed, this.packedView, 0, this.length);
    this.record(key.type, 0, this.payload);
  }

  private chooseEncoding(): void {
    const { limits } = this.options;
    const { elements, longest } = this;
    switch (this.key.type) {
      case RdbValue.Set:
        if (elements > limits.setMaxIntsetEntries) this.encoding = CONVERTED;
        break;
      case RdbValue.Hash:
        if (elements > limits.hashMaxListpackEntries || longest > limits.hashMaxListpackValue)
          this.encoding = CONVERTED;
        break;
      case RdbValue.ZSet:
        if (elements > limits.zsetMaxListpackEntries || longest > limits.zsetMaxListpackValue)
          this.encoding = CONVERTED;
        break;
    }
  }

  /** Passes on the value in the scratch database, and gives it up there. */
  private fromScratch(): void {
    const { target, name, payload } = this;
    const { keyspace } = target.tier.database(0);
    const hash = target.tier.hasher.hash32(name);
    const ref = keyspace.table.find(hash, name.view, name.start, name.end);
    const isTree = (keyspace.head(ref) & FLAG_TREE) !== 0;
    keyspace.payload(ref, payload);
    this.record(this.key.type, isTree ? keyspace.collection(ref) : 0, payload);
    keyspace.size--;
    keyspace.forget(ref, hash);
  }

  private record(type: number, slot: number, payload: Slice): void {
    const { key, encoding, options } = this;
    const database = options.database >= 0 ? options.database : key.db;
    this.target.record(database, key.key, type, slot, encoding, Math.max(key.expiresAt, 0), payload);
  }
}
