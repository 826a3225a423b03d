/**
 * After a start brings into memory what the engine has, in the background and as long as there is room
 * for it without anything having to leave: first the key rows of each database, in their order, then the
 * pages of the collections that they name.
 *
 * A row that has been read may be put into memory if its key is not there and no checkpoint has reached the
 * engine since (Residents.applied): a key that was changed or deleted meanwhile is in memory until then.
 */
import { Slice } from '../bytes/slice.ts';
import type { Range } from '../engines/engine.ts';
import type { Arena } from './arena.ts';
import type { CollectionTable } from './collection-table.ts';
import type { Evictor } from './evictor.ts';
import type { Hasher } from './hash.ts';
import type { Keyspace } from './keyspace.ts';
import { LoopLoad, rest } from './loop-load.ts';
import type { NamelessRow } from './nameless-rows.ts';
import type { EngineLink, Residents } from './residents.ts';
import type { PageWant, RowFetcher } from './row-fetcher.ts';
import { EXPIRY_ROW_BYTES, hashRange, KEY_ROW_PREFIX, kindRange, RowKind } from './row-format.ts';
import { rowPass } from './row-pass.ts';
import { damagedRowsMessage, NAMELESS } from './row-source.ts';
import type { RowWalk } from './row-walk.ts';
import { SliceClock } from './slice-clock.ts';

/** CPU time of one slice. */
const SLICE_MS = 2;
/** Rows between two looks at the clock. */
const ROWS_A_LOOK = 32;
/** What the engine's thread reads at a time: for so long it holds up a fetch. */
const CHUNK_BYTES = 64 * 1024;
/** The same while somebody waits for the end. */
const URGENT_CHUNK_BYTES = 1024 * 1024;
const PAGES_A_CALL = 128;
/** Page numbers looked up between two looks at the clock. */
const NUMBERS_A_LOOK = 1000;
/** Room that there must be for a slice or a call: eviction must not begin for what is read ahead of any need. */
const ROOM_BYTES = 1024 * 1024;

/** What work on the whole of the data needs of the tier. */
export interface WarmerGround {
  readonly arena: Arena;
  readonly collections: CollectionTable;
  readonly residents: Residents;
  readonly evictor: Evictor;
  readonly fetcher: RowFetcher;
  readonly hasher: Hasher;
  keyspaceOf(record: number): Keyspace;
  /** With what is merged, staged or being given up. */
  allKeyspaces(): Iterable<Keyspace | undefined>;
}

export class Warmer {
  /** Rows read since the start. */
  rows = 0;
  /** Under way, which includes being paused. */
  running = false;

  private readonly ground: WarmerGround;
  private readonly clock = new SliceClock();
  private readonly load = new LoopLoad();
  private keyspaces: readonly Keyspace[] = [];
  /** Damaged rows that do not tell their keys. */
  private readonly strays = new Map<Keyspace, NamelessRow[]>();
  private startedAt = 0;
  private endedAt = 0;
  private done: Promise<void> | null = null;
  private isPaused = false;
  /** Somebody waits for the end. */
  private urgent = false;
  private resume: () => void = () => {};

  constructor(ground: WarmerGround) {
    this.ground = ground;
  }

  /** Milliseconds that it has taken so far, or in all; 0 before it has begun. */
  get elapsedMs(): number {
    return this.startedAt === 0 ? 0 : (this.running ? performance.now() : this.endedAt) - this.startedAt;
  }

  /** As long as it is paused nothing is read, unless somebody waits for the end. */
  set paused(paused: boolean) {
    this.isPaused = paused;
    if (!paused) this.resume();
  }

  /** Rows of these have not been loaded. */
  prepare(keyspaces: readonly Keyspace[]): void {
    this.keyspaces = keyspaces.filter(({ complete }) => !complete);
    this.running = this.keyspaces.length > 0;
  }

  /** Begins, if there is anything to do. */
  start(): void {
    if (this.running) this.done ??= this.run();
  }

  /** Begins if need be, goes on without a pause, and resolves at the end. */
  async finish(): Promise<void> {
    this.urgent = true;
    this.resume();
    this.start();
    await this.done;
  }

