/** The stream of the model store, in plain collections. Ids are strings of 16 characters, which sort as they do. */
import { Slice } from '../../src/bytes/slice.ts';
import type {
  EntryVisitor,
  Groups,
  PendingEntry,
  Stream,
  StreamConsumer,
  StreamGroup,
} from '../../src/store/api.ts';

type Bytes = string; // one character a byte

interface ModelGroup {
  number: number;
  entriesRead: number;
  lastId: Bytes;
  consumers: Map<Bytes, { number: number; seenAt: number }>;
  pending: Map<Bytes, PendingEntry>;
}

export interface StreamContent {
  entries: { id: Bytes; fields: Bytes[] }[];
  lastId: Bytes;
  maxDeletedId: Bytes;
  added: number;
  numbers: number;
  groups: Map<Bytes, ModelGroup>;
}

const ZERO = '\0'.repeat(16);
const latin1 = (bytes: Bytes): Slice => Slice.from(Buffer.from(bytes, 'latin1'));

export function emptyStream(): StreamContent {
  return { entries: [], lastId: ZERO, maxDeletedId: ZERO, added: 0, numbers: 0, groups: new Map() };
}

export class ModelStream implements Stream {
  readonly groups: Groups;
  private readonly content: StreamContent;

  constructor(content: StreamContent) {
    this.content = content;
    this.groups = new ModelGroups(content);
  }

  get length(): number {
    return this.content.entries.length;
  }

  get lastId(): Slice {
    return latin1(this.content.lastId);
  }

  set lastId(id: Slice) {
    this.content.lastId = id.latin1();
  }

  get maxDeletedId(): Slice {
    return latin1(this.content.maxDeletedId);
  }

  set maxDeletedId(id: Slice) {
    this.content.maxDeletedId = id.latin1();
  }

  get entriesAdded(): number {
    return this.content.added;
  }

  set entriesAdded(count: number) {
    this.content.added = count;
  }

  create(): void {
    // it exists as soon as it is opened
  }

  append(id: Slice, fields: readonly Slice[], from: number, to: number): void {
    const bytes = id.latin1();
    this.content.entries.push({ id: bytes, fields: fields.slice(from, to).map((field) => field.latin1()) });
    this.content.lastId = bytes;
    this.content.added++;
  }

  has(id: Slice): boolean {
    return this.content.entries.some((entry) => entry.id === id.latin1());
  }

  countBelow(id: Slice, inclusive: boolean): number {
    const bytes = id.latin1();
    return this.content.entries.filter((entry) => (inclusive ? entry.id <= bytes : entry.id < bytes)).length;
  }

  idAt(rank: number, into: Slice): boolean {
    if (!(rank in this.content.entries)) return false;
    into.u8.write(this.content.entries[rank].id, into.start, 'latin1');
    return true;
  }

  forEachFrom(rank: number, step: 1 | -1, visit: EntryVisitor): void {
    const { entries } = this.content;
    for (let i = rank; i >= 0 && i < entries.length; i += step) {
      const fields = entries[i].fields.map(latin1);
      if (!visit(latin1(entries[i].id), fields, fields.length)) return;
    }
  }

  remove(id: Slice): boolean {
    if (!this.has(id)) return false;
    this.removeRange(this.countBelow(id, false), 1);
    if (id.latin1() > this.content.maxDeletedId) this.content.maxDeletedId = id.latin1();
    return true;
  }

  removeRange(rank: number, count: number): void {
    this.content.entries.splice(rank, count);
  }
}

class ModelGroups implements Groups {
  private readonly content: StreamContent;

  constructor(content: StreamContent) {
    this.content = content;
  }

  private of(group: StreamGroup): ModelGroup {
    return [...this.content.groups.values()].find(({ number }) => number === group.number)!;
  }

  get count(): number {
    return this.content.groups.size;
  }

  names(): Slice[] {
    return [...this.content.groups.keys()].sort().map(latin1);
  }

