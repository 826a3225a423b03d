/**
 * The keys of one keyspace that are in the engine alone: how many, and a filter that knows of most keys
 * which are not among them that they are not.
 *
 * Each key that leaves memory goes into the filter, so one that begins when all keys were in memory needs
 * nothing else. After a start that has not loaded all of them, and when keys that are gone have filled it,
 * a filter is made from the engine's rows (`filter-builder.ts`); keys that leave meanwhile go into both. A
 * key that comes back stays in the filter.
 */
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

  private readonly residents: Residents;
  /** Knows of every key that is away; null: none does. */
  private filter: KeyFilter | null = null;
  /** Will know of them when the engine's rows have been gone through. */
  private building: KeyFilter | null = null;
  /** The keys are too many for a filter. */
  private tooMany = false;

  constructor(residents: Residents) {
    this.residents = residents;
  }

  get filterBytes(): number {
    return (this.filter?.bytes ?? 0) + (this.building?.bytes ?? 0);
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
      this.filter = new KeyFilter(keys * FIRST_SHARE, this.residents.filterBytesMax);
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

  private add(hash: number): void {
    if (this.filter !== null && !this.filter.add(hash)) this.filter = null;
    if (this.building !== null && !this.building.add(hash)) this.abandon();
  }

  /** Whether a filter of `keys` keys should be made from the engine's rows. */
  wantsFilter(keys: number): boolean {
    if (this.count === 0 || this.building !== null || this.tooMany) return false;
    return this.filter === null || this.filter.count > Math.max(STALE_MIN, STALE_RATIO * keys);
  }

  /** Begins a filter; the hash of every key row that the engine has from now on is to be given to `found`. */
  build(keys: number): void {
    this.building = new KeyFilter(keys, this.residents.filterBytesMax);
  }

  /** False when the filter has been given up. */
  found(hash: number): boolean {
    if (this.building !== null && !this.building.add(hash)) this.abandon();
    return this.building !== null;
  }

  built(): void {
    if (this.building !== null) this.filter = this.building;
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
    this.building = null;
  }
}
