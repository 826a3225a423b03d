import { RowFault, type Store, type WorkingSet } from './api.ts';

/**
 * Does work that no client waits for as one unit, again and again until nothing that it needs is missing;
 * returns how often it was rolled back. Rejects with what the work throws.
 */
export async function unitOfWork(store: Store, work: () => void): Promise<number> {
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
