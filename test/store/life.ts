/** A persistent store over a simulated disk and engine, whose rows come and go, and that logs the effects of each unit. */
import { Slice } from '../../src/bytes/slice.ts';
import type { Type } from '../../src/store/api.ts';
import type { ImportMode, Merge } from '../../src/store/merge.ts';
import { DataDirectory } from '../../src/store/data-directory.ts';
import { PersistentStore } from '../../src/store/persistent-store.ts';
import { SLAB_BYTES } from '../../src/store/arena.ts';
import { Tier } from '../../src/store/tier.ts';
import { EngineError } from '../../src/engines/engine.ts';
import { DiskFault, type SimulatedDisk } from './simulated-disk.ts';
import type { SimulatedEngine } from './simulated-engine.ts';
import { contentOf, run, type Operation } from './store-operations.ts';
import { unitOfWork as unit } from '../../src/store/unit-of-work.ts';

/** What the log of a life holds: operations, and that something staged was published. */
type Effect = Operation | ['publish', string, ImportMode, number];

const PATH = '/simulated/data';
export const DATABASES = 2;

/** As Life.moveChunk; `chunk` is one with data. */
export function moveChunk(
  { arena, defragmenter }: Tier,
  chunk = arena.u8.findIndex((u8) => u8.length > 0),
): number {
  const { moved } = defragmenter;
  if (chunk < 0) return 0;
  const chunkOf = (ref: number): number => ref >>> arena.chunkShift;
  // Room for it in other chunks, which one block keeps there until then.
  const room = Array.from({ length: 2 * arena.slabsPerChunk }, () => arena.alloc(SLAB_BYTES));
  const kept = room.findLast((ref) => chunkOf(ref) !== chunk) as number;
  if (arena.closedChunk < 0) arena.closeChunk(chunk);
  for (const ref of room) if (ref !== kept) arena.free(ref);
  while (arena.closedChunk >= 0 && defragmenter.slice(0)) continue;
  arena.free(kept);
  return defragmenter.moved - moved;
}

export class Life {
  readonly opened: PersistentStore<Tier>;
  private readonly disk: SimulatedDisk;
  readonly engine: SimulatedEngine;
  /** Why the store could not go on. */
  fatal: Error | null = null;
  private effects: Effect[] = [];

  constructor(opened: PersistentStore<Tier>, disk: SimulatedDisk, engine: SimulatedEngine) {
    this.opened = opened;
    this.disk = disk;
    this.engine = engine;
    opened.flush = () => {
      this.flush();
      return true;
    };
  }

  static async begin(disk: SimulatedDisk, engine: SimulatedEngine, limit: number): Promise<Life> {
    const tier = new Tier({ databases: DATABASES, chunkBytes: 1 << 20, limit });
    tier.now = 0;
    const directory = await DataDirectory.open(PATH, disk, 'leveldb', 'none');
    let life: Life | null = null;
    const opened = await PersistentStore.open(
      { directory, disk, logDisk: disk, engine, store: tier },
      {
        appendfsync: 'no',
        segmentBytes: 50_000,
        evicts: true,
        filterKeysMin: 1,
        onFatal: (error) => {
          if (life !== null) life.fatal = error;
        },
        checkpoint: { batchBytes: 20_000 },
        replay: async (payload) => {
          for (const operation of JSON.parse(payload.utf8()) as Effect[]) {
            if (operation[0] === 'publish') {
              tier.publish(operation[1], operation[2], operation[3]);
              continue;
            }
            tier.now = 0; // takes handles back, and nothing expires by the clock
            await unit(tier, () => run(tier, operation));
          }
        },
      },
    );
    tier.unstage();
    life = new Life(opened, disk, engine);
    return life;
  }

  /** Several operations as one unit; returns how often it was rolled back. */
  async run(now: number, operations: readonly Operation[]): Promise<number> {
    const tier = this.opened.store;
    return this.unit((effects) => {
      for (const operation of operations) {
        tier.now = now;
        run(tier, operation);
        effects.push(operation);
      }
    });
  }

  async expire(now: number): Promise<void> {
    const tier = this.opened.store;
    await this.unit(() => {
      tier.now = now;
      tier.expireDue(1000);
    });
  }

  /** The effects are there in the turn that makes them, before any cut can be taken. */
  private unit(work: (effects: Operation[]) => void): Promise<number> {
    const tier = this.opened.store;
    return unit(tier, () => {
      const effects: Operation[] = [];
      tier.onExpired = (db, key) => effects.push(['remove', db.index, key.latin1()]);
      work(effects);
      this.effects.push(...effects);
    });
  }

  publish(name: string, mode: ImportMode, now: number): Merge[] {
    const merges = this.opened.store.publish(name, mode, now);
    this.effects.push(['publish', name, mode, now]);
    return merges;
  }

  flush(): void {
    if (this.effects.length > 0) this.opened.log.append(Buffer.from(JSON.stringify(this.effects)));
    this.effects = [];
  }

  async content(now: number): Promise<string> {
    return this.look(now, () => contentOf(this.opened.store));
  }

  async type(db: number, key: string, now = 0): Promise<Type> {
    return this.look(now, () => this.opened.store.database(db).type(Slice.from(key)));
  }

  /** Reads something, which may remove keys that have expired. */
  private async look<T>(now: number, read: () => T): Promise<T> {
    let result: T;
    await this.unit(() => {
      this.opened.store.now = now;
      result = read();
    });
    return result!;
  }

  /** Everything clean leaves, whether there is room or not. */
  evictAll(): void {
    this.opened.store.evictor.sweep(1000, 0);
    this.opened.store.evictor.sweep(1000, 0);
  }

  /** Moves what lies in one of the chunks elsewhere, whatever is won by it. Returns how many blocks were moved. */
  moveChunk(): number {
    return moveChunk(this.opened.store);
  }

  /** Ends as by a kill, and begins again from what was on the disk. */
  async afterKill(limit: number): Promise<Life> {
    const { disk, engine } = this;
    if (this.fatal !== null) throw this.fatal;
    const nextDisk = disk.afterKill();
    const nextEngine = engine.afterKill(nextDisk);
    disk.fault = () => new DiskFault('EIO');
    engine.fault = () => new EngineError('ENGINE_DEAD', 'gone');
    await this.opened.checkpointer.close(0);
    return Life.begin(nextDisk, nextEngine, limit);
  }

  /** Everything is in the engine, and what belongs to nothing is not. */
  async settle(): Promise<void> {
    const { store, checkpointer } = this.opened;
    for (let i = 0; i < 2; i++) {
      while (store.backgroundSlice(10));
      await checkpointer.checkpoint();
      while (checkpointer.info().purging) await new Promise(setImmediate);
    }
  }
}
