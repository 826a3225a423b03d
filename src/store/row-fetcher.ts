/**
 * Brings rows of the engine into memory for the units of work that wait for them.
 */
import { Slice, viewOf } from '../bytes/slice.ts';
import { DAMAGED_LENGTH, DELETE_LENGTH, type PackedKeys } from '../engines/engine.ts';
import { packKeys } from '../engines/packed.ts';
import { PAGE_BYTES, type Arena } from './arena.ts';
import type { CollectionTable } from './collection-table.ts';
import type { Evictor } from './evictor.ts';
import type { Hasher } from './hash.ts';
import type { Keyspace } from './keyspace.ts';
import { PageError } from './pages.ts';
import { TYPE_SYSTEM } from './record.ts';
import type { Residents } from './residents.ts';
import {
  EXPIRY_ROW_BYTES,
  hashPrefix,
  hashRange,
  KEY_ROW_PREFIX,
  pageRowKey,
  RowKind,
  type RowWriter,
} from './row-format.ts';
import type { RowReader } from './row-reader.ts';
import { RowSet } from './row-set.ts';
import { RowError } from './row-source.ts';
import { RowWalk } from './row-walk.ts';
import type { RowWant } from './row-want.ts';

/** Rows asked for in one call. */
const ROWS_A_CALL = 1024;
/** Pages read ahead of a fault at most: 32 MB. */
const AHEAD_MAX = 16 * 1024;
/** What a key's row is taken to need before it is there. */
const KEY_BYTES = 256;
const SCAN_CHUNK_BYTES = 256 * 1024;
/** Scans under way at a time. */
const SCANS_AT_A_TIME = 16;

type KeyWant = Extract<RowWant, { kind: 'key' }>;
export type PageWant = Extract<RowWant, { kind: 'page' }>;
type KeysWant = Extract<RowWant, { kind: 'keys' }>;

/** The hash, unsigned, in the key of a key's row. */
const hashOf = ({ bytes, keyStart }: RowWalk): number => bytes.readUInt32BE(keyStart + EXPIRY_ROW_BYTES);

export interface FetcherGround {
  readonly arena: Arena;
  readonly collections: CollectionTable;
  readonly residents: Residents;
  readonly evictor: Evictor;
  /** New with each meta row that is restored. */
  readonly rows: RowWriter;
  readonly fetchReader: RowReader;
  readonly hasher: Hasher;
  keyspaceOf(record: number): Keyspace | undefined;
}

export class RowFetcher {
  readonly arena: Arena;
  readonly residents: Residents;
  private readonly ground: FetcherGround;

  constructor(ground: FetcherGround) {
    this.ground = ground;
    this.arena = ground.arena;
    this.residents = ground.residents;
  }

  /** Brings what is wanted and not there, and pins it for the set. */
  async fetch(set: RowSet, wants: RowWant[]): Promise<void> {
    const rows: (KeyWant | PageWant)[] = [];
    const pages = wants.filter((want) => want.kind === 'page');
    for (const want of wants) if (want.kind === 'key') rows.push(want);
    const ahead = Math.min(AHEAD_MAX, 2 ** Math.max(0, set.rounds - 2)) / pages.length;
    for (const want of pages) this.readAhead(want, ahead, rows);
    const hashes = wants.filter((want) => want.kind === 'hash');
    const scans = wants.filter((want) => want.kind === 'keys');
    for (const want of wants) if (want.kind === 'merge') await want.merge.moved;
    const room = wants.find((want) => want.kind === 'room');
    if (room?.kind === 'room') await this.ground.evictor.makeRoom(room.bytes);
    await this.fetchRows(set, rows);
    for (const keyspace of new Set(hashes.map((want) => want.keyspace))) {
      const wanted = hashes.filter((want) => want.keyspace === keyspace).map(({ hash }) => hash >>> 0);
      await this.fetchHashes(set, keyspace, [...new Set(wanted)]);
    }
    for (let i = 0; i < scans.length; i += SCANS_AT_A_TIME) {
      await Promise.all(scans.slice(i, i + SCANS_AT_A_TIME).map((want) => this.scan(set, want)));
    }
    // Whatever was wanted, others have their turn before the unit runs again.
    if (rows.length + hashes.length + scans.length === 0)
      await new Promise((resolve) => setImmediate(resolve));
  }

  /** A working set was given up: what it held may leave. */
  released(): void {
    this.ground.evictor.wake();
  }

  /** The page and those around it by number, `ahead` in all: the more, the more often the unit has faulted, the fewer, the more it wants at once. */
  private readAhead(want: PageWant, ahead: number, rows: (KeyWant | PageWant)[]): void {
    const { collections } = this.ground;
    rows.push(want);
    let left = ahead;
    // Around the end, because chains of overflow pages go downwards.
    for (let step = 1; left > 1 && step < want.next; step++) {
      for (const number of [want.number + step, want.number - step]) {
        if (number < 1 || number >= want.next || collections.find(want.slot, number) !== 0) continue;
        rows.push({ ...want, number, ahead: true });
        if (--left <= 1) break;
      }
    }
  }

