/**
 * The consumer groups of a stream: entries of one tree, so that they are paged, written and copied with
 * it. Groups and consumers have numbers that the stream never gives twice. Keys are two words and bytes:
 *
 * | words      | bytes                | value                                                         |
 * | ---------- | -------------------- | ------------------------------------------------------------- |
 * | 0, 0       | group's name         | number u32, entries read f64 (-1: not known), last id         |
 * | group, 0   | consumer's name      | number u32, seen at f64                                       |
 * | group, 1   | id                   | consumer u32 (0: none yet), delivered at f64, deliveries f64  |
 * | group, 2   | consumer u32, id     |                                                               |
 * | group, 3   | consumer u32         | consumer's name                                               |
 *
 * Values are little endian, numbers in keys big endian. Counts are differences of ranks.
 */
import { copyBetween } from '../bytes/copy.ts';
import { allocatePadded, Slice, viewOf } from '../bytes/slice.ts';
import type { Groups, PendingEntry, StreamConsumer, StreamGroup } from './api.ts';
import { copyId, newStreamId, STREAM_ID_BYTES } from './stream-id.ts';
import type { TreeCheck } from './tree-check.ts';
import { NO_VALUE, type KeyedTree } from './tree-keyed.ts';

const Part = { Consumers: 0, Pending: 1, Owned: 2, Names: 3, End: 4 } as const;
type Part = (typeof Part)[keyof typeof Part];

const GROUP_BYTES = 12 + STREAM_ID_BYTES;
const CONSUMER_BYTES = 12;
const PENDING_BYTES = 20;

/** What the groups need of their stream. */
export interface GroupsOwner {
  /** The stream has trees, though perhaps none of groups. */
  readonly hasTrees: boolean;
  /** Makes sure of it, and of room for so many bytes. */
  begin(bytes: number): void;
  save(): void;
  takeNumber(): number;
}

export class StreamGroups implements Groups {
  private readonly tree: KeyedTree;
  private readonly owner: GroupsOwner;
  private readonly scratch = allocatePadded(GROUP_BYTES);
  private readonly scratchView = viewOf(this.scratch.buffer);
  private readonly value = new Slice();
  private readonly found = new Slice();
  private readonly key = new Slice();
  private readonly ownKey = Slice.from(Buffer.alloc(4 + STREAM_ID_BYTES));
  private readonly id = newStreamId();

  constructor(tree: KeyedTree, owner: GroupsOwner) {
    this.tree = tree;
    this.owner = owner;
  }

  /** @param lastNumber the largest that a group or consumer has been given */
  check(check: TreeCheck, lastNumber: number): string | null {
    return this.exists ? (check.keyed(this.tree) ?? this.checkEntries(lastNumber)) : null;
  }

  private checkEntries(lastNumber: number): string | null {
    const { tree } = this;
    const groups = new Set<number>();
    const { count } = this;
    const wrong = (what: string): string => `${what} of a consumer group is damaged`;
    for (let rank = 0; rank < count; rank++) {
      tree.select(rank);
      const { view, start, length } = this.read();
      if (length !== GROUP_BYTES) return wrong('the state');
      const number = view.getUint32(start, true);
      const entriesRead = view.getFloat64(start + 4, true);
      const known = number > 0 && number <= lastNumber && Number.isFinite(entriesRead);
      if (!known || groups.has(number)) return wrong('the state');
      groups.add(number);
    }
    let checked = count;
    for (const number of groups) {
      const reason = this.checkGroup(number, lastNumber);
      if (reason !== null) return wrong(reason);
      checked += this.rankOf(number, Part.End, NO_VALUE) - this.rankOf(number, Part.Consumers, NO_VALUE);
    }
    return checked === tree.count ? null : 'there are entries of no consumer group';
  }

