/** Reads a stream: its nodes, its state, then groups with their pending entries and consumers. */
import { allocatePadded, Slice, viewOf } from '../bytes/slice.ts';
import { Damage } from './error.ts';
import { RdbType, STREAM_ID_BYTES, StreamItem } from './format.ts';
import { LENGTH_UNKNOWN, type RdbInput } from './input.ts';
import { ListpackWalker } from './listpack.ts';
import { exactInteger, Text } from './text.ts';
import { StreamConsumer, StreamGroup, StreamState, type RdbVisitor } from './visitor.ts';

const Part = { Nodes: 0, State: 1, Groups: 2, Pending: 3, Consumers: 4, Owned: 5 } as const;
type Part = (typeof Part)[keyof typeof Part];

/** Bytes that a pending entry takes at least: id, time, count. */
const PENDING_BYTES_MIN = STREAM_ID_BYTES + 8 + 1;
/** Milliseconds or sequence numbers below this are added as plain numbers. */
const FAST_MAX = Number.MAX_SAFE_INTEGER / 2;
const TWO_32 = 0x1_0000_0000;

export class StreamReader {
  private readonly input: RdbInput;
  private readonly visitor: RdbVisitor;
  private part: Part = Part.Nodes;
  private encoding = 0;
  /** Nodes, pending entries or owned ids that are still to come. */
  private rest = 0;
  private groups = 0;
  private consumers = 0;
  /** Entries that the nodes held. */
  private entries = 0;

  private readonly state = new StreamState();
  private readonly group = new StreamGroup();
  private readonly consumer = new StreamConsumer();
  private readonly id = ownId(new Slice());
  private readonly nodeId = ownId(new Slice());
  private readonly lastId = ownId(new Slice());
  private readonly foundFirstId = ownId(new Slice());
  private readonly pendingId = new Slice();
  private readonly first = new Text();
  private readonly second = new Text();
  private readonly walker = new ListpackWalker();
  /** Entries of the node in progress that the walker has not given yet. */
  private left = 0;
  /** What the walker gives for the node's first fields, and for one entry: names and values by turns. */
  private readonly names: Text[] = [];
  private nameCount = 0;
  private readonly texts: Text[] = [];
  private readonly fields: Slice[] = [];

  constructor(input: RdbInput, visitor: RdbVisitor) {
    this.input = input;
    this.visitor = visitor;
    ownId(this.state.lastId);
    ownId(this.state.firstId);
    ownId(this.state.maxDeletedId);
    ownId(this.group.lastId);
  }

  begin(encoding: number, nodes: number): void {
    this.encoding = encoding;
    this.rest = nodes;
    this.entries = 0;
    this.part = Part.Nodes;
    this.lastId.u8.fill(0);
    this.foundFirstId.u8.fill(0);
  }

  /** Reads one item; true when it was the stream's last. */
  step(): boolean {
    switch (this.part) {
      case Part.Nodes:
        if (this.rest > 0) this.node();
        else this.readState();
        return false;
      case Part.Groups:
        if (this.groups === 0) return true;
        this.readGroup();
        return false;
      case Part.Pending:
        if (this.rest > 0) this.pending();
        else this.readConsumers();
        return false;
      case Part.Consumers:
        if (this.consumers > 0) this.readConsumer();
        else this.part = Part.Groups;
        return false;
      case Part.Owned:
        if (this.rest > 0) this.owned();
        else this.part = Part.Consumers;
    }
    return false;
  }

  /**
   * A node: an id, and a listpack of a header (entries, deleted entries, field names, 0) and entries
   * (flags, the id's difference to the node's, fields, how many pieces the entry has).
   */
  private node(): void {
    const { input, first, walker, nodeId } = this;
    input.text(first);
    if (first.slice.length !== STREAM_ID_BYTES) {
      throw new Damage(`a stream node has an id of ${first.slice.length} bytes`);
    }
    first.slice.u8.copy(nodeId.u8, 0, first.slice.start, first.slice.end);
    input.text(first);
    this.left = walker.open(first.slice);
    const live = this.number('how many entries a node has');
    const deleted = this.number('how many entries of a node are deleted');
    this.nameCount = this.number('how many names a node has');
    if (this.nameCount > this.left) throw new Damage(`a stream node has ${this.nameCount} names`);
    for (let i = 0; i < this.nameCount; i++) this.piece((this.names[i] ??= new Text()));
    if (this.number('the end of the names') !== 0) throw new Damage('the names of a stream node do not end');
    let seenLive = 0;
    let seenDeleted = 0;
    while (this.left > 0) {
      if (this.entry()) seenDeleted++;
      else seenLive++;
    }
    if (seenLive !== live || seenDeleted !== deleted) {
      throw new Damage(
        `a stream node of ${seenLive} entries and ${seenDeleted} deleted says that it has ${live} and ${deleted}`,
      );
    }
    this.entries += live;
    this.rest--;
    input.commit();
  }

  /** One entry of the node; true when it is deleted. */
  private entry(): boolean {
    const flags = this.number('the flags of an entry');
    this.readId();
    const same = (flags & StreamItem.SameFields) !== 0;
    const count = same ? this.nameCount : this.number('how many fields an entry has');
    if (count > this.left) throw new Damage(`a stream entry has ${count} fields`);
    while (this.fields.length < 2 * count) {
      this.texts.push(new Text());
      this.fields.push(this.texts[this.texts.length - 1].slice);
    }
    for (let i = 0; i < count; i++) {
      if (same) this.fields[2 * i] = this.names[i].slice;
      else {
        this.piece(this.texts[2 * i]);
        this.fields[2 * i] = this.texts[2 * i].slice;
      }
      this.piece(this.texts[2 * i + 1]);
    }
    // Flags and id, the count of fields, names, values.
    const pieces = same ? count + 3 : 2 * count + 4;
    const told = this.number('how many pieces an entry has');
    if (told !== pieces) throw new Damage(`a stream entry of ${pieces} pieces says that it has ${told}`);
    if ((flags & StreamItem.Deleted) !== 0) return true;
    const { id, lastId } = this;
    if (id.compare(lastId) <= 0) throw new Damage('a stream entry is not after the one before it');
    id.u8.copy(lastId.u8);
    if (this.foundFirstId.u8.readBigUint64BE(0) === 0n && this.foundFirstId.u8.readBigUint64BE(8) === 0n) {
      id.u8.copy(this.foundFirstId.u8);
    }
    this.visitor.streamEntry(id, this.fields, 2 * count);
    return false;
  }

