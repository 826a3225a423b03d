/** Chunks that one arena fills for another: what is in them, the room that is left, and what is lent for nothing. */
import { describe, expect, it } from 'vitest';
import { ByteSink } from '../../src/bytes/sink.ts';
import { Slice } from '../../src/bytes/slice.ts';
import { ChunkInstaller } from '../../src/store/dump/chunk-installer.ts';
import { ChunkTarget } from '../../src/store/dump/chunk-target.ts';
import { COLLECTIONS_LENT, newAnswer, type Borrower, type Handover } from '../../src/store/dump/handover.ts';
import { TwinKeyError } from '../../src/store/dump/row-installer.ts';
import { Tier } from '../../src/store/tier.ts';

const CHUNK_BYTES = 256 * 1024;
const KEYS = 4000;
const HASH_KEY = [3, 4] as const;

/** A tier, and what makes rows for it as a thread would. */
function pair() {
  const tier = new Tier({ hashKey: HASH_KEY, chunkBytes: CHUNK_BYTES });
  const staging = tier.stage('file');
  const installer = new ChunkInstaller(tier, (database) => tier.staged(staging, database));
  const memory = newAnswer();
  const lend = (want: Parameters<ChunkInstaller['lend']>[0]): Float64Array => {
    installer.lend(want, memory);
    return new Float64Array(memory, 8);
  };
  const borrower = {
    hasRoom: true,
    chunk: () => lend('chunk')[0],
    collections: () => {
      const [slot, id, count] = lend('collections');
      return { slot, id, count };
    },
    keyspace: (database: number) => lend({ keyspace: database })[0],
  } as unknown as Borrower;
  const handovers: Handover[] = [];
  const target = new ChunkTarget(
    { hashKey: HASH_KEY, chunkBytes: CHUNK_BYTES, now: 1 },
    borrower,
    (handover) => handovers.push(handover),
    () => {
      throw new Error('there is room');
    },
  );
  const take = (): void => {
    for (const handover of handovers.splice(0)) {
      installer.begin(handover);
      while (installer.busy) installer.go(0.01);
    }
  };
  return { tier, installer, target, take };
}

const value = (i: number): string => `value ${i} `.repeat(1 + (i % 20));

function make(target: ChunkTarget): void {
  target.expect(0, KEYS);
  for (let i = 0; i < KEYS; i++) {
    target.settle();
    target.record(i % 2, Slice.from(`key:${i}`), 1, 0, 0, i % 10 === 0 ? 1000 + i : 0, Slice.from(value(i)));
    if (i % 500 === 0) {
      const name = Slice.from('scratch');
      target.tier.beginCommand();
      for (let element = 0; element < 500; element++)
        target.tier
          .database(0)
          .list(name, true)
          .pushRight(Slice.from(`element ${i} ${element}`));
      const { keyspace } = target.tier.database(0);
      const hash = target.tier.hasher.hash32(name);
      const ref = keyspace.table.find(hash, name.view, name.start, name.end);
      const payload = new Slice();
      keyspace.payload(ref, payload);
      target.record(0, Slice.from(`list:${i}`), 2, keyspace.collection(ref), 0, 0, payload);
      keyspace.size--;
      keyspace.forget(ref, hash);
    }
  }
  target.flush();
}

describe('a handover', () => {
  it('brings all values, dirty, and the tier goes on with the room in the chunks', () => {
    const { tier, installer, target, take } = pair();
    // A cut before: the words of marks have changed places.
    tier.beginCut(new ByteSink(64));
    tier.endCut(true);
    make(target);
    take();
    installer.end();
    tier.publish('file', 'new', 0);
    expect([0, 1].map((index) => tier.database(index).size)).toEqual([KEYS / 2 + KEYS / 500, KEYS / 2]);
    expect(tier.database(0).expiring).toBe(KEYS / 10);
    for (let i = 0; i < KEYS; i++) {
      const string = tier.database(i % 2).string(Slice.from(`key:${i}`));
      let text = '';
      string?.forEachRun(0, string.length, (run) => (text += run.latin1()));
      expect(text).toBe(value(i));
      tier.beginCommand();
    }
    const list = tier.database(0).list(Slice.from('list:1500'));
    expect(list?.length).toBe(500);
    const committed = tier.arena.committedBytes;
    for (let i = 0; i < 200; i++) {
      tier.beginCommand();
      tier
        .database(0)
        .string(Slice.from(`more:${i}`), true)
        .write(0, Slice.from(value(i)));
    }
    expect(tier.arena.committedBytes).toBe(committed);
    tier.beginCut(new ByteSink(1 << 20));
    while (!tier.copyCut(1000, 1 << 30));
    // Each key, the pages of each list, and the roots and pages of the order of deadlines.
    expect(tier.cutRows).toBeGreaterThan(KEYS + KEYS / 500 + 200);
    tier.endCut(true);
    expect(tier.arena.dirtyBytes).toBe(0);
  });

  it('that is given up leaves nothing, nor does a key that occurs twice', () => {
    const { tier, installer, target, take } = pair();
    make(target);
    target.record(0, Slice.from('key:10'), 1, 0, 0, 0, Slice.from('again'));
    target.flush();
    expect(take).toThrow(TwinKeyError);
    expect(installer.busy).toBe(false);
    // Lent, and never used.
    installer.lend('chunk', newAnswer());
    installer.lend('collections', newAnswer());
    installer.end();
    tier.unstage('file');
    while (tier.backgroundSlice(1000));
    expect(tier.arena.slabBytes).toBe(0);
    expect(tier.arena.dirtyBytes).toBe(0);
    expect(tier.collections.size).toBe(0);
  });

  it('takes slots again that earlier ones left', () => {
    const { collections } = new Tier({ hashKey: HASH_KEY, chunkBytes: CHUNK_BYTES });
    const used = new Set<number>();
    const ids = new Set<number>();
    const rounds = 20;
    const add = (slot: number, id: number): void => {
      if (used.has(slot) || ids.has(id)) throw new Error(`slot ${slot}, id ${id} again`);
      used.add(slot);
      ids.add(id);
    };
    for (let round = 0; round < rounds; round++) {
      let left = 3000;
      for (let some = 0; some < left; left -= some) {
        const range = collections.lend(COLLECTIONS_LENT);
        some = Math.min(range.count, left);
        for (let i = 0; i < some; i++) {
          const [slot, id] = [range.slot + i, range.id + i];
          add(slot, id);
          const shape = { root: collections.arena.alloc(64), levels: 1, entries: 0, record: 0, resident: 0 };
          collections.takeOver({ slot, id, ...shape });
        }
        collections.takeBack(range);
        // Some of the tier's own come in between, and stay.
        const slot = collections.open(0);
        add(slot, collections.id[slot]);
      }
      expect(collections.size).toBe(used.size);
      for (const slot of used) {
        if (slot % 100 === round) continue;
        used.delete(slot);
        collections.drop(slot);
      }
      while (collections.freeSlice(1000));
    }
    expect(collections.end).toBeLessThan(3 * 3000);
    expect(collections.nextId).toBeGreaterThan(rounds * 2000);
  });
});