  /** Null, or what of a group is damaged. */
  private checkGroup(group: number, lastNumber: number): string | null {
    const { tree, key, id } = this;
    const consumers = new Set<number>();
    const each = (part: Part, visit: (value: Slice) => boolean): boolean => {
      const first = this.rankOf(group, part, NO_VALUE);
      const end = this.rankOf(group, part + 1, NO_VALUE);
      for (let rank = first; rank < end; rank++) {
        tree.select(rank);
        if (!visit(this.read())) return false;
      }
      return true;
    };
    const sound =
      each(Part.Consumers, ({ view, start, length }) => {
        if (length !== CONSUMER_BYTES) return false;
        const number = view.getUint32(start, true);
        const name = key.clone();
        if (number === 0 || number > lastNumber || consumers.has(number)) return false;
        if (!Number.isFinite(view.getFloat64(start + 4, true))) return false;
        consumers.add(number);
        return tree.find(group, Part.Names, this.numberKey(number)) && this.read().equals(name);
      }) && this.countOf(group, Part.Names) === consumers.size;
    if (!sound) return 'a consumer';
    let owned = 0;
    const pending = each(Part.Pending, ({ view, start, length }) => {
      if (key.length !== STREAM_ID_BYTES || length !== PENDING_BYTES) return false;
      const consumer = view.getUint32(start, true);
      const deliveredAt = view.getFloat64(start + 4, true);
      if (!Number.isFinite(deliveredAt) || !Number.isFinite(view.getFloat64(start + 12, true))) return false;
      if (consumer === 0) return true;
      owned++;
      copyId(key, id);
      return consumers.has(consumer) && tree.find(group, Part.Owned, this.ownedKey(consumer, id));
    });
    return pending && this.countOf(group, Part.Owned) === owned ? null : 'a pending entry';
  }

  /** A stream that never had a group has no page for them. */
  private get exists(): boolean {
    return this.owner.hasTrees && this.tree.root !== 0;
  }

  /** The value's bytes at the cursor. */
  private read(): Slice {
    this.tree.entry(this.key, this.found);
    return this.found;
  }

  private scratchValue(bytes: number): Slice {
    this.value.set(this.scratch, this.scratchView, 0, bytes);
    return this.value;
  }

  /** Sets the value of a key that the last `find` did or did not meet. */
  private put(word0: number, word1: number, key: Slice, value: Slice): void {
    if (this.tree.found) this.tree.replaceValue(key, value);
    else this.tree.insert(word0, word1, key, value);
    this.owner.save();
  }

  private rankOf(word0: number, word1: number, key: Slice): number {
    this.tree.find(word0, word1, key);
    return this.tree.rank();
  }

  private countOf(group: number, part: Part): number {
    const first = this.rankOf(group, part, NO_VALUE);
    return this.rankOf(group, part + 1, NO_VALUE) - first;
  }

  // ---- Groups

  get count(): number {
    return this.exists ? this.rankOf(0, 1, NO_VALUE) : 0;
  }

  names(): Slice[] {
    const names: Slice[] = [];
    const { count } = this;
    for (let rank = 0; rank < count; rank++) {
      this.tree.select(rank);
      this.tree.key(this.key);
      names.push(this.key.clone());
    }
    return names;
  }

  get(name: Slice): StreamGroup | null {
    if (!this.exists || !this.tree.find(0, 0, name)) return null;
    const { u8, view, start } = this.read();
    const lastId = newStreamId();
    copyBetween(u8, view, start + 12, lastId.u8, lastId.view, 0, STREAM_ID_BYTES);
    return { number: view.getUint32(start, true), entriesRead: view.getFloat64(start + 4, true), lastId };
  }

  create(name: Slice, lastId: Slice, entriesRead: number): StreamGroup | null {
    this.owner.begin(name.length + GROUP_BYTES);
    if (!this.exists) this.tree.create();
    if (this.tree.find(0, 0, name)) return null;
    const group = { number: this.owner.takeNumber(), entriesRead, lastId };
    this.update(name, group);
    return group;
  }

