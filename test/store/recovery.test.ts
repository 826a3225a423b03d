/**
 * The whole store (tier, log, checkpoints, recovery) against a plain model, over crashes and power
 * losses at random moments and jumps of the clock.
 */
import { expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { EngineError } from '../../src/engines/engine.ts';
import type { Store } from '../../src/store/api.ts';
import { DataDirectory } from '../../src/store/data-directory.ts';
import { PersistentStore } from '../../src/store/persistent-store.ts';
import { Tier } from '../../src/store/tier.ts';
import { ModelStore } from '../model/store.ts';
import { Random, seeds } from './random.ts';
import { DiskFault, SimulatedDisk } from './simulated-disk.ts';
import { SimulatedEngine } from './simulated-engine.ts';
import { contentOf, randomOperation, run, type Operation } from './store-operations.ts';

const PATH = '/simulated/data';
const DATABASES = 2;
const ROUNDS = 3;
const LIVES = 5;

/** One event-loop turn: what was asked for at which time. */
interface Turn {
  now: number;
  operations: Operation[];
}

/** A store that logs the effects of each turn: the operations and, before them, the keys that expired. */
class Life {
  readonly opened: PersistentStore<Tier>;
  private effects: Operation[] = [];

  constructor(opened: PersistentStore<Tier>) {
    this.opened = opened;
    opened.store.onExpired = (db, key) => this.effects.push(['remove', db.index, key.latin1()]);
  }

  static async begin(disk: SimulatedDisk, engine: SimulatedEngine): Promise<Life> {
    const tier = new Tier({ databases: DATABASES, chunkBytes: 1 << 20 });
    tier.now = 0;
    const directory = await DataDirectory.open(PATH, disk, 'leveldb', 'none');
    const opened = await PersistentStore.open(
      { directory, disk, logDisk: disk, engine, store: tier },
      {
        appendfsync: 'no',
        segmentBytes: 50_000,
        checkpoint: { batchBytes: 20_000 },
        replay: (payload) => {
          for (const operation of JSON.parse(payload.utf8()) as Operation[]) {
            tier.now = 0; // takes handles back, and nothing expires by the clock
            run(tier, operation);
          }
        },
      },
    );
    return new Life(opened);
  }

  turn(turn: Turn): void {
    const tier = this.opened.store;
    for (const operation of turn.operations) {
      tier.now = turn.now;
      run(tier, operation);
      this.effects.push(operation);
    }
    this.opened.log.append(Buffer.from(JSON.stringify(this.effects)));
    this.effects = [];
    tier.backgroundSlice(0);
  }
}

function runTurn(store: Store, turn: Turn): void {
  store.now = turn.now;
  for (const operation of turn.operations) run(store, operation);
}

function modelAfter(history: readonly Turn[]): ModelStore {
  const model = new ModelStore(DATABASES);
  for (const turn of history) runTurn(model, turn);
  return model;
}

const TURNS_KEY = '!turns';

function turnsOf(store: Store): number {
  store.now = 0;
  for (let index = 0; index < DATABASES; index++) {
    const value = new Slice();
    if (store.database(index).getString(Slice.from(TURNS_KEY), value)) return Number(value.latin1());
  }
  return 0;
}

test.each(seeds(ROUNDS))(
  'equal to the model after every crash (seed %i)',
  async (seed) => {
    const random = new Random(seed);
    const uniform = () => random.real();
    let disk = new SimulatedDisk();
    let engine = new SimulatedEngine(disk);
    let history: Turn[] = [];
    let now = 1_700_000_000_000;
    let life = await Life.begin(disk, engine);
    for (let number = 0; number < LIVES; number++) {
      const turns = random.below(150);
      const size = random.pick([3, 10, 120]);
      for (let i = 0; i < turns; i++) {
        now += random.below(20) === 0 ? random.below(4000) - 1000 : random.below(10);
        const operations = Array.from({ length: 1 + random.below(4) }, () =>
          randomOperation(random, now, size),
        );
        if (random.below(50) === 0) operations.push(['touch']);
        operations.push(['set', 0, TURNS_KEY, String(history.length + 1)]);
        operations.push(['remove', 1, TURNS_KEY]);
        const turn = { now, operations };
        history.push(turn);
        life.turn(turn);
        if (random.below(12) === 0) void life.opened.checkpointer.checkpoint().catch(() => undefined);
        if (random.below(20) === 0) void life.opened.log.sync().catch(() => undefined);
        if (random.below(3) === 0) await new Promise(setImmediate);
      }
      const { log, checkpointer } = life.opened;
      const synced = log.syncedPosition;
      const powerLoss = random.below(2) === 0;
      const nextDisk = powerLoss ? disk.afterPowerLoss(uniform) : disk.afterKill();
      const nextEngine = powerLoss ? engine.afterPowerLoss(nextDisk, uniform) : engine.afterKill(nextDisk);
      disk.fault = () => new DiskFault('EIO');
      engine.fault = () => new EngineError('ENGINE_DEAD', 'gone');
      await checkpointer.close(0);
      disk = nextDisk;
      engine = nextEngine;

      life = await Life.begin(disk, engine);
      const survived = turnsOf(life.opened.store);
      if (powerLoss) expect(life.opened.log.position).toBeGreaterThanOrEqual(synced);
      else expect(survived).toBe(history.length);
      history = history.slice(0, survived);
      const model = modelAfter(history);
      now += random.below(3) === 0 ? random.below(6000) - 2000 : 0;
      model.now = life.opened.store.now = now;
      expect(contentOf(life.opened.store)).toBe(contentOf(model));
      const touch: Turn = { now, operations: [['touch'], ['set', 0, TURNS_KEY, String(history.length + 1)]] };
      history.push(touch);
      life.turn(touch);
    }
    // At the end: the store that has lived on is equal to the model too, and so is a clean end.
    const { store } = life.opened;
    const model = modelAfter(history);
    model.now = store.now = now;
    expect(contentOf(store)).toBe(contentOf(model));
    life.turn({ now, operations: [['touch']] });
    expect(await life.opened.close()).toBe(true);
    const last = await Life.begin(disk, engine.afterKill(disk));
    expect(last.opened.recovered.replayedFrames).toBe(0);
    last.opened.store.now = now;
    expect(contentOf(last.opened.store)).toBe(contentOf(model));
  },
  60_000,
);
