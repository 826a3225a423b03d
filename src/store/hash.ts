/**
 * The keyed hash that keys, and the members of sets and hashes, are ordered by: HalfSipHash-1-3 with a
 * 64-bit key and a 32-bit result (Aumasson, Bernstein: SipHash; the half variant is made for 32-bit
 * arithmetic). Without the key nobody can make many strings with one hash.
 */
import type { Slice } from '../bytes/slice.ts';

/** Initial state of HalfSipHash, from its reference. */
const V2 = 0x6c796765;
const V3 = 0x74656462;

export class Hasher {
  /** The key's halves, as signed 32-bit integers; part of the meta row. */
  key0: number;
  key1: number;

  constructor(key0: number, key1: number) {
    this.key0 = key0 | 0;
    this.key1 = key1 | 0;
  }

  /** Changes the key; nothing may have been ordered by the old one. */
  rekey(key0: number, key1: number): void {
    this.key0 = key0 | 0;
    this.key1 = key1 | 0;
  }

  /** Another hash function whose key follows from this one's. */
  derive(n: number): Hasher {
    return new Hasher(this.hashWords(n, 0), this.hashWords(n, 1));
  }

  private hashWords(a: number, b: number): number {
    const view = new DataView(new ArrayBuffer(8));
    view.setInt32(0, a);
    view.setInt32(4, b);
    return this.hashRange(view, 0, 8);
  }

  /** Hash of the slice's bytes, a signed 32-bit integer. Reads up to 3 bytes past its end. */
  hash32(slice: Slice): number {
    return this.hashRange(slice.view, slice.start, slice.end);
  }

  /** The same for bytes [start, end) of a padded memory. */
  hashRange(view: DataView, start: number, end: number): number {
    const length = end - start;
    let v0 = this.key0;
    let v1 = this.key1;
    let v2 = V2 ^ v0;
    let v3 = V3 ^ v1;
    const tail = (end - start) & 3;
    let m = 0;
    for (const last = end - tail; start < last; start += 4) {
      m = view.getInt32(start, true);
      v3 ^= m;
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
      v0 ^= m;
    }
    m = length << 24;
    if (tail !== 0) m |= view.getInt32(start, true) & (0xffffff >>> (24 - (tail << 3)));
    v3 ^= m;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= m;
    v2 ^= 0xff;
    for (let round = 0; round < 3; round++) {
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
    }
    return v1 ^ v3;
  }
}
