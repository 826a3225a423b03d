/**
 * Reading ahead: at a million keys a look-up mostly waits for memory, first for the slot, then for the
 * record. A processor waits for many lines at a time if what it needs next does not depend on them, so
 * the keys of pipelined requests are looked up together before the first of them runs.
 *
 * Nothing that is found here is relied on but the hashes.
 */
import type { Slice } from '../bytes/slice.ts';
import { PREFETCH_KEYS_MAX } from './api.ts';
import type { Arena } from './arena.ts';
import type { Hasher } from './hash.ts';
import type { KeyTable } from './key-table.ts';

/** Words of a line of the processor's cache. */
const LINE_WORDS = 16;

export class LookAhead {
  private readonly arena: Arena;
  private readonly hasher: Hasher;
  /** The keys of the round: bytes [starts[i], ends[i]) of `memory`. */
  private memory: Buffer | null = null;
  private readonly starts = new Int32Array(PREFETCH_KEYS_MAX);
  private readonly ends = new Int32Array(PREFETCH_KEYS_MAX);
  private readonly hashes = new Int32Array(PREFETCH_KEYS_MAX);
  private readonly refs = new Int32Array(PREFETCH_KEYS_MAX);
  private count = 0;
  private next = 0;
  /** Takes what is read, so that the compiler cannot leave the reads out. */
  taken = 0;

  constructor(arena: Arena, hasher: Hasher) {
    this.arena = arena;
    this.hasher = hasher;
  }

  /** All keys lie in one memory, which stays as it is until the next round or `end`. */
  begin(table: KeyTable, keys: readonly Slice[], count: number): void {
    const { hasher, starts, ends, hashes, refs } = this;
    this.memory = keys[0].u8;
    this.count = count;
    this.next = 0;
    for (let i = 0; i < count; i++) {
      const { view, start, end } = keys[i];
      starts[i] = start;
      ends[i] = end;
      hashes[i] = hasher.hashRange(view, start, end);
    }
    // A loop of its own, short enough for the waits of several slots to overlap.
    for (let i = 0; i < count; i++) refs[i] = table.peek(hashes[i]);
    this.read(count);
  }

  /** Reads the first lines of the records. */
  private read(count: number): void {
    const { i32: chunks, chunkShift, unitMask } = this.arena;
    const { refs } = this;
    // Where a record at the end of a chunk is short, the next line is that at the chunk's beginning.
    const wordMask = (unitMask << 2) | 3;
    let taken = 0;
    for (let i = 0; i < count; i++) {
      const ref = refs[i];
      if (ref === 0) continue;
      const words = chunks[ref >>> chunkShift];
      const word = (ref & unitMask) << 2;
      taken ^= words[word] ^ words[(word + LINE_WORDS) & wordMask];
    }
    this.taken = taken;
  }

  /** The memory of the keys changes. */
  end(): void {
    this.memory = null;
    this.count = 0;
    this.next = 0;
  }

  /** Hash of a key: known when it is the next one of the round, or that again. */
  hashOf(key: Slice): number {
    if (this.count > 0 && key.u8 === this.memory) {
      const { next, starts, ends, hashes } = this;
      if (next < this.count && key.start === starts[next] && key.end === ends[next]) {
        this.next = next + 1;
        return hashes[next];
      }
      if (next > 0 && key.start === starts[next - 1] && key.end === ends[next - 1]) return hashes[next - 1];
    }
    return this.hasher.hash32(key);
  }
}
