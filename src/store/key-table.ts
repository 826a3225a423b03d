/**
 * The keys of one database: an extendible hash table from key to record.
 *
 * The directory leads from the top bits of a key's hash to a segment, a block of 1,023 open-addressed
 * slots `[hash, record]` probed from the hash's low bits on. A full segment splits in two by its next
 * hash bit, so the table grows a segment at a time, and what lies in one segment is a range of hashes:
 * a scan's cursor is a hash, and means the same however the table grows or shrinks.
 *
 * Where splitting does not help (many keys of one hash) a segment is chained to an overflow segment.
 *
 * The table knows records only by their key; whether a record holds a value is its owner's business.
 */
import { Kind, KIND_SHIFT, type Arena } from './arena.ts';
import { FLAG_DEADLINE, KEY_LENGTH_MASK, RECORD_HEADER_BYTES } from './record.ts';

/*
 * A segment. Word 0: kind, bits 18..8 slots in use, 5..0 depth (hash bits that are the same in all of it).
 * Word 1: overflow segment or 0. Then slots, numbered from 1, of two words each.
 */
const SEGMENT_SLOTS = 1024;
const SLOT_MASK = SEGMENT_SLOTS - 1;
const SEGMENT_BYTES = SEGMENT_SLOTS * 8;
const SEGMENT_WORDS = SEGMENT_SLOTS * 2;
const DEPTH_MASK = 0x3f;
const USED_SHIFT = 8;
const USED_MASK = 0x7ff;
/** Slots in use at which a segment splits: 0.82 of it, where a miss takes about 15 probes. */
const SPLIT_AT = 838;
/** Two neighbours that together have fewer become one. */
const MERGE_BELOW = 384;
/** The directory may have this many entries a segment; beyond it segments are chained rather than split. */
const DIRECTORY_PER_SEGMENT = 16;

const HEADER_WORDS = RECORD_HEADER_BYTES / 4;
const DEADLINE_WORD_SHIFT = 25;
/** Masks of the 0 to 3 last bytes of a key in its last word. */
const TAIL_MASK = Int32Array.of(0, 0xff, 0xffff, 0xffffff);

export class KeyTable {
  /** Slots in use. */
  count = 0;
  /** Segments, overflow segments included. */
  segments = 0;

  private readonly arena: Arena;
  /** Segment by the top `depth` bits of a hash; 0 where there is none yet (only while the table is empty). */
  private directory = new Int32Array(1);
  private depth = 0;
  /** Segments (heads of chains) by their depth. */
  private readonly atDepth = new Int32Array(33);
  /** Directory entries whose segments are dropped already. */
  private dropped = 0;

  constructor(arena: Arena) {
    this.arena = arena;
  }

  /** Bytes of the directory; segments are in the arena. */
  get directoryBytes(): number {
    return this.directory.length * 4;
  }

  private segmentOf(hash: number): number {
    // Two shifts, because a shift by 32 is one by 0.
    return this.directory[(hash >>> 1) >>> (31 - this.depth)];
  }

  /** The record of the key at bytes [start, end) of a padded memory, or 0. */
  find(hash: number, view: DataView, start: number, end: number): number {
    const { i32: chunks, chunkShift, unitMask } = this.arena;
    const length = end - start;
    let segment = this.directory[(hash >>> 1) >>> (31 - this.depth)];
    while (segment !== 0) {
      const words = chunks[segment >>> chunkShift];
      const base = (segment & unitMask) << 2;
      let slot = hash & SLOT_MASK;
      if (slot === 0) slot = 1;
      for (;;) {
        const at = base + (slot << 1);
        const ref = words[at + 1];
        if (ref === 0) break;
        if (words[at] === hash) {
          const record = chunks[ref >>> chunkShift];
          let word = (ref & unitMask) << 2;
          const head = record[word];
          if ((head & KEY_LENGTH_MASK) === length) {
            word += HEADER_WORDS + ((head & FLAG_DEADLINE) >>> DEADLINE_WORD_SHIFT);
            let byte = start;
            const last = end - 3;
            while (byte < last && record[word] === view.getInt32(byte, true)) {
              byte += 4;
              word++;
            }
            if (byte >= last) {
              const tail = end - byte;
              if (tail === 0 || ((record[word] ^ view.getInt32(byte, true)) & TAIL_MASK[tail]) === 0)
                return ref;
            }
          }
        }
        slot = slot === SLOT_MASK ? 1 : slot + 1;
      }
      segment = words[base + 1];
    }
    return 0;
  }