  get(name: Slice): StreamGroup | null {
    const group = this.content.groups.get(name.latin1());
    return group === undefined ? null : { ...group, lastId: latin1(group.lastId) };
  }

  create(name: Slice, lastId: Slice, entriesRead: number): StreamGroup | null {
    if (this.content.groups.has(name.latin1())) return null;
    this.content.groups.set(name.latin1(), {
      number: ++this.content.numbers,
      entriesRead,
      lastId: lastId.latin1(),
      consumers: new Map(),
      pending: new Map(),
    });
    return this.get(name);
  }

  update(name: Slice, { entriesRead, lastId }: StreamGroup): void {
    Object.assign(this.content.groups.get(name.latin1())!, { entriesRead, lastId: lastId.latin1() });
  }

  destroy(name: Slice): boolean {
    return this.content.groups.delete(name.latin1());
  }

  consumerCount(group: StreamGroup): number {
    return this.of(group).consumers.size;
  }

  consumers(group: StreamGroup): StreamConsumer[] {
    return [...this.of(group).consumers.keys()].sort().map((name) => this.consumer(group, latin1(name))!);
  }

  consumer(group: StreamGroup, name: Slice): StreamConsumer | null {
    const consumer = this.of(group).consumers.get(name.latin1());
    return consumer === undefined ? null : { name, ...consumer };
  }

  createConsumer(group: StreamGroup, name: Slice, seenAt: number): StreamConsumer {
    this.of(group).consumers.set(name.latin1(), { number: ++this.content.numbers, seenAt });
    return this.consumer(group, name)!;
  }

  setSeen(group: StreamGroup, consumer: StreamConsumer, seenAt: number): void {
    consumer.seenAt = seenAt;
    this.of(group).consumers.get(consumer.name.latin1())!.seenAt = seenAt;
  }

  removeConsumer(group: StreamGroup, consumer: StreamConsumer): number {
    const { consumers, pending } = this.of(group);
    const owned = [...pending].filter(([, entry]) => entry.consumer === consumer.number);
    for (const [id] of owned) pending.delete(id);
    consumers.delete(consumer.name.latin1());
    return owned.length;
  }

  consumerName(group: StreamGroup, number: number): Slice {
    for (const [name, consumer] of this.of(group).consumers)
      if (consumer.number === number) return latin1(name);
    return new Slice();
  }

  pendingCount(group: StreamGroup): number {
    return this.of(group).pending.size;
  }

  ownedCount(group: StreamGroup, { number }: StreamConsumer): number {
    return [...this.of(group).pending.values()].filter(({ consumer }) => consumer === number).length;
  }

  pending(group: StreamGroup, id: Slice): PendingEntry | null {
    const entry = this.of(group).pending.get(id.latin1());
    return entry === undefined ? null : { ...entry };
  }

  setPending(group: StreamGroup, id: Slice, entry: PendingEntry): void {
    this.of(group).pending.set(id.latin1(), { ...entry });
  }

  removePending(group: StreamGroup, id: Slice): boolean {
    return this.of(group).pending.delete(id.latin1());
  }

  lastPending(group: StreamGroup, into: Slice): void {
    into.u8.write([...this.of(group).pending.keys()].sort().at(-1)!, into.start, 'latin1');
  }

  forEachPending(group: StreamGroup, from: Slice, visit: (id: Slice, entry: PendingEntry) => boolean): void {
    const { pending } = this.of(group);
    const ids = [...pending.keys()].filter((id) => id >= from.latin1()).sort();
    for (const id of ids) if (!visit(latin1(id), { ...pending.get(id)! })) return;
  }

  forEachOwned(
    group: StreamGroup,
    { number }: StreamConsumer,
    from: Slice,
    visit: (id: Slice, entry: PendingEntry) => boolean,
  ): void {
    this.forEachPending(group, from, (id, entry) => entry.consumer !== number || visit(id, entry));
  }
}