  /** The block of what is wanted, 0 when it must be fetched, -1 when it has become pointless. */
  private present(want: KeyWant | PageWant): number {
    if (want.kind === 'key') {
      const { keyspace, hash, key } = want;
      if (keyspace.droppedAt !== 0) return -1;
      return keyspace.table.find(hash, key.view, key.start, key.end);
    }
    const { collections } = this.ground;
    if (collections.id[want.slot] !== want.id || collections.record[want.slot] === 0) return -1;
    return collections.find(want.slot, want.number);
  }

  /** Brings pages into memory that nobody waits for. */
  async fetchPages(wants: PageWant[]): Promise<void> {
    const set = new RowSet(this);
    try {
      await this.fetchRows(set, wants);
    } finally {
      set.release();
    }
  }

  private async fetchRows(set: RowSet, wants: (KeyWant | PageWant)[]): Promise<void> {
    for (let i = 0; i < wants.length; i += ROWS_A_CALL) {
      await this.fetchSome(set, wants.slice(i, i + ROWS_A_CALL));
    }
  }

  private async fetchSome(set: RowSet, wants: (KeyWant | PageWant)[]): Promise<void> {
    const { residents } = this;
    for (;;) {
      if (set.released) return;
      const missing: (KeyWant | PageWant)[] = [];
      for (const want of wants) {
        const ref = this.present(want);
        if (ref === 0) missing.push(want);
        else if (ref !== -1) set.pin(ref);
      }
      if (missing.length === 0) return;
      if (residents.link === null) throw new Error('rows are wanted of a tier without an engine');
      this.roomFor(missing);
      const { applied } = residents;
      const found = await residents.link.engine.getMany(this.pack(missing));
      if (set.released) return;
      if (residents.applied !== applied) {
        wants = missing;
        continue;
      }
      this.take(set, missing, found.bytes);
      return;
    }
  }

  /** Room for rows that were read, or about to be, within the tier and its overdraft. */
  private roomFor(wants: readonly (KeyWant | PageWant)[]): void {
    let bytes = 0;
    for (const want of wants) bytes += want.kind === 'page' ? PAGE_BYTES : KEY_BYTES;
    this.ground.evictor.roomForFetch(bytes);
  }

  private pack(wants: readonly (KeyWant | PageWant)[]): PackedKeys {
    const { rows } = this.ground;
    const keys = wants.map((want) =>
      want.kind === 'page'
        ? pageRowKey(want.id, want.number)
        : rows.keyRowKey(want.keyspace.id, want.hash, want.key),
    );
    return packKeys(keys);
  }

  /** Puts what was read into memory; rows come in the order of what was asked for. */
  private take(set: RowSet, wants: readonly (KeyWant | PageWant)[], memory: ArrayBuffer): void {
    const { residents } = this;
    const bytes = Buffer.from(memory);
    const view = viewOf(memory);
    let at = 0;
    for (const want of wants) {
      const keyStart = at + 8;
      const valueStart = keyStart + view.getUint32(at, true);
      const valueLength = view.getUint32(at + 4, true);
      at = valueStart + (valueLength >= DAMAGED_LENGTH ? 0 : valueLength);
      const present = this.present(want);
      if (present !== 0) {
        if (present !== -1) set.pin(present);
        continue;
      }
      let ref: number;
      if (valueLength === DELETE_LENGTH) {
        if (want.kind === 'page') {
          if (!want.ahead) this.damagedPage(want);
          continue;
        }
        residents.absentRows++;
        ref = want.keyspace.installAbsent(want.key, want.hash);
      } else {
        residents.fetchedRows++;
        ref = this.installSound(want, bytes, keyStart, valueStart, at, valueLength === DAMAGED_LENGTH);
      }
      if (ref !== 0) set.pin(ref);
    }
  }

  /** Puts a row into memory; one that is not as it was written marks its key's value as damaged. Returns its block, 0 when it is none. */
  private installSound(
    want: KeyWant | PageWant,
    bytes: Buffer,
    keyStart: number,
    valueStart: number,
    end: number,
    damaged: boolean,
  ): number {
    try {
      if (!damaged) return this.install(want, bytes, keyStart, valueStart, end);
    } catch (error) {
      if (!(error instanceof RowError)) throw error;
    }
    if (want.kind === 'key') {
      this.residents.damaged(bytes.hexSlice(keyStart, valueStart));
      return this.ground.fetchReader.fetchedDamagedKey(want.keyspace, want.key, want.hash);
    }
    if (!want.ahead) this.damagedPage(want);
    return 0;
  }

  /** A page that is needed is damaged or missing: so is its key's value. */
  private damagedPage(want: PageWant): void {
    const record = this.ground.collections.record[want.slot];
    const keyspace = this.ground.keyspaceOf(record);
    if (keyspace?.type(record) === TYPE_SYSTEM)
      throw new PageError(`page ${want.number} of the expiry index with id ${want.id} is damaged`);
    if (keyspace === undefined) return;
    this.residents.damaged(pageRowKey(want.id, want.number).hexSlice());
    keyspace.markDamaged(record);
  }

