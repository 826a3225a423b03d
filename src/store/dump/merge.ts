/** What was imported becomes a part of the databases. */
import { Slice } from '../../bytes/slice.ts';
import type { Keyspace } from '../keyspace.ts';
import type { Tier } from '../tier.ts';

/**
 * What happens to keys that exist: there are none; the imported ones win; those that are there win; all
 * that is there goes.
 */
export type ImportMode = 'new' | 'replace' | 'skip' | 'instead';

export interface Merged {
  replaced: number;
  skipped: number;
}

/** Whether there are keys of a database on both sides. */
export function meets(tier: Tier, staged: readonly (Keyspace | undefined)[]): boolean {
  return staged.some((keyspace, index) => keyspace !== undefined && tier.database(index).size > 0);
}

/** All databases at once. The cost of a database is that of the smaller side's keys; none if either has none. */
export function mergeStaged(tier: Tier, staged: readonly (Keyspace | undefined)[], mode: ImportMode): Merged {
  const merged: Merged = { replaced: 0, skipped: 0 };
  if (mode !== 'instead' && meets(tier, staged) && !tier.hasAll())
    throw new Error(
      'some of the data have left memory, and keys cannot be merged with them: raise tier-memory',
    );
  if (mode === 'instead') for (let index = 0; index < tier.databaseCount; index++) tier.flush(index);
  staged.forEach((keyspace, index) => {
    if (keyspace === undefined) return;
    const { keyspace: present } = tier.database(index);
    if (present.size > 0) {
      const into = present.size < keyspace.size;
      const both = into
        ? moveAll(present, keyspace, mode === 'skip')
        : moveAll(keyspace, present, mode === 'replace');
      if (mode === 'skip') merged.skipped += both;
      else merged.replaced += both;
      if (!into) {
        tier.discard(keyspace);
        return;
      }
    }
    tier.adopt(index, keyspace);
  });
  return merged;
}

/** Moves all keys of one keyspace to another; returns how many were in both. `wins`: the moved ones stay then. */
function moveAll(from: Keyspace, to: Keyspace, wins: boolean): number {
  const key = new Slice();
  const records: number[] = [];
  let both = 0;
  let cursor = 0;
  do {
    records.length = 0;
    cursor = from.table.scan(cursor, 1000, (ref) => records.push(ref));
    for (const ref of records) {
      if (from.type(ref) === 0) continue;
      from.key(ref, key);
      const hash = from.ground.hasher.hash32(key);
      const found = to.table.find(hash, key.view, key.start, key.end);
      if (found !== 0 && to.type(found) !== 0) {
        both++;
        if (!wins) continue;
        to.removeRecord(found, hash);
      }
      // In memory of its own: the record is about to go.
      from.move(ref, hash, to, key.clone(), hash);
    }
  } while (cursor !== 0);
  return both;
}
