import { describe, expect, it } from 'vitest';
import { OutOfTierError } from '../../src/store/api.ts';
import { Arena, Kind, KIND_SHIFT, PAGE_BYTES, SLAB_BYTES } from '../../src/store/arena.ts';
import { Random, seeds } from './random.ts';

const CHUNK = 1 << 20;

function write(arena: Arena, ref: number, value: number): void {
  const words = arena.sizeOf(ref) >>> 2;
  const at = (ref & arena.unitMask) << 2;
  arena.i32[ref >>> arena.chunkShift].fill(value, at, at + words);
  arena.i32[ref >>> arena.chunkShift][at] = (Kind.Record << KIND_SHIFT) | value;
}

function intact(arena: Arena, ref: number, value: number): boolean {
  const at = (ref & arena.unitMask) << 2;
  const words = arena.i32[ref >>> arena.chunkShift].subarray(at, at + (arena.sizeOf(ref) >>> 2));
  return (
    words[0] === ((Kind.Record << KIND_SHIFT) | value) && words.subarray(1).every((word) => word === value)
  );
}

function kind(arena: Arena, ref: number): number {
  return arena.i32[ref >>> arena.chunkShift][(ref & arena.unitMask) << 2] >>> KIND_SHIFT;
}

describe('arena', () => {
  it.each(seeds(2))('hands out blocks that do not overlap, and gets everything back (SEED=%i)', (seed) => {
    const random = new Random(seed);
    const arena = new Arena({ chunkBytes: CHUNK });
    const live: { ref: number; value: number }[] = [];
    let bytes = 0;
    for (let i = 0; i < 20_000; i++) {
      const growing = Math.floor(i / 4000) % 2 === 0;
      if (live.length === 0 || random.below(10) < (growing ? 7 : 3)) {
        const small = random.below(20) !== 0;
        const size = 1 + random.below(small ? 600 : random.below(10) === 0 ? 300_000 : 40_000);
        const page = random.below(10) === 0;
        const ref = page ? arena.allocPage() : arena.alloc(size);
        expect(arena.sizeOf(ref)).toBeGreaterThanOrEqual(page ? PAGE_BYTES : size);
        if (!page) expect(arena.sizeOf(ref)).toBe(arena.sizeFor(size));
        bytes += arena.sizeOf(ref);
        const value = i & 0xffff;
        write(arena, ref, value);
        live.push({ ref, value });
      } else {
        const { ref, value } = live.splice(random.below(live.length), 1)[0];
        expect(intact(arena, ref, value)).toBe(true);
        bytes -= arena.sizeOf(ref);
        arena.free(ref);
        expect(kind(arena, ref)).toBe(Kind.Free);
      }
      if (i % 100 === 0) expect(arena.blockBytes).toBe(bytes);
    }
    for (const { ref, value } of live) {
      expect(intact(arena, ref, value)).toBe(true);
      arena.free(ref);
    }
    expect(arena.blockBytes).toBe(0);
    expect(arena.slabBytes).toBe(0);
    expect(arena.committedBytes).toBeLessThanOrEqual(CHUNK);
    expect(arena.classes().every(({ blocks }) => blocks === 0)).toBe(true);
  });

  it('wastes at most an eighth of a block of up to 2 KB, and half of a larger one', () => {
    const arena = new Arena({ chunkBytes: CHUNK });
    for (let bytes = 129; bytes <= SLAB_BYTES / 2; bytes++) {
      const waste = arena.sizeFor(bytes) - bytes;
      expect(waste).toBeLessThanOrEqual(bytes <= 2048 ? Math.max(16, bytes / 8) : bytes / 2 + 16);
    }
    expect(arena.sizeFor(PAGE_BYTES)).toBeLessThanOrEqual(2048);
  });

  it('gives the slabs of one size class to another, and chunks back to the system', () => {
    const arena = new Arena({ chunkBytes: CHUNK });
    const fill = (size: number): number[] =>
      Array.from({ length: Math.floor((8 * CHUNK) / arena.sizeFor(size)) }, () => {
        const ref = arena.alloc(size);
        write(arena, ref, 1);
        return ref;
      });
    const small = fill(100);
    const high = arena.committedBytes;
    for (const ref of small) arena.free(ref);
    expect(arena.committedBytes).toBe(CHUNK);
    const large = fill(3000);
    expect(arena.committedBytes).toBeLessThanOrEqual(high * 1.1);
    for (const ref of large) arena.free(ref);
    expect(arena.committedBytes).toBe(CHUNK);
  });

  it('works up to the last reference and no further', () => {
    const chunks = 2 ** 36 / CHUNK;
    const arena = new Arena({ chunkBytes: CHUNK, firstChunk: chunks - 2 });
    const refs: number[] = [];
    expect(() => {
      for (;;) {
        const ref = arena.alloc(SLAB_BYTES / 2);
        write(arena, ref, refs.length);
        refs.push(ref);
      }
    }).toThrow(OutOfTierError);
    expect(refs.length).toBe((2 * CHUNK) / (SLAB_BYTES / 2));
    expect(refs.every((ref) => ref < 0)).toBe(true);
    refs.forEach((ref, i) => expect(intact(arena, ref, i)).toBe(true));
    for (const ref of refs) arena.touch(ref);
    expect(arena.dirtyBytes).toBe(2 * CHUNK);
    for (const ref of refs) arena.free(ref);
    expect(arena.dirtyBytes).toBe(0);
    expect(arena.slabBytes).toBe(0);
  });

  it('refuses what goes beyond its limit before anything is changed', () => {
    const arena = new Arena({ chunkBytes: CHUNK, limit: CHUNK });
    arena.reserve(1000);
    while (arena.slabBytes < CHUNK - 4 * SLAB_BYTES) arena.alloc(1000);
    expect(() => arena.reserve(1000)).toThrow(OutOfTierError);
  });
});