  private install(
    want: KeyWant | PageWant,
    bytes: Buffer,
    keyStart: number,
    valueStart: number,
    end: number,
  ): number {
    const reader = this.ground.fetchReader;
    return want.kind === 'page'
      ? reader.fetchedPage(want.slot, want.number, bytes, keyStart, valueStart, end)
      : reader.fetchedKey(want.keyspace, bytes, keyStart, valueStart, end);
  }

  /** Brings all keys of some hashes, unsigned. */
  private async fetchHashes(set: RowSet, keyspace: Keyspace, hashes: readonly number[]): Promise<void> {
    const { residents } = this;
    for (;;) {
      if (residents.link === null) throw new Error('rows are wanted of a tier without an engine');
      this.ground.evictor.roomForFetch(hashes.length * KEY_BYTES);
      const { applied } = residents;
      const prefixes = packKeys(
        hashes.flatMap((hash) =>
          [RowKind.Key, RowKind.LongKey].map((kind) => hashPrefix(kind, keyspace.id, hash)),
        ),
      );
      const found = await residents.link.engine.getPrefixed(prefixes);
      if (set.released || keyspace.droppedAt !== 0) return;
      if (residents.applied !== applied) continue;
      this.ground.evictor.roomForFetch(found.length);
      const walk = new RowWalk(found);
      while (walk.next()) this.takeScanned(set, keyspace, walk);
      for (const hash of hashes) set.addKnown(keyspace, hash, hash + 1);
      return;
    }
  }

  /** Brings the keys of a stretch of hashes. */
  private async scan(set: RowSet, { keyspace, from, count }: KeysWant): Promise<void> {
    const { residents } = this;
    for (;;) {
      if (set.released || keyspace.droppedAt !== 0) return;
      const { applied } = residents;
      const end = await this.scanKind(RowKind.Key, set, keyspace, from, 2 ** 32, count, applied);
      // Long keys, of which there are few, for the whole stretch that the others were brought for.
      if (
        end >= 0 &&
        (await this.scanKind(RowKind.LongKey, set, keyspace, from, end, Infinity, applied)) >= 0
      ) {
        set.addKnown(keyspace, from, end);
        return;
      }
    }
  }

  /**
   * Brings the rows of one kind whose hashes are in [from, to), about `count` of them, whole hashes only;
   * returns where it stopped, -1 when it has to be done again.
   */
  private async scanKind(
    kind: number,
    set: RowSet,
    keyspace: Keyspace,
    from: number,
    to: number,
    count: number,
    applied: number,
  ): Promise<number> {
    const { residents } = this;
    if (residents.link === null) throw new Error('rows are wanted of a tier without an engine');
    let rows = 0;
    let last = -1;
    for await (const chunk of residents.link.engine.scan({
      ...hashRange(kind, keyspace.id, from, to),
      chunkBytes: Math.min(SCAN_CHUNK_BYTES, Math.max(4096, count * KEY_BYTES)),
    })) {
      if (set.released || keyspace.droppedAt !== 0 || residents.applied !== applied) return -1;
      this.ground.evictor.roomForFetch(chunk.length);
      const walk = new RowWalk(chunk);
      while (walk.next()) {
        const hash = hashOf(walk);
        if (rows >= count && hash !== last) return residents.applied === applied ? hash : -1;
        last = hash;
        rows++;
        this.takeScanned(set, keyspace, walk);
      }
    }
    return residents.applied === applied ? to : -1;
  }

  private takeScanned(set: RowSet, keyspace: Keyspace, walk: RowWalk): void {
    const ref = this.installScanned(keyspace, walk, hashOf(walk) | 0);
    this.residents.fetchedRows++;
    if (ref !== 0) set.pin(ref);
  }

  /** Puts a scanned key row into memory; returns its block, 0 when the row does not tell its key. */
  installScanned(keyspace: Keyspace, walk: RowWalk, hash: number): number {
    const { residents } = this;
    const { fetchReader } = this.ground;
    try {
      if (!walk.damaged)
        return fetchReader.fetchedKey(keyspace, walk.bytes, walk.keyStart, walk.valueStart, walk.end);
    } catch (error) {
      if (!(error instanceof RowError)) throw error;
    }
    const key = Slice.from(walk.bytes.subarray(walk.keyStart + KEY_ROW_PREFIX, walk.valueStart));
    if (walk.bytes[walk.keyStart] !== RowKind.Key || this.ground.hasher.hash32(key) !== hash) return 0;
    const present = keyspace.table.find(hash, key.view, key.start, key.end);
    if (present !== 0) return present;
    residents.damaged(walk.name);
    return fetchReader.fetchedDamagedKey(keyspace, key, hash);
  }
}