  /** Calls `visit` with every record of that hash. */
  forHash(hash: number, visit: (ref: number) => void): void {
    const { arena } = this;
    for (let segment = this.segmentOf(hash); segment !== 0; segment = this.overflowOf(segment)) {
      const words = arena.i32[segment >>> arena.chunkShift];
      const base = (segment & arena.unitMask) << 2;
      let slot = hash & SLOT_MASK;
      if (slot === 0) slot = 1;
      for (; words[base + (slot << 1) + 1] !== 0; slot = slot === SLOT_MASK ? 1 : slot + 1) {
        if (words[base + (slot << 1)] === hash) visit(words[base + (slot << 1) + 1]);
      }
    }
  }

  /** Adds a record whose key is absent. */
  insert(hash: number, ref: number): void {
    if (this.segments === 0) {
      this.directory[0] = this.newSegment(0);
      this.atDepth[0] = 1;
    }
    let segment = this.segmentOf(hash);
    while (this.used(segment) >= SPLIT_AT) {
      const overflow = this.overflowOf(segment);
      if (overflow !== 0) segment = overflow;
      else if (this.split(hash)) segment = this.segmentOf(hash);
      else segment = this.chain(segment);
    }
    this.put(segment, hash, ref);
    this.count++;
  }

  private put(segment: number, hash: number, ref: number): void {
    const { arena } = this;
    const words = arena.i32[segment >>> arena.chunkShift];
    const base = (segment & arena.unitMask) << 2;
    let slot = hash & SLOT_MASK;
    if (slot === 0) slot = 1;
    while (words[base + (slot << 1) + 1] !== 0) slot = slot === SLOT_MASK ? 1 : slot + 1;
    words[base + (slot << 1)] = hash;
    words[base + (slot << 1) + 1] = ref;
    words[base] += 1 << USED_SHIFT;
  }

  /** The record moved. */
  replace(hash: number, from: number, to: number): void {
    const { arena } = this;
    for (let segment = this.segmentOf(hash); segment !== 0; segment = this.overflowOf(segment)) {
      const slot = this.slotOf(segment, hash, from);
      if (slot === 0) continue;
      arena.i32[segment >>> arena.chunkShift][((segment & arena.unitMask) << 2) + (slot << 1) + 1] = to;
      return;
    }
    throw new Error('a record that moved is not in the key table');
  }

  /** The table leads to this record. */
  has(hash: number, ref: number): boolean {
    for (let segment = this.segmentOf(hash); segment !== 0; segment = this.overflowOf(segment)) {
      if (this.slotOf(segment, hash, ref) !== 0) return true;
    }
    return false;
  }

  remove(hash: number, ref: number): void {
    let previous = 0;
    for (let segment = this.segmentOf(hash); segment !== 0; segment = this.overflowOf(segment)) {
      const slot = this.slotOf(segment, hash, ref);
      if (slot !== 0) {
        this.closeSlot(segment, slot);
        this.count--;
        this.shrink(hash, segment, previous);
        return;
      }
      previous = segment;
    }
    throw new Error('a record to remove is not in the key table');
  }

  /** Slot of a record in one segment, 0 when it is not there. */
  private slotOf(segment: number, hash: number, ref: number): number {
    const { arena } = this;
    const words = arena.i32[segment >>> arena.chunkShift];
    const base = (segment & arena.unitMask) << 2;
    let slot = hash & SLOT_MASK;
    if (slot === 0) slot = 1;
    for (;;) {
      const found = words[base + (slot << 1) + 1];
      if (found === ref) return slot;
      if (found === 0) return 0;
      slot = slot === SLOT_MASK ? 1 : slot + 1;
    }
  }