describe('marks', () => {
  /** Blocks whose content is their version, with what a cut copied out of each. */
  function marked(): { arena: Arena; out: Map<number, number> } {
    const arena = new Arena({ chunkBytes: CHUNK });
    const out = new Map<number, number>();
    arena.copyOut = (ref) => {
      if (out.has(ref)) throw new Error('a block was copied out twice');
      out.set(ref, arena.i32[ref >>> arena.chunkShift][((ref & arena.unitMask) << 2) + 1]);
    };
    return { arena, out };
  }

  it.each(seeds(2))('give the state at the cut, each block once (SEED=%i)', (seed) => {
    const random = new Random(seed);
    const { arena, out } = marked();
    const version = new Map<number, number>();
    /** What the engine would have. */
    const engine = new Map<number, number>();
    let next = 1;
    const change = (): void => {
      const refs = [...version.keys()];
      const dice = random.below(10);
      if (dice < 4 || refs.length === 0) {
        const ref = random.below(4) === 0 ? arena.allocPage() : arena.alloc(16 + random.below(3000));
        write(arena, ref, ++next & 0xffff);
        arena.touch(ref);
        version.set(ref, next & 0xffff);
      } else if (dice < 7) {
        const ref = random.pick(refs);
        arena.touch(ref);
        write(arena, ref, ++next & 0xffff);
        version.set(ref, next & 0xffff);
      } else {
        const ref = random.pick(refs);
        arena.free(ref);
        version.delete(ref);
      }
    };
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 100; i++) change();
      const atCut = new Map(version);
      out.clear();
      arena.beginCut();
      while (!arena.copyCut(() => false)) for (let i = random.below(5); i > 0; i--) change();
      for (let i = 0; i < 30; i++) change();
      expect(arena.cutBytes).toBe(0);
      const applied = random.below(3) !== 0;
      if (applied) {
        for (const [ref, value] of out) engine.set(ref, value);
        for (const ref of engine.keys()) if (!atCut.has(ref)) engine.delete(ref);
        expect([...engine].sort()).toEqual([...atCut].sort());
      }
      arena.endCut(applied);
      for (const [ref, value] of version) {
        // A clean block is as the engine has it.
        if (arena.isClean(ref)) expect(engine.get(ref)).toBe(value);
      }
    }
    const dirty = [...version.keys()].filter((ref) => arena.isDirty(ref));
    expect(arena.dirtyBytes).toBe(dirty.reduce((sum, ref) => sum + arena.sizeOf(ref), 0));
  });

  it('of a cut that is given up are dirty again, copied out or not', () => {
    const { arena, out } = marked();
    const refs = Array.from({ length: 500 }, () => arena.alloc(64));
    for (const ref of refs) {
      write(arena, ref, 1);
      arena.touch(ref);
    }
    arena.beginCut();
    arena.copyCut(() => false);
    expect(out.size).toBeGreaterThan(0);
    expect(out.size).toBeLessThan(500);
    arena.endCut(false);
    expect(arena.dirtyBytes).toBe(500 * 64);
    out.clear();
    arena.beginCut();
    while (!arena.copyCut(() => true)) continue;
    arena.endCut(true);
    expect(out.size).toBe(500);
    expect(refs.every((ref) => arena.isClean(ref))).toBe(true);
  });
});
