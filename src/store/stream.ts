import { copyBetween } from '../bytes/copy.ts';
import { ByteSink } from '../bytes/sink.ts';
import { Slice } from '../bytes/slice.ts';
import type { EntryVisitor, Stream } from './api.ts';
import { Collection, TWO_TREES_BYTES } from './collection.ts';
import { detachedPayload, itemBytes, PackedItems } from './packed.ts';
import { Pages } from './pages.ts';
import { TREE_PREFIX_BYTES, ValueRef, type Ground } from './record.ts';
import { checkFields, FieldReader, writeFields } from './stream-fields.ts';
import { StreamGroups } from './stream-groups.ts';
import { compareIds, copyId, formatId, newStreamId, STREAM_ID_BYTES } from './stream-id.ts';
import type { TreeCheck } from './tree-check.ts';
import { KeyedTree } from './tree-keyed.ts';

/** Beside the last id: largest deleted id, entries ever added (f64), number of the next group or consumer (u32). */
const REST_BYTES = STREAM_ID_BYTES + 8 + 4;
const STATE_BYTES = STREAM_ID_BYTES + REST_BYTES;
const ZERO_ID = newStreamId();
const SINK_BYTES = 1024;
const SINK_BYTES_KEPT = 1024 * 1024;
/** The fields of the entry that is added. */
let sink = new ByteSink(SINK_BYTES);
/** Words of keys are compared as signed numbers. */
const SIGN = 0x80000000;

/**
 * A stream: its state and its entries packed in the order of ids; then the state behind the descriptor
 * of two trees, one of the entries by id (words: milliseconds, key: sequence number), one of the groups
 * (stream-groups.ts). Packed, the state is the first element: the last id before an item with the rest.
 */
export class StreamHandle extends Collection implements Stream {
  readonly groups: StreamGroups;
  private readonly packed: PackedItems;
  private readonly entries: KeyedTree;
  private readonly id = newStreamId();
  private readonly sequence = new Slice();
  private readonly stored = new Slice();
  private readonly reader = new FieldReader();
  private readonly lentLast = new Slice();
  private readonly lentDeleted = new Slice();

  constructor(ground: Ground) {
    const value = new ValueRef(ground);
    const pages = new Pages(ground.collections);
    const entries = new KeyedTree(pages, 2);
    const groups = new KeyedTree(pages, 2);
    super(value, entries, groups, STATE_BYTES);
    this.entries = entries;
    this.packed = new PackedItems(value, STREAM_ID_BYTES, 1);
    this.groups = new StreamGroups(groups, {
      get hasTrees() {
        return value.isTree;
      },
      begin: (bytes) => this.unpack(bytes),
      save: () => this.saveTrees(),
      takeNumber: () => this.takeNumber(),
    });
  }

  get length(): number {
    return this.value.isTree ? this.entries.count : Math.max(0, this.packed.count - 1);
  }

  // ---- State

  /** Where the last id lies. */
  private get stateAt(): number {
    const { value } = this;
    return value.start + (value.isTree ? TREE_PREFIX_BYTES + TWO_TREES_BYTES : 1);
  }

  /** Where the rest of the state lies; packed, behind the byte of its length. */
  private get restAt(): number {
    return this.stateAt + STREAM_ID_BYTES + (this.value.isTree ? 0 : 1);
  }

  private lend(at: number, into: Slice): Slice {
    const { value } = this;
    if (value.length === 0) return ZERO_ID;
    into.set(value.u8, value.view, at, at + STREAM_ID_BYTES);
    return into;
  }

  get lastId(): Slice {
    return this.lend(this.stateAt, this.lentLast);
  }

  set lastId(id: Slice) {
    this.create();
    this.value.touch();
    this.writeId(id, this.stateAt);
  }

  get maxDeletedId(): Slice {
    return this.lend(this.restAt, this.lentDeleted);
  }

  set maxDeletedId(id: Slice) {
    this.create();
    this.value.touch();
    this.writeId(id, this.restAt);
  }

  private writeId(id: Slice, at: number): void {
    copyBetween(id.u8, id.view, id.start, this.value.u8, this.value.view, at, STREAM_ID_BYTES);
  }

  get entriesAdded(): number {
    const { value } = this;
    return value.length === 0 ? 0 : value.view.getFloat64(this.restAt + STREAM_ID_BYTES, true);
  }

