/**
 * The store's contract (src/store/api.ts) in plain JavaScript collections: what the real store is
 * compared with, and what commands can be tried on without a tier. Simple, slow, all in memory.
 */
import { Slice } from '../../src/bytes/slice.ts';
import type { ByteSink } from '../../src/bytes/sink.ts';
import {
  ROW_FAULT,
  Type,
  WrongTypeError,
  type Database,
  type Hash,
  type List,
  type Residency,
  type SetValue,
  type Store,
  type Stream,
  type StringValue,
  type Visitor,
  type WorkingSet,
  type ZSet,
} from '../../src/store/api.ts';
import { emptyStream, ModelStream, type StreamContent } from './stream.ts';

type Bytes = string; // one character a byte

interface Scored {
  member: Bytes;
  score: number;
}

type Content = { bytes: Buffer } | Bytes[] | Map<Bytes, Bytes> | Scored[] | StreamContent;

interface Value {
  type: Type;
  content: Content;
  deadline: number;
  encoding: number;
}

const latin1 = (bytes: Bytes): Slice => Slice.from(Buffer.from(bytes, 'latin1'));

/** A value that shares nothing with the given one; structuredClone would turn a Buffer into a Uint8Array. */
function copyOf(value: Value): Value {
  const { content } = value;
  const copy = 'bytes' in content ? { bytes: Buffer.from(content.bytes) } : structuredClone(content);
  return { ...value, content: copy };
}

/** FNV-1a: an order for scans that has nothing to do with insertion. */
function hash(bytes: Bytes): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < bytes.length; i++) h = Math.imul(h ^ bytes.charCodeAt(i), 0x01000193);
  return h >>> 0;
}

/** Stateless scan by hash position: all elements of one hash are visited together. */
function scanByHash(
  keys: Iterable<Bytes>,
  cursor: number,
  count: number,
  visit: (key: Bytes) => void,
): number {
  const rest = [...keys]
    .map((key) => ({ key, position: hash(key) }))
    .filter((entry) => entry.position >= cursor)
    .sort((a, b) => a.position - b.position);
  for (let i = 0; i < rest.length; i++) {
    if (i >= count && rest[i].position !== rest[i - 1].position) return rest[i].position;
    visit(rest[i].key);
  }
  return 0;
}

/** Keys that a unit of work has met faults at; with them it comes further. */
class ModelWorkingSet implements WorkingSet {
  rounds = 0;
  readonly fetched = new Set<Bytes>();
  private readonly store: ModelStore;

  constructor(store: ModelStore, missed: Bytes) {
    this.store = store;
    this.fetched.add(missed);
  }

  want(database: Database, key: Slice): void {
    this.fetched.add(rowName(database.index, key.latin1()));
  }

  async fetch(): Promise<void> {
    this.rounds++;
    await this.store.fetchRows();
  }

  release(): void {
    this.fetched.clear();
  }
}

const rowName = (index: number, key: Bytes): Bytes => `${index}:${key}`;