  /** Empties a slot and moves up what was pushed past it, so that probing needs no tombstones. */
  private closeSlot(segment: number, slot: number): void {
    const { arena } = this;
    const words = arena.i32[segment >>> arena.chunkShift];
    const base = (segment & arena.unitMask) << 2;
    let hole = slot;
    for (;;) {
      slot = slot === SLOT_MASK ? 1 : slot + 1;
      const at = base + (slot << 1);
      if (words[at + 1] === 0) break;
      let home = words[at] & SLOT_MASK;
      if (home === 0) home = 1;
      // Distances around the ring of 1,023 slots.
      const fromHome = slot >= home ? slot - home : slot - home + SLOT_MASK;
      const fromHole = slot >= hole ? slot - hole : slot - hole + SLOT_MASK;
      if (fromHome >= fromHole) {
        words[base + (hole << 1)] = words[at];
        words[base + (hole << 1) + 1] = words[at + 1];
        hole = slot;
      }
    }
    words[base + (hole << 1)] = 0;
    words[base + (hole << 1) + 1] = 0;
    words[base] -= 1 << USED_SHIFT;
  }

  private newSegment(depth: number): number {
    const { arena } = this;
    const segment = arena.alloc(SEGMENT_BYTES);
    const words = arena.i32[segment >>> arena.chunkShift];
    const base = (segment & arena.unitMask) << 2;
    words.fill(0, base, base + SEGMENT_WORDS);
    words[base] = (Kind.Plain << KIND_SHIFT) | depth;
    this.segments++;
    return segment;
  }

  private freeSegment(segment: number): void {
    this.arena.free(segment);
    this.segments--;
  }

  private head(segment: number): number {
    const { arena } = this;
    return arena.i32[segment >>> arena.chunkShift][(segment & arena.unitMask) << 2];
  }

  private used(segment: number): number {
    return (this.head(segment) >>> USED_SHIFT) & USED_MASK;
  }

  private depthOf(segment: number): number {
    return this.head(segment) & DEPTH_MASK;
  }

  private setDepth(segment: number, depth: number): void {
    const { arena } = this;
    const words = arena.i32[segment >>> arena.chunkShift];
    const base = (segment & arena.unitMask) << 2;
    words[base] = (words[base] & ~DEPTH_MASK) | depth;
  }

  private overflowOf(segment: number): number {
    const { arena } = this;
    return arena.i32[segment >>> arena.chunkShift][((segment & arena.unitMask) << 2) + 1];
  }

  private setOverflow(segment: number, overflow: number): void {
    const { arena } = this;
    arena.i32[segment >>> arena.chunkShift][((segment & arena.unitMask) << 2) + 1] = overflow;
  }

  /** A new overflow segment behind the last one of a chain. */
  private chain(segment: number): number {
    const overflow = this.newSegment(this.depthOf(segment));
    this.setOverflow(segment, overflow);
    return overflow;
  }

  /**
   * Splits the chain of segments that `hash` lies in; false when that would separate nothing, or needs
   * a directory out of proportion.
   */
  private split(hash: number): boolean {
    const segment = this.segmentOf(hash);
    const depth = this.depthOf(segment);
    if (depth === 32) return false;
    const bit = 31 - depth;
    const entries = this.entries(segment);
    let ones = 0;
    for (let i = 0; i < entries.length; i += 2) ones += (entries[i] >>> bit) & 1;
    if (ones === 0 || ones === entries.length / 2) return false;
    if (depth === this.depth) {
      if (this.directory.length * 2 > DIRECTORY_PER_SEGMENT * (this.segments + 4)) return false;
      this.doubleDirectory();
    }

    for (let rest = this.overflowOf(segment); rest !== 0;) {
      const next = this.overflowOf(rest);
      this.freeSegment(rest);
      rest = next;
    }
    const { arena } = this;
    const words = arena.i32[segment >>> arena.chunkShift];
    const base = (segment & arena.unitMask) << 2;
    words.fill(0, base, base + SEGMENT_WORDS);
    words[base] = (Kind.Plain << KIND_SHIFT) | (depth + 1);
    const sibling = this.newSegment(depth + 1);
    this.atDepth[depth]--;
    this.atDepth[depth + 1] += 2;

    let low = segment;
    let high = sibling;
    for (let i = 0; i < entries.length; i += 2) {
      if (((entries[i] >>> bit) & 1) === 0) {
        if (this.used(low) >= SPLIT_AT) low = this.chain(low);
        this.put(low, entries[i], entries[i + 1]);
      } else {
        if (this.used(high) >= SPLIT_AT) high = this.chain(high);
        this.put(high, entries[i], entries[i + 1]);
      }
    }
    const span = 1 << (this.depth - depth - 1);
    const first = ((hash >>> 1) >>> (31 - depth)) * 2 * span + span;
    this.directory.fill(sibling, first, first + span);
    return true;
  }

