/**
 * Ids whose rows belong to nothing any more: flushed databases, dropped collections. The list is in
 * the meta row; an id leaves it when the engine has deleted its range of rows.
 */
import type { ByteSink } from '../bytes/sink.ts';
import type { PackedRows, Range } from '../engines/engine.ts';
import { ownedCollection, RowKind } from './row-format.ts';
import type { PurgeRange } from './row-source.ts';
import { RowWalk } from './row-walk.ts';

/**
 * In the meta row, in place of a kind: the collection of that id is named by a row of the database before
 * it, but has been moved to another one since.
 */
const MOVED_AWAY = 0x61; // a

class Purge implements PurgeRange {
  /** First byte of the rows' keys. */
  readonly kind: number;
  readonly id: number;
  /** The first cut that contains nothing of it: until that one is in the engine there may be more rows to come. */
  readonly cut: number;
  /** Collections that the rows name and that live on in another database. */
  readonly moved: ReadonlySet<number>;

  constructor(kind: number, id: number, cut: number, moved: ReadonlySet<number> = new Set()) {
    this.kind = kind;
    this.id = id;
    this.cut = cut;
    this.moved = moved;
  }

  get name(): string {
    return `${this.kind} ${this.id}`;
  }

  get start(): Uint8Array {
    return prefix(this.kind, this.id);
  }

  get end(): Uint8Array {
    return prefix(this.kind, this.id + 1);
  }
}

/** Of the keys of a database, or of its index of deadlines. */
class OwnersPurge extends Purge {
  /** Page rows of collections that the rows name; neighbouring ids become one range: they often come one after the other. */
  owned(chunk: PackedRows): { ranges: Range[]; end: Uint8Array } {
    const walk = new RowWalk(chunk);
    const ids: number[] = [];
    while (walk.next()) {
      const id = walk.damaged ? 0 : ownedCollection(walk.bytes, walk.keyStart, walk.valueStart, walk.end);
      if (id !== 0 && !this.moved.has(id)) ids.push(id);
    }
    const last = walk.bytes.subarray(walk.keyStart, walk.valueStart);
    ids.sort((a, b) => a - b);
    const ranges: Range[] = [];
    for (let i = 0; i < ids.length;) {
      const first = ids[i++];
      while (i < ids.length && ids[i] === ids[i - 1] + 1) i++;
      ranges.push({ start: prefix(RowKind.Page, first), end: prefix(RowKind.Page, ids[i - 1] + 1) });
    }
    return { ranges, end: Buffer.concat([last, Buffer.alloc(1)]) };
  }
}

function newPurge(kind: number, id: number, cut: number, moved?: ReadonlySet<number>): Purge {
  return kind === RowKind.Page ? new Purge(kind, id, cut) : new OwnersPurge(kind, id, cut, moved);
}

/** Bytes of an entry in the meta row: u8 kind, u64 id. */
const ENTRY_BYTES = 9;

/** Ranges given out at a time. */
const RANGES_MAX = 1024;

export class PurgeList {
  private waiting: Purge[] = [];
  /** By the start of the range. */
  private readonly ready = new Map<string, Purge>();

  get length(): number {
    return this.waiting.length + this.ready.size;
  }

  /** `moved`: see Purge. */
  add(kind: number, id: number, cut: number, moved?: ReadonlySet<number>): void {
    this.waiting.push(newPurge(kind, id, cut, moved));
  }

  /** Takes back what was added since there were `length` of them waiting. */
  truncate(length: number): void {
    this.waiting.length = length;
  }

  get waitingLength(): number {
    return this.waiting.length;
  }

  /** Rows of this id have no owner. */
  orphan(kind: number, id: number): void {
    const purge = newPurge(kind, id, 0);
    if (!this.ready.has(purge.name)) this.ready.set(purge.name, purge);
  }

  /** The cut is in the engine. */
  settle(cut: number): void {
    for (const purge of this.waiting) if (purge.cut <= cut) this.ready.set(purge.name, purge);
    this.waiting = this.waiting.filter((purge) => purge.cut > cut);
  }

  /** The first ranges that can be deleted. */
  ranges(): PurgeRange[] {
    const ranges: PurgeRange[] = [];
    for (const range of this.ready.values()) {
      if (ranges.length === RANGES_MAX) break;
      ranges.push(range);
    }
    return ranges;
  }

  /** A range that `ranges` gave has been deleted. */
  remove(range: PurgeRange): void {
    this.ready.delete((range as Purge).name);
  }

  write(sink: ByteSink): void {
    const purges = [...this.ready.values(), ...this.waiting];
    sink.u32(purges.reduce((count, { moved }) => count + 1 + moved.size, 0));
    for (const { kind, id, moved } of purges) {
      sink.byte(kind);
      sink.u64(id);
      for (const collection of moved) {
        sink.byte(MOVED_AWAY);
        sink.u64(collection);
      }
    }
  }

  /** What was written: all of it is ready. */
  read(view: DataView): void {
    const count = view.getUint32(0, true);
    let pos = 4;
    let moved = new Set<number>();
    for (let i = 0; i < count; i++, pos += ENTRY_BYTES) {
      const kind = view.getUint8(pos);
      const id = Number(view.getBigUint64(pos + 1, true));
      if (kind === MOVED_AWAY) {
        moved.add(id);
        continue;
      }
      moved = new Set();
      const purge = newPurge(kind, id, 0, moved);
      this.ready.set(purge.name, purge);
    }
  }
}

/** First bytes of all rows of an id. */
function prefix(kind: number, id: number): Buffer {
  if (kind === RowKind.Page) {
    const key = Buffer.alloc(7);
    key[0] = kind;
    key.writeUIntBE(id, 1, 6);
    return key;
  }
  const key = Buffer.alloc(5);
  key[0] = kind;
  key.writeUInt32BE(id, 1);
  return key;
}