  update(name: Slice, group: StreamGroup): void {
    const value = this.scratchValue(GROUP_BYTES);
    value.view.setUint32(0, group.number, true);
    value.view.setFloat64(4, group.entriesRead, true);
    const { u8, view, start } = group.lastId;
    copyBetween(u8, view, start, value.u8, value.view, 12, STREAM_ID_BYTES);
    this.tree.find(0, 0, name);
    this.put(0, 0, name, value);
  }

  destroy(name: Slice): boolean {
    const group = this.get(name);
    if (group === null) return false;
    const first = this.rankOf(group.number, Part.Consumers, NO_VALUE);
    this.tree.removeRange(first, this.rankOf(group.number, Part.End, NO_VALUE) - first);
    this.tree.find(0, 0, name);
    this.tree.remove();
    this.owner.save();
    return true;
  }

  // ---- Consumers

  consumerCount(group: StreamGroup): number {
    return this.countOf(group.number, Part.Consumers);
  }

  consumers(group: StreamGroup): StreamConsumer[] {
    const consumers: StreamConsumer[] = [];
    const first = this.rankOf(group.number, Part.Consumers, NO_VALUE);
    const end = first + this.consumerCount(group);
    for (let rank = first; rank < end; rank++) {
      this.tree.select(rank);
      const { view, start } = this.read();
      const number = view.getUint32(start, true);
      consumers.push({ name: this.key.clone(), number, seenAt: view.getFloat64(start + 4, true) });
    }
    return consumers;
  }

  consumer(group: StreamGroup, name: Slice): StreamConsumer | null {
    if (!this.tree.find(group.number, Part.Consumers, name)) return null;
    const { view, start } = this.read();
    return { name, number: view.getUint32(start, true), seenAt: view.getFloat64(start + 4, true) };
  }

  createConsumer(group: StreamGroup, name: Slice, seenAt: number): StreamConsumer {
    const consumer = { name, number: this.owner.takeNumber(), seenAt };
    this.setSeen(group, consumer, seenAt);
    const key = this.numberKey(consumer.number);
    this.tree.find(group.number, Part.Names, key);
    this.put(group.number, Part.Names, key, name);
    return consumer;
  }

  setSeen(group: StreamGroup, consumer: StreamConsumer, seenAt: number): void {
    consumer.seenAt = seenAt;
    const value = this.scratchValue(CONSUMER_BYTES);
    value.view.setUint32(0, consumer.number, true);
    value.view.setFloat64(4, seenAt, true);
    this.tree.find(group.number, Part.Consumers, consumer.name);
    this.put(group.number, Part.Consumers, consumer.name, value);
  }

  removeConsumer(group: StreamGroup, consumer: StreamConsumer): number {
    const { tree } = this;
    const pending = this.ownedCount(group, consumer);
    for (let left = pending; left > 0; left--) {
      tree.select(this.rankOf(group.number, Part.Owned, this.numberKey(consumer.number)));
      this.readOwnedId();
      tree.remove();
      tree.find(group.number, Part.Pending, this.id);
      tree.remove();
    }
    tree.find(group.number, Part.Names, this.numberKey(consumer.number));
    tree.remove();
    tree.find(group.number, Part.Consumers, consumer.name);
    tree.remove();
    this.owner.save();
    return pending;
  }

  consumerName(group: StreamGroup, number: number): Slice {
    return this.tree.find(group.number, Part.Names, this.numberKey(number)) ? this.read() : NO_VALUE;
  }

  // ---- Pending entries

  /** A consumer's number as a key, or the beginning of one. */
  private numberKey(number: number): Slice {
    this.ownKey.view.setUint32(0, number);
    this.ownKey.end = 4;
    return this.ownKey;
  }

  private ownedKey(number: number, id: Slice): Slice {
    const { ownKey } = this;
    ownKey.view.setUint32(0, number);
    copyBetween(id.u8, id.view, id.start, ownKey.u8, ownKey.view, 4, STREAM_ID_BYTES);
    ownKey.end = 4 + STREAM_ID_BYTES;
    return ownKey;
  }

