/** Finds out that everything is in memory again, so that nothing needs to be tracked any more. */
import type { Arena } from './arena.ts';
import type { CollectionTable } from './collection-table.ts';
import type { Evictor } from './evictor.ts';
import type { Keyspace } from './keyspace.ts';
import { FLAG_DAMAGED } from './record.ts';
import type { Residents } from './residents.ts';

/** Slots of collections looked at between two looks at the clock. */
const SLOTS_A_STEP = 1000;

export interface WholenessGround {
  readonly arena: Arena;
  readonly collections: CollectionTable;
  readonly residents: Residents;
  readonly evictor: Evictor;
  keyspaceOf(record: number): Keyspace;
}

export class Wholeness {
  private readonly ground: WholenessGround;
  /** Slots before this have all their pages in memory, if nothing has left since there were so many evictions. */
  private slots = 1;
  private evictions = 0;

  constructor(ground: WholenessGround) {
    this.ground = ground;
  }

  /** Whether it is certain after `budgetMs` at most, between two units of work. The next call goes on from where this one stopped. */
  restored(keyspaces: readonly Keyspace[], budgetMs: number): boolean {
    const { residents, arena, evictor } = this.ground;
    return (
      !residents.testing &&
      residents.waiting === 0 &&
      arena.slabBytes <= evictor.from &&
      keyspaces.every(({ complete, merge }) => complete && merge === null) &&
      this.hasAllPages(performance.now() + budgetMs)
    );
  }

  private hasAllPages(end: number): boolean {
    const { collections, evictor } = this.ground;
    const evictions = evictor.evictedPages + evictor.evictedKeys;
    if (this.evictions !== evictions) this.slots = 1;
    this.evictions = evictions;
    for (; this.slots < collections.end; this.slots++) {
      const record = collections.record[this.slots];
      if (record !== 0) {
        const keyspace = this.ground.keyspaceOf(record);
        const pages = keyspace.nextPage(record) - 1;
        // What is missing of a damaged value is not asked for.
        if (collections.resident[this.slots] !== pages && (keyspace.head(record) & FLAG_DAMAGED) === 0)
          return false;
      }
      if (this.slots % SLOTS_A_STEP === 0 && performance.now() >= end) return false;
    }
    return true;
  }
}
