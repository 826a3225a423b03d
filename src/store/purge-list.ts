/**
 * Ids whose rows belong to nothing any more: flushed databases, dropped collections. The list is in
 * the meta row; an id leaves it when the engine has deleted its range of rows.
 */
import type { ByteSink } from '../bytes/sink.ts';
import { RowKind } from './row-format.ts';
import type { PurgeRange } from './row-source.ts';

class Purge implements PurgeRange {
  /** First byte of the rows' keys. */
  readonly kind: number;
  readonly id: number;
  /** The first cut that contains nothing of it: until that one is in the engine there may be more rows to come. */
  readonly cut: number;

  constructor(kind: number, id: number, cut: number) {
    this.kind = kind;
    this.id = id;
    this.cut = cut;
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

  add(kind: number, id: number, cut: number): void {
    this.waiting.push(new Purge(kind, id, cut));
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
    const purge = new Purge(kind, id, 0);
    this.ready.set(purge.name, purge);
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
    sink.u32(this.length);
    for (const purge of [...this.ready.values(), ...this.waiting]) {
      sink.byte(purge.kind);
      sink.u64(purge.id);
    }
  }

  /** What was written: all of it is ready. */
  read(view: DataView, pos: number): void {
    const count = view.getUint32(pos, true);
    pos += 4;
    for (let i = 0; i < count; i++, pos += ENTRY_BYTES) {
      this.orphan(view.getUint8(pos), Number(view.getBigUint64(pos + 1, true)));
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
