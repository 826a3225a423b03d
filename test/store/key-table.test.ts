import { describe, expect, it } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { Arena } from '../../src/store/arena.ts';
import { Hasher } from '../../src/store/hash.ts';
import { KeyTable } from '../../src/store/key-table.ts';
import { KEY_LENGTH_MASK, keyOffset, payloadOffset, recordHead } from '../../src/store/record.ts';
import { Random, seeds } from './random.ts';

const hasher = new Hasher(0x01234567, 0x89abcdef);

/** A table with the records its tests put in, as small as records can be. */
class Keys {
  readonly arena = new Arena({ chunkBytes: 1 << 20 });
  readonly table = new KeyTable(this.arena);
  readonly hash: (key: Slice) => number;
  readonly atStart = this.arena.blockBytes;

  constructor(hash: (key: Slice) => number = (key) => hasher.hash32(key)) {
    this.hash = hash;
  }

  find(text: string): number {
    const key = Slice.from(text);
    return this.table.find(this.hash(key), key.view, key.start, key.end);
  }

  add(text: string): void {
    const key = Slice.from(text);
    const { arena } = this;
    const head = recordHead(1, 0, key.length);
    const ref = arena.alloc(payloadOffset(head));
    const word = (ref & arena.unitMask) << 2;
    arena.i32[ref >>> arena.chunkShift][word] = head;
    key.u8.copy(arena.u8[ref >>> arena.chunkShift], (word << 2) + keyOffset(head), key.start, key.end);
    this.table.insert(this.hash(key), ref);
  }

  remove(text: string): boolean {
    const ref = this.find(text);
    if (ref === 0) return false;
    this.table.remove(this.hash(Slice.from(text)), ref);
    this.arena.free(ref);
    return true;
  }

  keyOf(ref: number): string {
    const { arena } = this;
    const word = (ref & arena.unitMask) << 2;
    const head = arena.i32[ref >>> arena.chunkShift][word];
    const start = (word << 2) + keyOffset(head);
    return arena.u8[ref >>> arena.chunkShift].latin1Slice(start, start + (head & KEY_LENGTH_MASK));
  }

  scanAll(count: number): string[] {
    const keys: string[] = [];
    let cursor = 0;
    do cursor = this.table.scan(cursor, count, (ref) => keys.push(this.keyOf(ref)));
    while (cursor !== 0);
    return keys;
  }
}