  set entriesAdded(count: number) {
    this.create();
    this.value.touch();
    this.value.view.setFloat64(this.restAt + STREAM_ID_BYTES, count, true);
  }

  private takeNumber(): number {
    const { value } = this;
    value.touch();
    const at = this.restAt + STREAM_ID_BYTES + 8;
    const number = value.view.getUint32(at, true) + 1;
    value.view.setUint32(at, number, true);
    return number;
  }

  create(): void {
    const { value } = this;
    if (value.length > 0) return;
    const length = 1 + STREAM_ID_BYTES + itemBytes(REST_BYTES);
    value.resize(length);
    value.u8.fill(0, value.start, value.start + length);
    value.u8[value.start] = 1;
    value.u8[value.start + 1 + STREAM_ID_BYTES] = REST_BYTES;
  }

  // ---- Entries

  append(id: Slice, fields: readonly Slice[], from: number, to: number): void {
    const { stored, packed } = this;
    sink.pos = 0;
    writeFields(fields, from, to, sink);
    this.create();
    const bytes = STREAM_ID_BYTES + itemBytes(sink.pos);
    const packs = !this.value.isTree && packed.hasRoom(bytes);
    if (!packs) this.unpack(sink.pos);
    stored.set(sink.u8, sink.view, 0, sink.pos);
    if (packs) {
      const offset = packed.offset(packed.count);
      packed.open(offset, bytes);
      this.writeId(id, this.value.start + offset);
      packed.write(offset + STREAM_ID_BYTES, stored);
    } else {
      this.insert(id, stored);
    }
    this.lastId = id;
    this.entriesAdded++;
    if (sink.u8.length > SINK_BYTES_KEPT) sink = new ByteSink(SINK_BYTES);
  }

  private insert(id: Slice, stored: Slice): void {
    const { entries, sequence } = this;
    this.find(id);
    entries.insert(
      id.view.getInt32(id.start) ^ SIGN,
      id.view.getInt32(id.start + 4) ^ SIGN,
      sequence,
      stored,
    );
    this.saveTrees();
  }

  private find(id: Slice): boolean {
    const { view, start } = id;
    this.sequence.set(id.u8, view, start + 8, start + STREAM_ID_BYTES);
    return this.entries.find(view.getInt32(start) ^ SIGN, view.getInt32(start + 4) ^ SIGN, this.sequence);
  }

  /** What is packed moves to trees, with room for `bytes` more. */
  private unpack(bytes: number): void {
    if (this.value.isTree) return;
    this.create();
    const detached = detachedPayload(this.value);
    const old = new PackedItems(detached, STREAM_ID_BYTES, 1);
    this.makeTrees(bytes, false);
    const { value, stored, id } = this;
    const at = this.stateAt;
    const from = detached.start + 1;
    copyBetween(detached.u8, detached.view, from, value.u8, value.view, at, STREAM_ID_BYTES);
    const rest = from + STREAM_ID_BYTES + 1;
    copyBetween(detached.u8, detached.view, rest, value.u8, value.view, at + STREAM_ID_BYTES, REST_BYTES);
    for (let rank = 1, offset = old.after(1); rank < old.count; rank++, offset = old.after(offset)) {
      const start = detached.start + offset;
      copyBetween(detached.u8, detached.view, start, id.u8, id.view, id.start, STREAM_ID_BYTES);
      old.item(offset, 0, stored);
      this.insert(id, stored);
    }
  }

  /** The packed entry at an offset, as `id` and `stored`. */
  private readPacked(offset: number): void {
    const { packed, id, stored, value } = this;
    copyBetween(value.u8, value.view, value.start + offset, id.u8, id.view, id.start, STREAM_ID_BYTES);
    packed.item(offset, 0, stored);
  }

  /** The entry at the cursor, as `id` and `stored`. */
  private readTree(): void {
    const { entries, id, sequence, stored } = this;
    entries.entry(sequence, stored);
    id.view.setInt32(id.start, entries.wordAt(0) ^ SIGN);
    id.view.setInt32(id.start + 4, entries.wordAt(1) ^ SIGN);
    copyBetween(sequence.u8, sequence.view, sequence.start, id.u8, id.view, id.start + 8, 8);
  }

  has(id: Slice): boolean {
    if (this.value.isTree) return this.find(id);
    const rank = this.countBelow(id, false);
    if (rank === this.length) return false;
    this.readPacked(this.packed.offset(rank + 1));
    return compareIds(this.id, id) === 0;
  }