  /** The id of an entry: the node's, and a difference for each half. */
  private readId(): void {
    const { nodeId, id, second } = this;
    for (let at = 0; at < STREAM_ID_BYTES; at += 8) {
      this.piece(second);
      const difference = second.integer;
      const base = nodeId.view.getUint32(at) * TWO_32 + nodeId.view.getUint32(at + 4);
      if (difference >= 0 && difference < FAST_MAX && base < FAST_MAX) {
        const sum = base + difference;
        id.view.setUint32(at, Math.floor(sum / TWO_32));
        id.view.setUint32(at + 4, sum % TWO_32);
      } else {
        const exact = exactInteger(second);
        if (exact === undefined) throw new Damage('the id of a stream entry is not a number');
        id.view.setBigUint64(at, nodeId.view.getBigUint64(at) + exact);
      }
    }
  }

  private piece(into: Text): void {
    if (this.left === 0) throw new Damage('a stream node ends within an entry');
    this.left--;
    this.walker.next(into);
  }

  private number(what: string): number {
    this.piece(this.second);
    const value = this.second.integer;
    if (!(value >= 0 && value <= Number.MAX_SAFE_INTEGER)) throw new Damage(`${what} is not a count`);
    return value;
  }

  private idLengths(into: Slice): void {
    this.input.length64(into.view, 0);
    this.input.length64(into.view, 8);
  }

  private known(length: number): number {
    if (length === LENGTH_UNKNOWN) throw new Damage('a stream counts 2^64 - 1 entries');
    return length;
  }

  private readState(): void {
    const { input, state } = this;
    state.length = this.known(input.length());
    this.idLengths(state.lastId);
    if (this.encoding >= RdbType.StreamListpacks2) {
      this.idLengths(state.firstId);
      this.idLengths(state.maxDeletedId);
      state.entriesAdded = this.known(input.length());
    } else {
      this.foundFirstId.u8.copy(state.firstId.u8);
      state.maxDeletedId.u8.fill(0);
      state.entriesAdded = state.length;
    }
    state.groups = this.groups = input.count(5);
    if (state.length !== this.entries) {
      throw new Damage(`a stream of ${this.entries} entries says that it has ${state.length}`);
    }
    if (this.lastId.compare(state.lastId) > 0) throw new Damage('a stream has entries beyond its last id');
    this.part = Part.Groups;
    input.commit();
    this.visitor.streamEnd(state);
  }

  private readGroup(): void {
    const { input, group, first } = this;
    input.text(first);
    group.name.setSlice(first.slice);
    this.idLengths(group.lastId);
    group.entriesRead =
      this.encoding >= RdbType.StreamListpacks2 ? input.length() : this.estimatedEntriesRead(group.lastId);
    group.pending = this.rest = input.count(PENDING_BYTES_MIN);
    this.groups--;
    this.part = Part.Pending;
    input.commit();
    this.visitor.streamGroup(group);
  }

  /** Files before version 10 do not tell what a group has read; this is what Redis makes of its last id. */
  private estimatedEntriesRead(id: Slice): number {
    const { state } = this;
    const toLast = id.compare(state.lastId);
    if (toLast === 0 || (state.length === 0 && toLast < 0)) return state.entriesAdded;
    if (toLast > 0) return LENGTH_UNKNOWN;
    const toFirst = id.compare(state.firstId);
    if (toFirst > 0) return LENGTH_UNKNOWN;
    return state.entriesAdded - state.length + (toFirst === 0 ? 1 : 0);
  }

  private pending(): void {
    const { input, pendingId } = this;
    input.bytes(STREAM_ID_BYTES, pendingId);
    const deliveredAt = input.milliseconds();
    const deliveries = input.length();
    this.rest--;
    input.commit();
    this.visitor.streamPending(pendingId, deliveredAt, deliveries);
  }

  private readConsumers(): void {
    this.consumers = this.input.count(1);
    this.part = Part.Consumers;
    this.input.commit();
    this.visitor.streamConsumers(this.consumers);
  }

  private readConsumer(): void {
    const { input, consumer, first } = this;
    input.text(first);
    consumer.name.setSlice(first.slice);
    consumer.seenAt = input.milliseconds();
    consumer.activeAt = this.encoding >= RdbType.StreamListpacks3 ? input.milliseconds() : consumer.seenAt;
    consumer.pending = this.rest = input.count(STREAM_ID_BYTES);
    this.consumers--;
    this.part = Part.Owned;
    input.commit();
    this.visitor.streamConsumer(consumer);
  }

  private owned(): void {
    const { input, pendingId } = this;
    input.bytes(STREAM_ID_BYTES, pendingId);
    this.rest--;
    input.commit();
    this.visitor.streamOwned(pendingId);
  }
}

/** Gives the slice 16 bytes of its own. */
function ownId(slice: Slice): Slice {
  const memory = allocatePadded(STREAM_ID_BYTES);
  slice.set(memory, viewOf(memory.buffer), 0, STREAM_ID_BYTES);
  return slice;
}