describe('key table', () => {
  it.each(seeds(1))(
    'holds what a set holds, under random insertions and removals, and gives all memory back (seed %i)',
    (seed) => {
      const random = new Random(seed);
      const keys = new Keys();
      const model = new Set<string>();
      for (let round = 0; round < 6; round++) {
        const growing = round % 2 === 0;
        for (let i = 0; i < 30_000; i++) {
          const key =
            'key:' +
            random
              .below(12_000)
              .toString(36)
              .repeat(random.below(3) + 1);
          if (random.below(10) < (growing ? 8 : 2)) {
            if (!model.has(key)) keys.add(key);
            model.add(key);
          } else {
            expect(keys.remove(key)).toBe(model.delete(key));
          }
          if (i % 64 === 0) {
            const probe = 'key:' + random.below(12_000).toString(36);
            expect(keys.find(probe) !== 0).toBe(model.has(probe));
          }
        }
        expect(keys.table.count).toBe(model.size);
        expect(keys.scanAll(100).sort()).toEqual([...model].sort());
      }
      for (const key of model) expect(keys.keyOf(keys.find(key))).toBe(key);
      for (const key of model) keys.remove(key);
      expect(keys.table.count).toBe(0);
      expect(keys.table.segments).toBe(0);
      expect(keys.arena.blockBytes).toBe(keys.atStart);
      expect(keys.arena.slabBytes).toBe(0);
    },
  );

  it('tells keys apart whose bytes differ in one place', () => {
    const keys = new Keys(() => 7);
    const texts: string[] = [];
    for (let length = 0; length < 12; length++) {
      texts.push('a'.repeat(length));
      for (let at = 0; at < length; at++) texts.push('a'.repeat(at) + 'b' + 'a'.repeat(length - at - 1));
    }
    for (const text of texts) {
      expect(keys.find(text)).toBe(0);
      keys.add(text);
    }
    for (const text of texts) expect(keys.keyOf(keys.find(text))).toBe(text);
  });

  it('chains segments for keys of one hash, and unchains them', () => {
    const keys = new Keys((key) => (key.u8[key.start] === 120 ? 0x5eed1234 : hasher.hash32(key)));
    for (let i = 0; i < 10_000; i++) keys.add('x' + i);
    for (let i = 0; i < 10_000; i++) keys.add('y' + i);
    for (let i = 0; i < 10_000; i += 7) {
      expect(keys.keyOf(keys.find('x' + i))).toBe('x' + i);
      expect(keys.keyOf(keys.find('y' + i))).toBe('y' + i);
    }
    expect(keys.scanAll(10).length).toBe(20_000);
    expect(keys.table.directoryBytes).toBeLessThan(64 * keys.table.segments + 1024);
    for (let i = 0; i < 10_000; i++) expect(keys.remove('x' + i)).toBe(true);
    for (let i = 0; i < 10_000; i++) expect(keys.remove('y' + i)).toBe(true);
    expect(keys.arena.blockBytes).toBe(0);
  });

  it('bounds the directory when hashes differ in their last bits only', () => {
    const hashOf = (key: Slice): number => Number(key.latin1().slice(1)) % 4096;
    const keys = new Keys(hashOf);
    for (let i = 0; i < 20_000; i++) keys.add('k' + i);
    for (let i = 0; i < 20_000; i += 11) expect(keys.keyOf(keys.find('k' + i))).toBe('k' + i);
    expect(keys.table.directoryBytes).toBeLessThan(64 * keys.table.segments + 1024);
    expect(new Set(keys.scanAll(50)).size).toBe(20_000);
  });

  it.each(seeds(1))(
    'meets every key that stays, however the table changes during a scan (seed %i)',
    (seed) => {
      const random = new Random(seed);
      const keys = new Keys();
      const staying = new Set<string>();
      for (let i = 0; i < 3000; i++) {
        keys.add('stay' + i);
        staying.add('stay' + i);
      }
      const passing: string[] = [];
      const met = new Set<string>();
      let cursor = 0;
      let call = 0;
      do {
        cursor = keys.table.scan(cursor, 20, (ref) => met.add(keys.keyOf(ref)));
        call++;
        for (let i = 0; i < 200; i++) {
          if (call < 60) {
            passing.push(`pass${call}.${i}`);
            keys.add(passing.at(-1) as string);
          } else if (passing.length > 0) {
            keys.remove(passing.splice(random.below(passing.length), 1)[0]);
          }
        }
      } while (cursor !== 0 && call < 10_000);
      expect(cursor).toBe(0);
      for (const key of staying) expect(met.has(key)).toBe(true);
    },
  );

  it('gives a scan about as many keys as it asks for', () => {
    const keys = new Keys();
    for (let i = 0; i < 5000; i++) keys.add('k' + i);
    let calls = 0;
    let cursor = 0;
    do {
      let met = 0;
      cursor = keys.table.scan(cursor, 10, () => met++);
      if (cursor !== 0) expect(met).toBeGreaterThanOrEqual(10);
      expect(met).toBeLessThan(60);
      calls++;
    } while (cursor !== 0);
    expect(calls).toBeGreaterThan(200);
  });

  it.each(seeds(1))('picks at random without favourites (seed %i)', (seed) => {
    for (const size of [1, 10, 3000]) {
      const random = new Random(seed);
      const keys = new Keys();
      for (let i = 0; i < size; i++) keys.add('k' + i);
      const picks = new Map<string, number>();
      const draws = size * 40;
      for (let i = 0; i < draws; i++) {
        const key = keys.keyOf(keys.table.random(() => random.real()));
        picks.set(key, (picks.get(key) ?? 0) + 1);
      }
      expect(picks.size).toBe(size);
      // Chi-squared: mean size - 1, standard deviation sqrt(2 size).
      let chi = 0;
      for (const n of picks.values()) chi += (n - 40) ** 2 / 40;
      expect(chi).toBeLessThan(size + 6 * Math.sqrt(2 * size) + 6);
    }
  });

  it('can be given up a segment at a time', () => {
    const keys = new Keys();
    for (let i = 0; i < 5000; i++) keys.add('k' + i);
    let visited = 0;
    let slices = 0;
    while (keys.table.dropSegment((ref) => (visited++, keys.arena.free(ref)))) slices++;
    expect(visited).toBe(5000);
    expect(slices).toBeGreaterThan(4);
    expect(keys.arena.slabBytes).toBe(0);
    keys.add('again');
    expect(keys.find('again')).not.toBe(0);
    expect(keys.table.count).toBe(1);
  });

  it('works at the upper end of references', () => {
    const arena = new Arena({ chunkBytes: 1 << 20, firstChunk: 2 ** 16 - 3 });
    const table = new KeyTable(arena);
    const keys = new Keys();
    const refs: number[] = [];
    for (let i = 0; i < 3000; i++) {
      const key = Slice.from('key' + i);
      const head = recordHead(1, 0, key.length);
      const ref = arena.alloc(payloadOffset(head));
      const word = (ref & arena.unitMask) << 2;
      arena.i32[ref >>> arena.chunkShift][word] = head;
      key.u8.copy(arena.u8[ref >>> arena.chunkShift], (word << 2) + keyOffset(head), key.start, key.end);
      table.insert(keys.hash(key), ref);
      refs.push(ref);
    }
    expect(refs[0]).toBeLessThan(0);
    for (let i = 0; i < 3000; i++) {
      const key = Slice.from('key' + i);
      expect(table.find(keys.hash(key), key.view, key.start, key.end)).toBe(refs[i]);
    }
  });

  it('takes keys in the order of their hashes when it was made for their number', () => {
    const keys = new Keys();
    const texts = Array.from({ length: 20_000 }, (_, i) => `key:${i}`);
    texts.sort((a, b) => (keys.hash(Slice.from(a)) >>> 0) - (keys.hash(Slice.from(b)) >>> 0));
    keys.table.reserve(texts.length);
    const { segments } = keys.table;
    for (const text of texts) keys.add(text);
    expect(keys.table.segments).toBe(segments);
    expect(segments).toBeLessThanOrEqual((2 * texts.length) / 600);
    expect(keys.scanAll(100).sort()).toEqual([...texts].sort());
    for (const text of texts) expect(keys.remove(text)).toBe(true);
    expect(keys.table.count).toBe(0);
    expect(keys.scanAll(100)).toEqual([]);
  });
});
