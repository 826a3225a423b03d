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

const random16 = (
  (random) => () =>
    16 + random.below(2000)
)(new Random(1));

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
    while (arena.spare.release(0)) continue;
    expect(arena.committedBytes).toBe(0);
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

  it('gives the slabs of one size class to another, and chunks back to the system', async () => {
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
    expect(arena.committedBytes).toBe(high);
    const large = fill(3000);
    expect(arena.committedBytes).toBeLessThanOrEqual(high * 1.1);
    const view = arena.u8[0];
    for (const ref of large) arena.free(ref);
    while (arena.spare.release(1000)) continue;
    expect(arena.committedBytes).toBe(CHUNK);
    while (arena.spare.release(0)) continue;
    expect(arena.committedBytes).toBe(0);
    await new Promise(setImmediate);
    expect(view.length).toBe(0);
  });

  it('hands nothing out from a closed chunk, and from its rest when there is no other', () => {
    const arena = new Arena({ chunkBytes: CHUNK });
    const refs = Array.from({ length: (4 * CHUNK) / 1024 - 100 }, () => arena.alloc(1024));
    for (const ref of refs) write(arena, ref, 7);
    const [first] = refs.splice(0, 300);
    for (let i = 1; i < 300; i++) arena.free(first + (i << 6));
    arena.closeChunk(arena.emptiestChunk());
    expect(arena.closedChunk).toBe(0);
    const before = arena.committedBytes;
    const more: number[] = [];
    while (arena.closedChunk >= 0) {
      const ref = arena.alloc(random16());
      write(arena, ref, 8);
      more.push(ref);
      if (arena.closedChunk >= 0) expect(ref >>> arena.chunkShift).not.toBe(0);
    }
    expect(arena.committedBytes).toBe(before);
    for (const ref of [first, ...refs]) expect(intact(arena, ref, 7)).toBe(true);
    for (const ref of more) expect(intact(arena, ref, 8)).toBe(true);
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
  /** Blocks whose content is their version and their name, with what a cut copied out of each. */
  function marked(): { arena: Arena; out: Map<number, number> } {
    const arena = new Arena({ chunkBytes: CHUNK });
    const out = new Map<number, number>();
    arena.copyOut = (ref) => {
      const at = (ref & arena.unitMask) << 2;
      const [version, name] = arena.i32[ref >>> arena.chunkShift].subarray(at + 1, at + 3);
      if (out.has(name)) throw new Error('a block was copied out twice');
      out.set(name, version);
    };
    return { arena, out };
  }

  function writeNamed(arena: Arena, ref: number, name: number, version: number): void {
    write(arena, ref, version);
    arena.i32[ref >>> arena.chunkShift][((ref & arena.unitMask) << 2) + 2] = name;
  }

  function intactNamed(arena: Arena, ref: number, name: number, version: number): boolean {
    const words = arena.i32[ref >>> arena.chunkShift];
    const at = ((ref & arena.unitMask) << 2) + 2;
    const named = words[at] === name;
    words[at] = version;
    const is = named && intact(arena, ref, version);
    words[at] = name;
    return is;
  }

  it.each(seeds(2))('give the state at the cut, each block once, wherever blocks move (SEED=%i)', (seed) => {
    const random = new Random(seed);
    const { arena, out } = marked();
    const refs = new Map<number, number>();
    const version = new Map<number, number>();
    /** What the engine would have. */
    const engine = new Map<number, number>();
    let next = 1;
    const set = (name: number, ref: number): void => {
      arena.touch(ref);
      writeNamed(arena, ref, name, ++next & 0xffff);
      refs.set(name, ref);
      version.set(name, next & 0xffff);
    };
    const change = (): void => {
      const dice = random.below(12);
      const name = refs.size === 0 ? 0 : random.pick([...refs.keys()]);
      const ref = refs.get(name) ?? 0;
      if (dice < 4 || ref === 0) {
        const created = random.below(4) === 0 ? arena.allocPage() : arena.alloc(16 + random.below(3000));
        writeNamed(arena, created, next + 1, 0);
        set(next + 1, created);
      } else if (dice < 7) {
        set(name, ref);
      } else if (dice < 9) {
        refs.set(name, arena.relocate(ref));
      } else {
        arena.free(ref);
        refs.delete(name);
        version.delete(name);
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
      for (const [name, ref] of refs) {
        expect(intactNamed(arena, ref, name, version.get(name) as number)).toBe(true);
        // A clean block is as the engine has it.
        if (arena.isClean(ref)) expect(engine.get(name)).toBe(version.get(name));
      }
    }
    const dirty = [...refs.values()].filter((ref) => arena.isDirty(ref));
    expect(arena.dirtyBytes).toBe(dirty.reduce((sum, ref) => sum + arena.sizeOf(ref), 0));
  });

  it('of a cut that is given up are dirty again, copied out or not', () => {
    const { arena, out } = marked();
    const refs = Array.from({ length: 500 }, () => arena.alloc(64));
    for (const [i, ref] of refs.entries()) {
      writeNamed(arena, ref, i, 1);
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
