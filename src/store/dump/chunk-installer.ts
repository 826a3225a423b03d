/** Takes chunks that are handed over into keyspaces that nothing leads to yet. */
import { Slice } from '../../bytes/slice.ts';
import { OutOfTierError } from '../api.ts';
import type { CollectionRange } from '../collection-table.ts';
import type { Keyspace } from '../keyspace.ts';
import { FLAG_TREE } from '../record.ts';
import type { Tier } from '../tier.ts';
import { answer, COLLECTIONS_LENT, type HandedKeys, type Handover, type Want } from './handover.ts';
import { TwinKeyError } from './row-installer.ts';

/** Keys, or collections, between two looks at the clock. */
const STEP = 256;
/** Segments of a key table that are made between two looks. */
const SEGMENTS_STEP = 64;

export class ChunkInstaller {
  private readonly tier: Tier;
  private readonly stagedFor: (database: number) => Keyspace;
  private readonly key = new Slice();
  /** Chunks and collections that the other thread may have. */
  private readonly chunks = new Set<number>();
  private readonly collections: CollectionRange[] = [];
  /** What of the handover in progress is still to be taken in. */
  private rest: Handover | null = null;
  private at = 0;
  private twin: TwinKeyError | null = null;

  /** @param stagedFor the keyspace for a database */
  constructor(tier: Tier, stagedFor: (database: number) => Keyspace) {
    this.tier = tier;
    this.stagedFor = stagedFor;
  }

  /** Lends what the other thread asks for. */
  lend(want: Want, memory: SharedArrayBuffer): void {
    const { tier } = this;
    if (want === 'chunk') {
      const { arena } = tier;
      const chunk = arena.promiseChunk();
      this.chunks.add(chunk);
      // A value that has begun is ended whatever the limit.
      const taken = arena.slabBytes + this.chunks.size * arena.chunkBytes;
      answer(memory, chunk, tier.isWhole && taken <= arena.limit ? 1 : 0);
    } else if (want === 'collections') {
      const range = tier.collections.lend(COLLECTIONS_LENT);
      this.collections.push(range);
      answer(memory, range.slot, range.id, range.count);
    } else {
      answer(memory, this.stagedFor(want.keyspace).number);
    }
  }

  /** Something of a handover is not taken in yet. */
  get busy(): boolean {
    return this.rest !== null;
  }

  /** Begins with a handover; `go` takes it in. It may borrow, as what is in it is in memory already. Throws OutOfTierError. */
  begin(handover: Handover): void {
    const { arena, evictor, memory } = this.tier;
    if (arena.slabBytes + handover.slabBytes > evictor.most)
      throw new OutOfTierError(`the memory tier is full (tier-memory ${memory.limit} bytes)`);
    arena.dirtyBytes += handover.dirtyBytes;
    this.rest = handover;
    this.at = 0;
  }

  /** Goes on for about `budgetMs`. Throws TwinKeyError, with the end of a handover in which a key occurs again. */
  go(budgetMs: number): void {
    const until = performance.now() + budgetMs;
    while (this.rest !== null && performance.now() < until) {
      if (this.step(this.rest)) continue;
      this.rest = null;
      if (this.twin !== null) throw this.twin;
    }
  }

  /** A chunk, some collections or some keys; false when nothing was left. */
  private step({ chunks, collections, keys }: Handover): boolean {
    const { tier } = this;
    const chunk = chunks.pop();
    if (chunk !== undefined) {
      tier.arena.takeOver(chunk);
      this.chunks.delete(chunk.chunk);
      return true;
    }
    if (collections.length > 0) {
      for (const one of collections.splice(-STEP)) tier.collections.takeOver(one);
      return true;
    }
    const of = keys.at(-1);
    if (of === undefined) return false;
    const all = of.keys.length + of.deadlines.length;
    if (this.at === 0 && this.stagedFor(of.database).table.reserveStep(of.expected, SEGMENTS_STEP))
      return true;
    if (this.at < of.keys.length) this.takeKeys(of);
    else if (this.at < all) this.takeDeadlines(of);
    if (this.at === all) {
      keys.pop();
      this.at = 0;
    }
    return true;
  }

  private takeKeys({ database, keys }: HandedKeys): void {
    const keyspace = this.stagedFor(database);
    const end = Math.min(keys.length, this.at + 2 * STEP);
    for (; this.at < end; this.at += 2) {
      const hash = keys[this.at];
      const ref = keys[this.at + 1];
      if (!keyspace.takeIn(ref, hash)) this.refuse(keyspace, ref, database);
    }
  }

  private takeDeadlines({ database, keys, deadlines }: HandedKeys): void {
    const keyspace = this.stagedFor(database);
    const from = this.at - keys.length;
    const end = Math.min(deadlines.length, from + STEP / 8);
    for (let i = from; i < end; i += 2) keyspace.takeInDeadline(deadlines[i], deadlines[i + 1]);
    this.at = keys.length + end;
  }

  private refuse(keyspace: Keyspace, ref: number, database: number): void {
    const { tier, key } = this;
    keyspace.key(ref, key);
    this.twin ??= new TwinKeyError(key, database);
    if ((keyspace.head(ref) & FLAG_TREE) !== 0) tier.dropCollection(keyspace.collection(ref));
    tier.arena.free(ref);
  }

  /** Nothing more comes: what was lent and not used is the tier's again. */
  end(): void {
    for (const chunk of this.chunks) this.tier.arena.withdrawChunk(chunk);
    this.chunks.clear();
    for (const range of this.collections.splice(0)) this.tier.collections.takeBack(range);
  }
}