  private async run(): Promise<void> {
    await this.unpaused();
    this.startedAt = performance.now();
    const { residents } = this.ground;
    const link = residents.link!;
    const keys = this.keyspaces.reduce((sum, { away }) => sum + away.count, 0);
    link.onNotice?.(`warm-up: ${keys} keys are read from the engine into memory`);
    const { evictions } = this;
    let outcome: string;
    try {
      const whole = await this.warm(link);
      if (whole && evictions === this.evictions) await this.expectAll(link);
      outcome = whole ? 'all of them are in memory' : 'there is no more room in memory';
    } catch (error) {
      // An engine that fails has told so to those that wait for it.
      outcome = `given up: ${(error as Error).message}`;
    }
    this.endedAt = performance.now();
    this.running = false;
    this.keyspaces = [];
    this.strays.clear();
    link.onNotice?.(
      `warm-up: ${this.rows} rows in ${(this.elapsedMs / 1000).toFixed(1)} s, ${outcome}` +
        (residents.damagedRows > 0 ? `; ${damagedRowsMessage(residents.damagedRows)}` : ''),
    );
  }

  private get evictions(): number {
    const { evictor } = this.ground;
    return evictor.evictedKeys + evictor.evictedPages;
  }

  /** False when there is no more room. */
  private async warm(link: EngineLink): Promise<boolean> {
    for (const keyspace of this.keyspaces) {
      for (const kind of [RowKind.Key, RowKind.LongKey]) {
        if (!(await this.warmKeys(link, keyspace, kind))) return false;
      }
    }
    return this.warmPages();
  }

  /** Keys that are missing when all rows have been read are those of rows that do not tell their keys, or nobody can say which. */
  private async expectAll(link: EngineLink): Promise<void> {
    for (const keyspace of this.keyspaces) await this.expect(link, keyspace, this.strays.get(keyspace) ?? []);
  }

  private async expect(link: EngineLink, keyspace: Keyspace, strays: readonly NamelessRow[]): Promise<void> {
    if (keyspace.droppedAt !== 0 || keyspace.complete) return;
    if (keyspace.away.count > strays.length) strays = [...strays, ...(await this.strayRows(link))];
    const { count } = keyspace.away;
    if (keyspace.droppedAt !== 0 || count === 0) return;
    if (count > strays.length)
      this.ground.residents.lost(`rows of ${count} keys of the database with id ${keyspace.id} are missing`);
    keyspace.nameAway(strays);
  }

  /**
   * The same for a keyspace of whose keys the engine has only those left that do not tell themselves: none of its rows
   * there is one that a look-up would find.
   */
  async expectRest(keyspace: Keyspace): Promise<void> {
    const link = this.ground.residents.link!;
    const strays: NamelessRow[] = [];
    for (const kind of [RowKind.LongKey, RowKind.Key])
      await this.collect(link, hashRange(kind, keyspace.id), () => true, strays);
    await this.expect(link, keyspace, strays);
  }

  /** Damaged rows in places where no rows belong: their own keys may have lost their kind or database. */
  private async strayRows(link: EngineLink): Promise<NamelessRow[]> {
    const known = [RowKind.ExpiryIndex, RowKind.Meta, RowKind.Page].map(kindRange);
    for (const keyspace of this.ground.allKeyspaces())
      for (const kind of [RowKind.LongKey, RowKind.Key])
        if (keyspace !== undefined) known.push(hashRange(kind, keyspace.id));
    known.sort((a, b) => Buffer.compare(a.start, b.start));
    const rows: NamelessRow[] = [];
    let start: Uint8Array = Uint8Array.of(0);
    for (const range of [...known, { start: undefined, end: undefined }]) {
      await this.collect(link, { start, end: range.start }, (walk) => walk.damaged, rows);
      start = range.end ?? start;
    }
    return rows;
  }

  /** Adds rows of a range that `are` strays to `rows`. */
  private async collect(
    { engine }: EngineLink,
    range: Range,
    are: (walk: RowWalk) => boolean,
    rows: NamelessRow[],
  ): Promise<void> {
    for await (const { walk } of rowPass(engine, this.ground.residents, {
      ...range,
      chunkBytes: CHUNK_BYTES,
    })) {
      while (walk.next()) {
        if (!are(walk) || walk.valueStart - walk.keyStart < KEY_ROW_PREFIX) continue;
        rows.push(this.stray(walk, walk.bytes.readInt32BE(walk.keyStart + EXPIRY_ROW_BYTES)));
      }
      await rest(0);
    }
  }

