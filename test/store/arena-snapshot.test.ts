import { describe, expect, it } from 'vitest';
import { Arena, classUnits, Kind, KIND_SHIFT, SLAB_BYTES, SLAB_RUN } from '../../src/store/arena.ts';
import { ArenaSnapshot } from '../../src/store/arena-snapshot.ts';
import { Random, seeds } from './random.ts';

const SLAB_WORDS = SLAB_BYTES / 4;

/** Blocks with content, changed at random as the store changes them. */
class Blocks {
  readonly arena = new Arena({ chunkBytes: 1 << 20 });
  readonly live: number[] = [];
  private readonly random: Random;

  constructor(random: Random) {
    this.random = random;
  }

  private fill(ref: number): void {
    const { arena } = this;
    const at = (ref & arena.unitMask) << 2;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    i32.fill(this.random.word(), at, at + (arena.sizeOf(ref) >>> 2));
    i32[at] = (Kind.Record << KIND_SHIFT) | (this.random.word() & 0xffff);
  }

  words(ref: number): Int32Array {
    const { arena } = this;
    const at = (ref & arena.unitMask) << 2;
    return arena.i32[ref >>> arena.chunkShift].slice(at, at + (arena.sizeOf(ref) >>> 2));
  }

  add(): void {
    const { arena, random } = this;
    const size = random.below(40) === 0 ? 1 + random.below(300_000) : 1 + random.below(700);
    const ref = random.below(8) === 0 ? arena.allocPage() : arena.alloc(size);
    this.fill(ref);
    arena.touch(ref);
    this.live.push(ref);
  }

  change(): void {
    const ref = this.random.pick(this.live);
    this.arena.touch(ref);
    this.fill(ref);
  }

  move(): void {
    const i = this.random.below(this.live.length);
    this.live[i] = this.arena.relocate(this.live[i]);
  }

  remove(): void {
    const [ref] = this.live.splice(this.random.below(this.live.length), 1);
    this.arena.free(ref);
  }

  /** One change; `growth` is the part of additions in ten. */
  step(growth: number): void {
    if (this.live.length === 0 || this.random.below(10) < growth) this.add();
    else if (this.random.below(10) < 4) this.change();
    else if (this.random.below(10) < 2) this.move();
    else this.remove();
  }
}

describe('arena snapshot', () => {
  it.each(seeds(6))('shows every block as it was, whatever becomes of it (SEED=%i)', (seed) => {
    const random = new Random(seed);
    const blocks = new Blocks(random);
    const { arena } = blocks;
    for (let i = 0; i < 6000; i++) blocks.step(i < 4000 ? 7 : 3);
    const before = new Map(blocks.live.map((ref) => [ref, blocks.words(ref)]));

    const snapshot = new ArenaSnapshot(arena);
    arena.snapshot = snapshot;
    const growth = 1 + random.below(7);
    const eager = 1 + random.below(400);
    const { classes, fresh } = snapshot.tables;
    const found = new Map<number, Int32Array>();
    for (;;) {
      for (let i = random.below(eager); i > 0; i--) blocks.step(growth);
      const slab = snapshot.nextSlab;
      if (slab < 0) break;
      const copy = new Int32Array(snapshot.runLength(slab) * SLAB_WORDS);
      snapshot.copy(slab, copy, 0);
      if (classes[slab] === SLAB_RUN) found.set(slab << 12, copy);
      const units = classUnits(classes[slab]);
      for (let unit = 0; units > 0 && unit < fresh[slab]; unit += units) {
        const words = copy.subarray(unit << 2, (unit + units) << 2);
        if (words[0] >>> KIND_SHIFT !== Kind.Free) found.set((slab << 12) | unit, words);
      }
    }
    expect(snapshot.remaining).toBe(0);
    expect([...found.keys()].sort((a, b) => a - b)).toEqual([...before.keys()].sort((a, b) => a - b));
    for (const [ref, words] of before) {
      const copy = found.get(ref) as Int32Array;
      expect(Buffer.compare(Buffer.from(words.buffer), Buffer.from(copy.slice().buffer)), `${ref}`).toBe(0);
    }
  });

  it('keeps each changed block once, and nothing that came later', () => {
    const random = new Random(1);
    const blocks = new Blocks(random);
    for (let i = 0; i < 200; i++) blocks.add();
    blocks.arena.snapshot = new ArenaSnapshot(blocks.arena);
    for (let i = 0; i < 5000; i++) blocks.change();
    for (let i = 0; i < 2000; i++) {
      blocks.add();
      blocks.arena.touch(blocks.live.at(-1) as number);
    }
    // All that there was, and a piece of the pool more.
    expect(blocks.arena.snapshot.keptBytes).toBeLessThan(3 << 20);
  });
});