/** Mulberry32: numbers in [0, 1). */
function randomNumbers(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class ModelStore implements Store {
  now = Date.now();
  keepsDue = false;
  readonly memory = {
    used: 0,
    limit: Infinity,
    evictable: 0,
    blocks: 0,
    slabs: 0,
    chunks: 0,
    defragmenting: false,
    movedBlocks: 0,
  };
  onExpired: Store['onExpired'] = () => {};
  readonly databaseCount: number;
  private content: Map<Bytes, Value>[];
  private readonly views: ModelDatabase[];

  /** Puts back what the unit of work has changed, last to first; null between units. */
  private undo: (() => void)[] | null = null;
  private set: ModelWorkingSet | null = null;
  private missed: Bytes = '';
  private chance = 0;
  private random = Math.random;
  private faults = 0;
  /** What fetching takes: as an engine, it answers in a later turn. */
  fetchRows = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  constructor(databaseCount = 16) {
    this.databaseCount = databaseCount;
    this.content = Array.from({ length: databaseCount }, () => new Map<Bytes, Value>());
    this.views = this.content.map((_, index) => new ModelDatabase(this, index));
  }

  begin(set: WorkingSet | null = null): void {
    if (this.undo !== null) throw new Error('units of work do not nest');
    this.undo = [];
    this.set = set as ModelWorkingSet | null;
  }

  beginCommand(): void {}

  commit(): void {
    if (this.undo === null) throw new Error('no unit of work has begun');
    this.undo = null;
  }

  rollback(): void {
    for (const restore of (this.undo ?? []).reverse()) restore();
    this.undo = null;
  }

  workingSet(): WorkingSet {
    return new ModelWorkingSet(this, this.missed);
  }

  faultAtRandom(seed: number, chance: number): void {
    this.random = randomNumbers(seed);
    this.chance = chance;
  }

  residency(): Residency {
    let keys = 0;
    for (const { size } of this.views) keys += size;
    return {
      complete: this.chance === 0,
      residentKeys: keys,
      keys,
      faults: this.faults,
      fetchRounds: this.faults,
      fetchedRows: 0,
      absentRows: 0,
      roundsMax: 0,
      waiting: 0,
      evictedKeys: 0,
      evictedPages: 0,
      pinnedBytes: 0,
      warmedRows: 0,
      warmUpMs: 0,
      warming: false,
      filterBytes: 0,
      filterHits: 0,
    };
  }

  /** Before a key is looked at: it may not be there yet, and what the unit does to it can be undone. */
  access(index: number, key: Bytes): void {
    if (this.chance === 0 || this.undo === null) return;
    const row = rowName(index, key);
    if (this.set?.fetched.has(row) !== true && this.random() < this.chance) {
      this.faults++;
      this.missed = row;
      this.set?.fetched.add(row);
      throw ROW_FAULT;
    }
    const keys = this.content[index];
    const value = keys.get(key);
    const before = value === undefined ? undefined : copyOf(value);
    this.undo.push(() => {
      if (before === undefined) keys.delete(key);
      else keys.set(key, before);
    });
  }

  keys(index: number): Map<Bytes, Value> {
    return this.content[index];
  }

  database(index: number): ModelDatabase {
    return this.views[index];
  }

  swap(a: number, b: number): void {
    this.keepDatabases();
    [this.content[a], this.content[b]] = [this.content[b], this.content[a]];
  }

  flush(index: number): void {
    this.keepDatabases();
    this.content[index] = new Map();
  }

  private keepDatabases(): void {
    const before = [...this.content];
    this.undo?.push(() => (this.content = before));
  }

  expireDue(): number {
    let expired = 0;
    for (const view of this.views) {
      for (const key of [...view.keys.keys()]) if (view.expireIfDue(key)) expired++;
    }
    return expired;
  }

  prefetched(): void {
    // nothing was read ahead
  }

  backgroundSlice(): boolean {
    return false;
  }

  defragment(): boolean {
    return false;
  }
}

export class ModelDatabase implements Database {
  readonly index: number;
  private readonly store: ModelStore;

  constructor(store: ModelStore, index: number) {
    this.store = store;
    this.index = index;
  }

  get keys(): Map<Bytes, Value> {
    return this.store.keys(this.index);
  }

  get size(): number {
    return this.keys.size;
  }

  readonly damaged = 0;

  settle(): void {}

  damage(): void {
    throw new Error('nothing of the model is on disk');
  }

  get expiring(): number {
    let count = 0;
    for (const value of this.keys.values()) if (value.deadline !== 0) count++;
    return count;
  }

  expireIfDue(key: Bytes): boolean {
    this.store.access(this.index, key);
    const value = this.keys.get(key);
    if (value === undefined || value.deadline === 0 || value.deadline > this.store.now) return false;
    if (this.store.keepsDue) return true;
    this.store.onExpired(this, latin1(key));
    this.keys.delete(key);
    return true;
  }

  private find(key: Slice): Value | undefined {
    const bytes = key.latin1();
    return this.expireIfDue(bytes) ? undefined : this.keys.get(bytes);
  }

  prefetch(): void {
    // nothing to gain
  }

  prefetchMembers(): void {
    // nothing to gain
  }

  need(): void {
    // each is looked up by itself
  }

  needReads(): void {
    // each is done by itself
  }

  type(key: Slice): Type {
    return this.find(key)?.type ?? Type.None;
  }

  remove(key: Slice): boolean {
    return this.find(key) !== undefined && this.keys.delete(key.latin1());
  }

  expiry(key: Slice): number {
    return this.find(key)?.deadline ?? 0;
  }

  setExpiry(key: Slice, deadlineMs: number): void {
    const value = this.find(key);
    if (value !== undefined) value.deadline = deadlineMs;
  }

  rename(key: Slice, target: Database, to: Slice): void {
    const value = this.find(key);
    if (value === undefined) return;
    this.store.access(target.index, to.latin1());
    this.keys.delete(key.latin1());
    (target as ModelDatabase).keys.set(to.latin1(), value);
  }

  copy(key: Slice, target: Database, to: Slice): void {
    const value = this.find(key);
    if (value === undefined) return;
    this.store.access(target.index, to.latin1());
    (target as ModelDatabase).keys.set(to.latin1(), copyOf(value));
  }

  encoding(key: Slice): number {
    return this.find(key)?.encoding ?? 0;
  }

  setEncoding(key: Slice, encoding: number): void {
    const value = this.find(key);
    if (value !== undefined) value.encoding = encoding;
  }

  setIdle(): void {}

  idleSeconds(): number {
    return 0;
  }

  memoryUsage(key: Slice): number {
    return this.find(key) === undefined ? 0 : key.length + 16;
  }

  private open(key: Slice, type: Type, create: boolean, empty: () => Content): Content | null {
    const value = this.find(key);
    if (value !== undefined) {
      if (value.type !== type) throw new WrongTypeError();
      return value.content;
    }
    if (!create) return null;
    const content = empty();
    this.keys.set(key.latin1(), { type, content, deadline: 0, encoding: 0 });
    return content;
  }

  getString(key: Slice, into: Slice): boolean {
    const content = this.open(key, Type.String, false, () => []) as { bytes: Buffer } | null;
    if (content === null) return false;
    into.setSlice(Slice.from(content.bytes));
    return true;
  }

  setString(key: Slice, value: Slice): void {
    this.store.access(this.index, key.latin1());
    this.keys.set(key.latin1(), {
      type: Type.String,
      content: { bytes: value.toBuffer() },
      deadline: 0,
      encoding: 0,
    });
  }

  replaceString(key: Slice, value: Slice): void {
    const deadline = this.expiry(key);
    this.setString(key, value);
    this.setExpiry(key, deadline);
  }

  string(key: Slice): StringValue | null;
  string(key: Slice, create: true): StringValue;
  string(key: Slice, create = false): StringValue | null {
    const content = this.open(key, Type.String, create, () => ({ bytes: Buffer.alloc(0) }));
    return content && new ModelString(content as { bytes: Buffer });
  }

  list(key: Slice): List | null;
  list(key: Slice, create: true): List;
  list(key: Slice, create = false): List | null {
    const content = this.open(key, Type.List, create, () => []);
    return content && new ModelList(this.keys, key.latin1(), content as Bytes[]);
  }

  set(key: Slice): SetValue | null;
  set(key: Slice, create: true): SetValue;
  set(key: Slice, create = false): SetValue | null {
    const content = this.open(key, Type.Set, create, () => new Map());
    return content && new ModelSet(this.keys, key.latin1(), content as Map<Bytes, Bytes>);
  }

  hash(key: Slice): Hash | null;
  hash(key: Slice, create: true): Hash;
  hash(key: Slice, create = false): Hash | null {
    const content = this.open(key, Type.Hash, create, () => new Map());
    return content && new ModelHash(this.keys, key.latin1(), content as Map<Bytes, Bytes>);
  }

  zset(key: Slice): ZSet | null;
  zset(key: Slice, create: true): ZSet;
  zset(key: Slice, create = false): ZSet | null {
    const content = this.open(key, Type.ZSet, create, () => []);
    return content && new ModelZSet(this.keys, key.latin1(), content as Scored[]);
  }

  stream(key: Slice): Stream | null;
  stream(key: Slice, create: true): Stream;
  stream(key: Slice, create = false): Stream | null {
    const content = this.open(key, Type.Stream, create, emptyStream);
    return content && new ModelStream(content as StreamContent);
  }

  scan(cursor: number, count: number, visit: (key: Slice, type: Type) => void): number {
    const keys = [...this.keys.keys()].filter((key) => !this.expireIfDue(key));
    return scanByHash(keys, cursor, count, (key) => {
      visit(latin1(key), this.keys.get(key)!.type);
    });
  }

  randomKey(random: number, into: Slice): boolean {
    const keys = [...this.keys.keys()].filter((key) => !this.expireIfDue(key));
    if (keys.length === 0) return false;
    into.setSlice(latin1(keys[Math.floor(random * keys.length)]));
    return true;
  }
}

class ModelString implements StringValue {
  private readonly content: { bytes: Buffer };

  constructor(content: { bytes: Buffer }) {
    this.content = content;
  }

  get length(): number {
    return this.content.bytes.length;
  }

  read(start: number, end: number, out: ByteSink): void {
    out.copy(this.content.bytes, start, end);
  }

  write(offset: number, bytes: Slice): void {
    const end = offset + bytes.length;
    if (end > this.length) {
      this.content.bytes = Buffer.concat([this.content.bytes, Buffer.alloc(end - this.length)]);
    }
    this.content.bytes.set(bytes.u8.subarray(bytes.start, bytes.end), offset);
  }

  byteAt(offset: number): number {
    return this.content.bytes[offset];
  }

  forEachRun(start: number, end: number, visit: (run: Slice) => void): void {
    if (start < end) visit(Slice.from(this.content.bytes.subarray(start, end)));
  }
}

/** A collection that deletes its key when its last element goes. */
abstract class ModelCollection {
  private readonly owner: Map<Bytes, Value>;
  private readonly key: Bytes;

  constructor(owner: Map<Bytes, Value>, key: Bytes) {
    this.owner = owner;
    this.key = key;
  }

  protected removeIfEmpty(size: number): void {
    if (size === 0) this.owner.delete(this.key);
  }
}

class ModelList extends ModelCollection implements List {
  private readonly elements: Bytes[];

  constructor(owner: Map<Bytes, Value>, key: Bytes, elements: Bytes[]) {
    super(owner, key);
    this.elements = elements;
  }

  get length(): number {
    return this.elements.length;
  }

  pushLeft(element: Slice): void {
    this.elements.unshift(element.latin1());
  }

  pushRight(element: Slice): void {
    this.elements.push(element.latin1());
  }

  at(index: number, into: Slice): boolean {
    if (index >= this.elements.length) return false;
    into.setSlice(latin1(this.elements[index]));
    return true;
  }

  set(index: number, element: Slice): void {
    this.elements[index] = element.latin1();
  }

  insert(index: number, element: Slice): void {
    this.elements.splice(index, 0, element.latin1());
  }

  remove(index: number, count: number): void {
    this.elements.splice(index, count);
    this.removeIfEmpty(this.elements.length);
  }

  forEachFrom(index: number, step: 1 | -1, visit: (element: Slice, index: number) => boolean): void {
    for (let i = index; i >= 0 && i < this.elements.length; i += step) {
      if (!visit(latin1(this.elements[i]), i)) return;
    }
  }

  copyFramed(index: number, count: number, out: ByteSink): void {
    for (const element of this.elements.slice(index, index + count)) {
      out.ascii(`$${element.length}\r\n`);
      out.slice(latin1(element));
      out.ascii('\r\n');
    }
  }
}

/** What sets and hashes share: a map from member (or field) to value. */
abstract class ModelMap extends ModelCollection {
  protected readonly entries: Map<Bytes, Bytes>;

  constructor(owner: Map<Bytes, Value>, key: Bytes, entries: Map<Bytes, Bytes>) {
    super(owner, key);
    this.entries = entries;
  }

  get size(): number {
    return this.entries.size;
  }

  remove(member: Slice): boolean {
    const removed = this.entries.delete(member.latin1());
    this.removeIfEmpty(this.entries.size);
    return removed;
  }

  protected put(member: Slice, value: Bytes): boolean {
    const before = this.entries.size;
    this.entries.set(member.latin1(), value);
    return this.entries.size > before;
  }
}

class ModelSet extends ModelMap implements SetValue {
  add(member: Slice): boolean {
    return this.put(member, '');
  }

  has(member: Slice): boolean {
    return this.entries.has(member.latin1());
  }

  at(rank: number, into: Slice): boolean {
    const member = [...this.entries.keys()][rank];
    if (member === undefined) return false;
    into.setSlice(latin1(member));
    return true;
  }

  removeAt(rank: number): void {
    this.entries.delete([...this.entries.keys()][rank]);
    this.removeIfEmpty(this.entries.size);
  }

  forEachFrom(rank: number, visit: (member: Slice) => boolean): void {
    for (const member of [...this.entries.keys()].slice(rank)) if (!visit(latin1(member))) return;
  }

  scan(cursor: number, count: number, visit: Visitor): number {
    return scanByHash(this.entries.keys(), cursor, count, (member) => visit(latin1(member), null, 0));
  }
}

class ModelHash extends ModelMap implements Hash {
  get(field: Slice, into: Slice): boolean {
    const value = this.entries.get(field.latin1());
    if (value === undefined) return false;
    into.setSlice(latin1(value));
    return true;
  }

  set(field: Slice, value: Slice): boolean {
    return this.put(field, value.latin1());
  }

  at(rank: number, field: Slice, value: Slice): boolean {
    const entry = [...this.entries][rank];
    if (entry === undefined) return false;
    field.setSlice(latin1(entry[0]));
    value.setSlice(latin1(entry[1]));
    return true;
  }

  forEachFrom(rank: number, visit: (field: Slice, value: Slice) => boolean): void {
    for (const [field, value] of [...this.entries].slice(rank)) {
      if (!visit(latin1(field), latin1(value))) return;
    }
  }

  scan(cursor: number, count: number, visit: Visitor): number {
    return scanByHash(this.entries.keys(), cursor, count, (field) =>
      visit(latin1(field), latin1(this.entries.get(field)!), 0),
    );
  }
}

class ModelZSet extends ModelCollection implements ZSet {
  changed = false;
  private readonly members: Scored[];

  constructor(owner: Map<Bytes, Value>, key: Bytes, members: Scored[]) {
    super(owner, key);
    this.members = members;
  }

  get size(): number {
    return this.members.length;
  }

  score(member: Slice): number | undefined {
    return this.members[this.rank(member)]?.score;
  }

  set(member: Slice, score: number): boolean {
    const bytes = member.latin1();
    const old = this.rank(member);
    this.changed = old < 0 || this.members[old].score !== score;
    if (old >= 0) this.members.splice(old, 1);
    let place = 0;
    const before = (other: Scored): boolean =>
      other.score < score || (other.score === score && other.member < bytes);
    while (place < this.members.length && before(this.members[place])) place++;
    this.members.splice(place, 0, { member: bytes, score: score + 0 });
    return old < 0;
  }

  remove(member: Slice): boolean {
    const rank = this.rank(member);
    if (rank < 0) return false;
    this.removeRange(rank, 1);
    return true;
  }

  rank(member: Slice): number {
    const bytes = member.latin1();
    return this.members.findIndex((entry) => entry.member === bytes);
  }

  at(rank: number, into: Slice): number {
    const entry = this.members[rank];
    if (entry === undefined) return NaN;
    into.setSlice(latin1(entry.member));
    return entry.score;
  }

  countBelow(score: number, inclusive: boolean): number {
    return this.members.filter((entry) => (inclusive ? entry.score <= score : entry.score < score)).length;
  }

  countBelowLex(member: Slice, inclusive: boolean): number {
    const bytes = member.latin1();
    return this.members.filter((entry) => (inclusive ? entry.member <= bytes : entry.member < bytes)).length;
  }

  removeRange(rank: number, count: number): void {
    this.members.splice(rank, count);
    this.removeIfEmpty(this.members.length);
  }

  forEachFrom(rank: number, step: 1 | -1, visit: (member: Slice, score: number) => boolean): void {
    for (let i = rank; i >= 0 && i < this.members.length; i += step) {
      if (!visit(latin1(this.members[i].member), this.members[i].score)) return;
    }
  }

  scan(cursor: number, count: number, visit: Visitor): number {
    const scores = new Map(this.members.map((entry) => [entry.member, entry.score]));
    return scanByHash(scores.keys(), cursor, count, (member) =>
      visit(latin1(member), null, scores.get(member)!),
    );
  }
}