  /** A damaged row whose key stands in its value, or is damaged itself. */
  private stray(walk: RowWalk, told: number): NamelessRow {
    const { residents, hasher } = this.ground;
    const row = Buffer.from(walk.bytes.subarray(walk.keyStart, walk.valueStart));
    residents.damaged(walk.name, NAMELESS);
    const hashes =
      row[0] === RowKind.LongKey ? [told] : [hasher.hash32(Slice.from(row.subarray(KEY_ROW_PREFIX))), told];
    return { row, hashes };
  }

  private addStray(keyspace: Keyspace, walk: RowWalk, told: number): void {
    const strays = this.strays.get(keyspace) ?? [];
    this.strays.set(keyspace, [...strays, this.stray(walk, told)]);
  }

  private get hasRoom(): boolean {
    const { arena, evictor } = this.ground;
    return arena.slabBytes + ROOM_BYTES <= evictor.from;
  }

  private async warmKeys({ engine }: EngineLink, keyspace: Keyspace, kind: number): Promise<boolean> {
    const { residents } = this.ground;
    const ready = (): Promise<void> => this.unpaused();
    const chunkBytes = this.urgent ? URGENT_CHUNK_BYTES : CHUNK_BYTES;
    const range = { ...hashRange(kind, keyspace.id), chunkBytes, ready };
    for await (const { walk, applied } of rowPass(engine, residents, range)) {
      while (walk.left) {
        await rest(this.urgent ? 0 : this.load.restAfter(this.clock.elapsedMs));
        if (keyspace.droppedAt !== 0 || keyspace.complete) return true;
        if (!this.hasRoom) return false;
        if (this.holds || residents.applied !== applied) break;
        this.slice(() => this.installKeys(keyspace, walk));
      }
    }
    return true;
  }

  private slice(work: () => void): void {
    const { clock } = this;
    clock.start();
    work();
    clock.stop();
    this.ground.residents.link?.onSlice?.('warm-up', clock.elapsedMs, clock.workMs);
  }

  private get holds(): boolean {
    return this.isPaused && !this.urgent;
  }

  private async unpaused(): Promise<void> {
    while (this.holds) await new Promise<void>((resolve) => (this.resume = resolve));
  }

  private installKeys(keyspace: Keyspace, walk: RowWalk): void {
    const { fetcher } = this.ground;
    const end = performance.now() + SLICE_MS;
    for (let rows = 1; walk.next(); rows++) {
      const hash = walk.bytes.readInt32BE(walk.keyStart + EXPIRY_ROW_BYTES);
      if (fetcher.installScanned(keyspace, walk, hash) === 0) this.addStray(keyspace, walk, hash);
      this.rows++;
      if (rows % ROWS_A_LOOK === 0 && performance.now() >= end) return;
    }
  }

  private async warmPages(): Promise<boolean> {
    const { collections, fetcher } = this.ground;
    let wants: PageWant[] = [];
    const fetch = async (): Promise<void> => {
      this.rows += wants.length;
      await fetcher.fetchPages(wants);
      wants = [];
    };
    let end = performance.now() + SLICE_MS;
    let looked = 0;
    for (let slot = 1; slot < collections.end; slot++) {
      const id = collections.id[slot];
      for (let number = 1; this.lacks(slot, id, number); number++) {
        if (collections.find(slot, number) === 0)
          wants.push({ kind: 'page', slot, id, number, next: number + 1, ahead: false });
        const full = wants.length === PAGES_A_CALL;
        if (!full && (++looked % NUMBERS_A_LOOK !== 0 || performance.now() < end)) continue;
        await rest(this.urgent ? 0 : this.load.restAfter(SLICE_MS));
        await this.unpaused();
        if (!this.hasRoom) return false;
        if (full) await fetch();
        end = performance.now() + SLICE_MS;
      }
    }
    if (wants.length > 0) await fetch();
    return true;
  }

  /** Whether the collection, if it is still that one, has a page of that number and not all of them are in memory. */
  private lacks(slot: number, id: number, number: number): boolean {
    const { collections } = this.ground;
    const record = collections.record[slot];
    if (record === 0 || collections.id[slot] !== id) return false;
    const next = this.ground.keyspaceOf(record).nextPage(record);
    return number < next && collections.resident[slot] < next - 1;
  }
}
