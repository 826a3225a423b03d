import { RowFault, type Store, type WorkingSet } from '../../src/store/api.ts';

/** Does the work as one unit, again and again until nothing is missing; returns how often it was rolled back. */
export async function unit(store: Store, work: () => void): Promise<number> {
  let set: WorkingSet | null = null;
  try {
    for (;;) {
      store.begin(set);
      try {
        work();
        store.commit();
        return set?.rounds ?? 0;
      } catch (error) {
        store.rollback();
        if (!(error instanceof RowFault)) throw error;
        set ??= store.workingSet();
        await set.fetch();
      }
    }
  } finally {
    set?.release();
  }
}