  /** The id of the owned entry at the cursor, as `id`. */
  private readOwnedId(): void {
    this.tree.key(this.key);
    const { u8, view, start } = this.key;
    copyBetween(u8, view, start + 4, this.id.u8, this.id.view, 0, STREAM_ID_BYTES);
  }

  pendingCount(group: StreamGroup): number {
    return this.countOf(group.number, Part.Pending);
  }

  ownedCount(group: StreamGroup, consumer: StreamConsumer): number {
    const first = this.rankOf(group.number, Part.Owned, this.numberKey(consumer.number));
    return this.rankOf(group.number, Part.Owned, this.numberKey(consumer.number + 1)) - first;
  }

  pending(group: StreamGroup, id: Slice): PendingEntry | null {
    return this.tree.find(group.number, Part.Pending, id) ? this.readPending() : null;
  }

  private readPending(): PendingEntry {
    const { view, start } = this.read();
    return {
      consumer: view.getUint32(start, true),
      deliveredAt: view.getFloat64(start + 4, true),
      deliveries: view.getFloat64(start + 12, true),
    };
  }

  setPending(group: StreamGroup, id: Slice, entry: PendingEntry): void {
    const { tree } = this;
    const { number } = group;
    const old = tree.find(number, Part.Pending, id) ? this.readPending().consumer : 0;
    const value = this.scratchValue(PENDING_BYTES);
    value.view.setUint32(0, entry.consumer, true);
    value.view.setFloat64(4, entry.deliveredAt, true);
    value.view.setFloat64(12, entry.deliveries, true);
    this.put(number, Part.Pending, id, value);
    if (old === entry.consumer) return;
    if (old !== 0) this.removeOwned(number, old, id);
    if (entry.consumer === 0) return;
    const key = this.ownedKey(entry.consumer, id);
    tree.find(number, Part.Owned, key);
    this.put(number, Part.Owned, key, NO_VALUE);
  }

  private removeOwned(group: number, consumer: number, id: Slice): void {
    if (!this.tree.find(group, Part.Owned, this.ownedKey(consumer, id))) return;
    this.tree.remove();
    this.owner.save();
  }

  removePending(group: StreamGroup, id: Slice): boolean {
    if (!this.tree.find(group.number, Part.Pending, id)) return false;
    const { consumer } = this.readPending();
    this.tree.remove();
    this.removeOwned(group.number, consumer, id);
    this.owner.save();
    return true;
  }

  lastPending(group: StreamGroup, into: Slice): void {
    this.tree.select(this.rankOf(group.number, Part.Owned, NO_VALUE) - 1);
    this.tree.key(this.key);
    copyId(this.key, into);
  }

  forEachPending(group: StreamGroup, from: Slice, visit: (id: Slice, entry: PendingEntry) => boolean): void {
    const { tree, id, key } = this;
    const first = this.rankOf(group.number, Part.Pending, from);
    const end = this.rankOf(group.number, Part.Owned, NO_VALUE);
    for (let rank = first; rank < end; rank++) {
      tree.select(rank);
      const entry = this.readPending();
      copyId(key, id);
      if (!visit(id, entry)) return;
    }
  }

  forEachOwned(
    group: StreamGroup,
    consumer: StreamConsumer,
    from: Slice,
    visit: (id: Slice, entry: PendingEntry) => boolean,
  ): void {
    const { tree, id } = this;
    const first = this.rankOf(group.number, Part.Owned, this.ownedKey(consumer.number, from));
    const end = this.rankOf(group.number, Part.Owned, this.numberKey(consumer.number + 1));
    for (let rank = first; rank < end; rank++) {
      tree.select(rank);
      this.readOwnedId();
      tree.find(group.number, Part.Pending, id);
      if (!visit(id, this.readPending())) return;
    }
  }
}