  /** Copies of all slots in use of a chain: hash, record, hash, record, … */
  private entries(segment: number): Int32Array {
    const { arena } = this;
    const copy = new Int32Array(this.usedInChain(segment) * 2);
    let to = 0;
    for (let s = segment; s !== 0; s = this.overflowOf(s)) {
      const words = arena.i32[s >>> arena.chunkShift];
      const base = (s & arena.unitMask) << 2;
      for (let at = base + 2; at < base + SEGMENT_WORDS; at += 2) {
        if (words[at + 1] === 0) continue;
        copy[to++] = words[at];
        copy[to++] = words[at + 1];
      }
    }
    return copy;
  }

  private doubleDirectory(): void {
    const old = this.directory;
    const doubled = new Int32Array(old.length * 2);
    for (let i = 0; i < old.length; i++) doubled[2 * i] = doubled[2 * i + 1] = old[i];
    this.directory = doubled;
    this.depth++;
  }

  /** After a removal from `segment`, which follows `previous` in its chain: gives back what has become too much. */
  private shrink(hash: number, segment: number, previous: number): void {
    const used = this.used(segment);
    if (previous !== 0) {
      if (used > 0) return;
      this.setOverflow(previous, this.overflowOf(segment));
      this.freeSegment(segment);
      return;
    }
    if (this.count === 0) {
      this.clear();
      return;
    }
    // Looked at now and then only: the neighbour's head is memory that nobody has touched lately.
    if (used < MERGE_BELOW && (used & 31) === 0) this.merge(hash);
  }

  /** Joins the segment of `hash` with its neighbour, as long as both are nearly empty. */
  private merge(hash: number): void {
    for (;;) {
      const segment = this.segmentOf(hash);
      const depth = this.depthOf(segment);
      if (depth === 0) return;
      const span = 1 << (this.depth - depth);
      const first = ((hash >>> 1) >>> (31 - this.depth)) & ~(span - 1);
      const sibling = this.directory[first ^ span];
      if (this.depthOf(sibling) !== depth) return;
      if (this.overflowOf(segment) !== 0 || this.overflowOf(sibling) !== 0) return;
      if (this.used(segment) + this.used(sibling) >= MERGE_BELOW) return;
      const entries = this.entries(sibling);
      for (let i = 0; i < entries.length; i += 2) this.put(segment, entries[i], entries[i + 1]);
      this.freeSegment(sibling);
      this.setDepth(segment, depth - 1);
      const pair = first & ~span;
      this.directory.fill(segment, pair, pair + 2 * span);
      this.atDepth[depth] -= 2;
      this.atDepth[depth - 1]++;
      if (this.atDepth[this.depth] === 0) this.halveDirectory();
    }
  }

  private halveDirectory(): void {
    while (this.depth > 0 && this.atDepth[this.depth] === 0) {
      const half = new Int32Array(this.directory.length / 2);
      for (let i = 0; i < half.length; i++) half[i] = this.directory[2 * i];
      this.directory = half;
      this.depth--;
    }
  }

  /** Frees all segments. The records are the caller's. */
  private clear(): void {
    while (this.dropSegment(() => {}));
  }