  countBelow(id: Slice, inclusive: boolean): number {
    if (this.value.isTree) {
      const found = this.find(id);
      return this.entries.rank() + (found && inclusive ? 1 : 0);
    }
    const { length, packed } = this;
    let offset = packed.offset(1);
    for (let rank = 0; rank < length; rank++, offset = packed.after(offset)) {
      this.readPacked(offset);
      const order = compareIds(this.id, id);
      if (inclusive ? order > 0 : order >= 0) return rank;
    }
    return length;
  }

  idAt(rank: number, into: Slice): boolean {
    if (rank < 0 || rank >= this.length) return false;
    if (this.value.isTree) {
      this.entries.select(rank);
      this.readTree();
    } else {
      this.readPacked(this.packed.offset(rank + 1));
    }
    copyId(this.id, into);
    return true;
  }

  forEachFrom(rank: number, step: 1 | -1, visit: EntryVisitor): void {
    const { entries, packed, reader, length, id, stored } = this;
    if (rank < 0 || rank >= length) return;
    if (this.value.isTree) {
      entries.select(rank);
      do {
        this.readTree();
        reader.read(stored);
      } while (visit(id, reader.fields, reader.count) && (step === 1 ? entries.next() : entries.previous()));
      return;
    }
    for (let offset = packed.offset(rank + 1); ;) {
      this.readPacked(offset);
      reader.read(stored);
      if (!visit(id, reader.fields, reader.count)) return;
      rank += step;
      if (rank < 0 || rank >= length) return;
      offset = step === 1 ? packed.after(offset) : packed.offset(rank + 1);
    }
  }

  remove(id: Slice): boolean {
    if (!this.has(id)) return false;
    if (this.value.isTree) {
      this.entries.remove();
      this.saveTrees();
    } else {
      this.packed.remove(this.packed.offset(this.countBelow(id, false) + 1), 1);
    }
    if (compareIds(id, this.maxDeletedId) > 0) this.maxDeletedId = id;
    return true;
  }

  removeRange(rank: number, count: number): void {
    const run = Math.min(count, this.length - rank);
    if (run <= 0) return;
    if (this.value.isTree) {
      this.entries.removeRange(rank, run);
      this.saveTrees();
    } else {
      this.packed.remove(this.packed.offset(rank + 1), run);
    }
  }

  protected override checkPacked(): string | null {
    const { packed, value, length, id, stored } = this;
    const reason = packed.check();
    if (reason !== null || value.length === 0) return reason;
    packed.item(1, 0, stored);
    if (stored.length !== REST_BYTES) return 'the state is damaged';
    const last = newStreamId();
    for (let rank = 0, offset = packed.after(1); rank < length; rank++, offset = packed.after(offset)) {
      this.readPacked(offset);
      if (compareIds(id, last) <= 0) return `entry ${rank} is not above the one before`;
      const wrong = checkFields(stored);
      if (wrong !== null) return `entry ${rank}: ${wrong}`;
      copyId(id, last);
    }
    return this.checkState(last);
  }

  /** After the check of all entries, the last of which has that id. */
  private checkState(last: Slice): string | null {
    if (compareIds(this.lastId, last) < 0) return 'the last id is below that of an entry';
    const { entriesAdded } = this;
    return Number.isFinite(entriesAdded) ? null : `${entriesAdded} entries were added`;
  }

  private checkEntries(): string | null {
    const { entries, sequence, stored, id } = this;
    id.u8.fill(0, id.start, id.end);
    if (entries.select(0)) {
      do {
        entries.entry(sequence, stored);
        if (sequence.length !== STREAM_ID_BYTES - 8) return `an entry has a key of ${sequence.length} bytes`;
        this.readTree();
        const wrong = checkFields(stored);
        if (wrong !== null) return `entry ${formatId(id)}: ${wrong}`;
      } while (entries.next());
    }
    return this.checkState(id);
  }

  protected override get mayBeEmpty(): boolean {
    return true;
  }

  /** The largest number that a group or consumer has been given. */
  private get lastNumber(): number {
    return this.value.view.getUint32(this.restAt + STREAM_ID_BYTES + 8, true);
  }

  protected override checkTrees(check: TreeCheck): string | null {
    return check.keyed(this.entries) ?? this.checkEntries() ?? this.groups.check(check, this.lastNumber);
  }
}
