/**
 * The keys of one keyspace that are in the engine alone: how many, and a filter that knows of most keys
 * which are not among them that they are not.
 *
 * Each key that leaves memory goes into the filter, so one that begins when all keys were in memory needs
 * nothing else. A start takes it from its file (`filter-files.ts`). Where there is none, and when keys that are
 * gone have filled it, a filter of all keys is made (`filter-builder.ts`); keys that leave memory or
 * are new to the engine meanwhile go into it. A key that comes back stays in the filter.
 */
import type { ByteSink } from '../bytes/sink.ts';
import { KeyFilter } from './key-filter.ts';
import type { Residents } from './residents.ts';

/** A first part for a quarter of the keys: three parts hold all of them. */
const FIRST_SHARE = 1 / 4;
/** A filter is made anew when it has so many times the keys that there are. */
const STALE_RATIO = 2;
const STALE_MIN = 100_000;

export class AwayKeys {
  /** Keys that are not in memory. */
  count = 0;

  /** Where hashes of keys go that the engine has not had before; null while nobody wants them. */
  newKeys: ByteSink | null = null;
  /** A filter is wanted of all keys that the engine has or gets, to be kept on disk; and that filter, until it is taken. */
  filesWant = false;
  whole: KeyFilter | null = null;

  private readonly residents: Residents;
  /** Knows of every key that is away; null: none does. */
  private filter: KeyFilter | null = null;
  /** Will know of all that the engine has or gets when it has been made. */
  private building: KeyFilter | null = null;
  /** The keys are too many for a filter. */
  private tooMany = false;

  constructor(residents: Residents) {
    this.residents = residents;
  }

  get filterBytes(): number {
    const { filter, building, whole } = this;
    return (filter?.bytes ?? 0) + (building?.bytes ?? 0) + (whole === filter ? 0 : (whole?.bytes ?? 0));
  }

  get filterBytesMax(): number {
    return this.residents.filterBytesMax;
  }

  /** Whether a key that is not in memory may be in the engine. */
  mayHave(hash: number): boolean {
    if (this.count === 0) return false;
    if (this.filter === null || this.filter.has(hash)) return true;
    this.residents.filterHits++;
    return false;
  }

  /** A key of `keys` leaves memory. */
  leaves(hash: number, keys: number): void {
    if (this.count++ === 0 && this.filter === null && this.building === null) {
      this.tooMany = false;
      this.filter = KeyFilter.for(keys * FIRST_SHARE, this.residents.filterBytesMax);
    }
    this.add(hash);
  }

  comes(): void {
    this.count--;
  }

  /** After a start: so many keys have not been loaded. */
  notLoaded(count: number): void {
    this.count = count;
  }

  /** After a start: knows of all of them. */
  restore(filter: KeyFilter): void {
    this.filter = filter;
  }

  /** The row of a key is on its way to the engine, which may not have had one. */
  written(hash: number): void {
    if (this.newKeys !== null) this.newKeys.u32(hash);
    if (this.building !== null && !this.building.add(hash)) this.abandon();
    if (this.whole !== null && !this.whole.add(hash)) this.whole = null;
  }

  private add(hash: number): void {
    if (this.filter !== null && !this.filter.add(hash)) this.filter = null;
    if (this.building !== null && !this.building.add(hash)) this.abandon();
  }

  /** Whether a filter of all `keys` keys should be made. */
  wantsFilter(keys: number): boolean {
    if (this.building !== null || this.tooMany) return false;
    if (this.filesWant && this.whole === null) return true;
    if (this.count === 0) return false;
    return this.filter === null || this.filter.count > Math.max(STALE_MIN, STALE_RATIO * keys);
  }

  /** Begins a filter; the hash of every key that the engine has from now on is to be given to `found`. */
  build(keys: number): void {
    this.building = KeyFilter.for(keys, this.residents.filterBytesMax);
  }

  /** False when the filter has been given up. */
  found(hash: number): boolean {
    if (this.building !== null && !this.building.add(hash)) this.abandon();
    return this.building !== null;
  }

  built(): void {
    if (this.building === null) return;
    if (this.count > 0) this.filter = this.building;
    if (this.filesWant) this.whole = this.building;
    this.building = null;
  }

  private abandon(): void {
    this.building = null;
    this.tooMany = true;
  }

  /** Building has failed; it may be tried again. */
  failed(): void {
    this.building = null;
  }

  /** All keys are in memory, and will be for a while. */
  forgetFilter(): void {
    this.filter = null;
    if (!this.filesWant) this.building = null;
  }
}