  /**
   * Gives the records of one segment to `visit` and frees it; false when there was none. For a table
   * that is given up: until its last segment is dropped it serves nothing else, then it is empty.
   */
  dropSegment(visit: (ref: number) => void): boolean {
    if (this.segments === 0) return false;
    const { arena } = this;
    const head = this.directory[this.dropped];
    let part = head;
    let before = 0;
    for (let next = this.overflowOf(part); next !== 0; next = this.overflowOf(part)) {
      before = part;
      part = next;
    }
    const words = arena.i32[part >>> arena.chunkShift];
    const base = (part & arena.unitMask) << 2;
    for (let at = base + 2; at < base + SEGMENT_WORDS; at += 2) {
      if (words[at + 1] !== 0) visit(words[at + 1]);
    }
    const span = 2 ** (this.depth - this.depthOf(head));
    this.freeSegment(part);
    if (before !== 0) {
      this.setOverflow(before, 0);
      return true;
    }
    this.dropped += span;
    if (this.dropped === this.directory.length) {
      this.directory = new Int32Array(1);
      this.depth = 0;
      this.count = 0;
      this.dropped = 0;
      this.atDepth.fill(0);
    }
    return true;
  }

  /**
   * Gives `visit` all records whose hash, unsigned, is in the next stretch from `cursor` on; stretches
   * are made so long that about `count` records, at least, are met. Returns the position after them,
   * 0 at the end. `visit` may remove the record that it is given, and nothing else.
   */
  scan(cursor: number, count: number, visit: (ref: number) => void): number {
    let position = cursor;
    let met = 0;
    while (met < count && this.count > 0) {
      const segment = this.segmentOf(position | 0);
      const depth = this.depthOf(segment);
      const span = 2 ** (32 - depth);
      const segmentEnd = Math.floor(position / span) * span + span;
      const used = Math.max(1, this.used(segment));
      const width = Math.ceil(((count - met) * span) / used);
      const end = Math.min(segmentEnd, position + width);
      met += this.visitRange(segment, position, end, visit);
      position = end;
      if (position >= 2 ** 32) return 0;
    }
    return this.count > 0 ? position : 0;
  }

  private visitRange(head: number, from: number, to: number, visit: (ref: number) => void): number {
    const { arena } = this;
    const found: number[] = [];
    for (let segment = head; segment !== 0; segment = this.overflowOf(segment)) {
      const words = arena.i32[segment >>> arena.chunkShift];
      const base = (segment & arena.unitMask) << 2;
      for (let at = base + 2; at < base + SEGMENT_WORDS; at += 2) {
        if (words[at + 1] === 0) continue;
        const hash = words[at] >>> 0;
        if (hash >= from && hash < to) found.push(words[at + 1]);
      }
    }
    for (const ref of found) visit(ref);
    return found.length;
  }

  /**
   * A record picked at random, each with nearly the same chance; 0 when there is none. `random` gives
   * numbers in [0, 1).
   */
  random(random: () => number): number {
    if (this.count === 0) return 0;
    const length = this.directory.length;
    // Every chain has the same chance to be looked at, and is taken in proportion to what is in it.
    for (let attempt = 0; attempt < 256; attempt++) {
      const entry = Math.floor(random() * length);
      const head = this.directory[entry];
      if ((entry & ((1 << (this.depth - this.depthOf(head))) - 1)) !== 0) continue;
      const slots = this.usedInChain(head);
      if (slots === 0 || (this.segments > 1 && random() * SPLIT_AT >= slots)) continue;
      return this.nth(head, Math.floor(random() * slots));
    }
    // Nearly all segments are nearly empty.
    for (let entry = Math.floor(random() * length); ; entry = (entry + 1) % length) {
      const slots = this.usedInChain(this.directory[entry]);
      if (slots > 0) return this.nth(this.directory[entry], Math.floor(random() * slots));
    }
  }

  private usedInChain(head: number): number {
    let slots = 0;
    for (let segment = head; segment !== 0; segment = this.overflowOf(segment)) slots += this.used(segment);
    return slots;
  }

  private nth(segment: number, n: number): number {
    const { arena } = this;
    while (n >= this.used(segment)) {
      n -= this.used(segment);
      segment = this.overflowOf(segment);
    }
    const words = arena.i32[segment >>> arena.chunkShift];
    const base = (segment & arena.unitMask) << 2;
    for (let at = base + 2; ; at += 2) {
      if (words[at + 1] !== 0 && n-- === 0) return words[at + 1];
    }
  }
}
