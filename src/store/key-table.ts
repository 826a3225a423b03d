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
 * A segment: word 0 kind and SEGMENT, word 1 overflow segment or 0, then slots, numbered from 1, of two words each.
 * What is asked of every segment at every access is beside the directory, where it stays in the
 * cache, and not in the segment's head, which would be one more line of memory to wait for. Overflow
 * segments have the number of their slots in use in bits 18..8 of word 0.
 */
const SEGMENT_SLOTS = 1024;
const SLOT_MASK = SEGMENT_SLOTS - 1;
const SEGMENT_BYTES = SEGMENT_SLOTS * 8;
const SEGMENT_WORDS = SEGMENT_SLOTS * 2;
/** Tells segments from other blocks of kind Plain. */
const SEGMENT = 1 << 29;
const USED_SHIFT = 8;
const USED_MASK = 0x7ff;
/** Beside the directory: hash bits that are the same in all of the segment; it has overflow segments. */
const DEPTH_MASK = 0x3f;
const CHAINED = 0x80;
/** Slots in use at which a segment splits: 0.82 of it, where a miss takes about 15 probes. */
const SPLIT_AT = 838;
/** Slots in use of a segment, at most on average, of a table made for a known number of keys. */
const RESERVED_SLOTS = 750;
/** Two neighbours that together have fewer become one. */
const MERGE_BELOW = 384;
/** The directory may have this many entries a segment; beyond it segments are chained rather than split. */
const DIRECTORY_PER_SEGMENT = 16;

/** An entry of the directory, of `info` and of `used`. */
const DIRECTORY_ENTRY_BYTES = 7;

/** Where slots of one segment are put together before they are spread over others. */
const scratch = new Int32Array(SEGMENT_WORDS);

const HEADER_WORDS = RECORD_HEADER_BYTES / 4;
const DEADLINE_WORD_SHIFT = 25;
/** Masks of the 0 to 3 last bytes of a key in its last word. */
const TAIL_MASK = Int32Array.of(0, 0xff, 0xffff, 0xffffff);

/** The first word of a block of kind Plain is that of a segment. */
export function isSegment(head: number): boolean {
  return (head & SEGMENT) !== 0;
}

/** Where a slot in use of the segment at `base`, a hash and a record, stands in the words of its chunk; -1 when there is none. */
export function slotOfSegment(words: Int32Array, base: number): number {
  for (let at = base + 2; at < base + SEGMENT_WORDS; at += 2) if (words[at + 1] !== 0) return at;
  return -1;
}

export class KeyTable {
  /** Slots in use. */
  count = 0;
  /** Segments, overflow segments included. */
  segments = 0;

  private readonly arena: Arena;
  /** By the top `depth` bits of a hash: the segment (0 while the table is empty), its depth and CHAINED. */
  private directory = new Int32Array(1);
  private info = new Uint8Array(1);
  /** Slots in use of a segment, at the first of its directory entries. */
  private used = new Uint16Array(1);
  private depth = 0;
  /** Segments (heads of chains) by their depth. */
  private readonly atDepth = new Int32Array(33);
  /** Directory entries that have a segment while a table is made for a known number of keys; -1 otherwise. */
  private reserving = -1;
  /** Directory entries whose segments are dropped already. */
  private dropped = 0;
  /** The unit of work whose journal knows how this table was. */
  private noted = 0;

  constructor(arena: Arena) {
    this.arena = arena;
  }

  /** Bytes of the segments, in the arena. */
  get segmentBytes(): number {
    return this.segments * SEGMENT_BYTES;
  }

  /** Bytes of the directory; segments are in the arena. */
  get directoryBytes(): number {
    return this.directory.length * DIRECTORY_ENTRY_BYTES;
  }

  private newDirectory(entries: number): void {
    this.setDirectory(new Int32Array(entries), new Uint8Array(entries), new Uint16Array(entries));
  }

  /** The arena counts the bytes of all directories. */
  private setDirectory(
    directory: Int32Array<ArrayBuffer>,
    info: Uint8Array<ArrayBuffer>,
    used: Uint16Array<ArrayBuffer>,
  ): void {
    this.arena.directoryBytes += (directory.length - this.directory.length) * DIRECTORY_ENTRY_BYTES;
    this.directory = directory;
    this.info = info;
    this.used = used;
  }

  /**
   * Makes the segments that `count` keys will need; does nothing unless the table is empty. Keys that
   * come in the order of their hashes, as rows do, would otherwise all meet in one segment that
   * splitting does not help.
   */
  reserve(count: number): void {
    while (this.reserveStep(count, Infinity));
  }

  /** The same in steps of so many segments: true as long as there are more, and nothing else may be done until then. */
  reserveStep(count: number, step: number): boolean {
    if (this.reserving < 0) {
      if (this.segments > 0 || count <= RESERVED_SLOTS) return false;
      this.depth = Math.ceil(Math.log2(count / RESERVED_SLOTS));
      this.newDirectory(2 ** this.depth);
      this.reserving = 0;
    }
    const entries = this.directory.length;
    const end = Math.min(entries, this.reserving + step);
    for (; this.reserving < end; this.reserving++) this.link(this.reserving, this.newSegment(), this.depth);
    if (end < entries) return true;
    this.reserving = -1;
    return false;
  }

  /** Before a change: has the journal, if there is one, keep the numbers of this table and its directory. */
  private note(): void {
    const { journal } = this.arena;
    if (journal === null || journal.unit === this.noted) return;
    this.noted = journal.unit;
    const { count, segments, directory, info, used, depth, dropped } = this;
    const atDepth = this.atDepth.slice();
    journal.onRollback(() => {
      this.count = count;
      this.segments = segments;
      this.setDirectory(directory, info, used);
      this.depth = depth;
      this.dropped = dropped;
      this.atDepth.set(atDepth);
    });
  }

  /** Before directory entries [first, end) change, or what stands beside them. */
  private noteEntries(first: number, end: number): void {
    const { journal } = this.arena;
    if (journal === null) return;
    journal.elements(this.directory, first, end);
    journal.elements(this.info, first, end);
    journal.elements(this.used, first, end);
  }

  /** Before the slots in use of a segment change in number. */
  private noteUsed(first: number): void {
    this.note();
    this.arena.journal?.elements(this.used, first);
  }

  /** Before a segment changes. */
  private keep(segment: number): void {
    if (this.arena.journal !== null) this.arena.journal.keep(segment);
  }

  /** Directory entry of a hash. */
  private entryOf(hash: number): number {
    // Two shifts, because a shift by 32 is one by 0.
    return (hash >>> 1) >>> (31 - this.depth);
  }

  /** First directory entry of the segment of a hash. */
  private firstOf(hash: number): number {
    const entry = (hash >>> 1) >>> (31 - this.depth);
    return entry & -(1 << (this.depth - (this.info[entry] & DEPTH_MASK)));
  }

  /** The record of the key at bytes [start, end) of a padded memory, or 0. */
  find(hash: number, view: DataView, start: number, end: number): number {
    const { i32: chunks, chunkShift, unitMask } = this.arena;
    const length = end - start;
    const entry = (hash >>> 1) >>> (31 - this.depth);
    let segment = this.directory[entry];
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
      if ((this.info[entry] & CHAINED) === 0) return 0;
      segment = words[base + 1];
    }
    return 0;
  }

  /** The record of the first slot with that hash in its segment, whatever its key; 0 when there is none. */
  peek(hash: number): number {
    const { i32: chunks, chunkShift, unitMask } = this.arena;
    const segment = this.directory[(hash >>> 1) >>> (31 - this.depth)];
    if (segment === 0) return 0;
    const words = chunks[segment >>> chunkShift];
    const base = (segment & unitMask) << 2;
    let slot = hash & SLOT_MASK;
    if (slot === 0) slot = 1;
    for (;;) {
      const at = base + (slot << 1);
      const ref = words[at + 1];
      if (ref === 0 || words[at] === hash) return ref;
      slot = slot === SLOT_MASK ? 1 : slot + 1;
    }
  }

  /** Whether any key has that hash. */
  hasHash(hash: number): boolean {
    const { i32: chunks, chunkShift, unitMask } = this.arena;
    const entry = (hash >>> 1) >>> (31 - this.depth);
    let segment = this.directory[entry];
    while (segment !== 0) {
      const words = chunks[segment >>> chunkShift];
      const base = (segment & unitMask) << 2;
      let slot = hash & SLOT_MASK;
      if (slot === 0) slot = 1;
      for (; words[base + (slot << 1) + 1] !== 0; slot = slot === SLOT_MASK ? 1 : slot + 1)
        if (words[base + (slot << 1)] === hash) return true;
      if ((this.info[entry] & CHAINED) === 0) return false;
      segment = words[base + 1];
    }
    return false;
  }

  /** Calls `visit` with every record of that hash. */
  forHash(hash: number, visit: (ref: number) => void): void {
    const { arena } = this;
    for (
      let segment = this.directory[this.entryOf(hash)];
      segment !== 0;
      segment = this.overflowOf(segment)
    ) {
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
    if (this.segments === 0) this.begin();
    const first = this.firstOf(hash);
    if (this.used[first] >= SPLIT_AT) {
      this.insertIntoFull(hash, ref);
      return;
    }
    if (this.arena.journal !== null) this.noteUsed(first);
    this.put(this.directory[first], hash, ref);
    this.used[first]++;
    this.count++;
  }

  private begin(): void {
    this.note();
    this.noteEntries(0, 1);
    this.directory[0] = this.newSegment();
    this.info[0] = 0;
    this.used[0] = 0;
    this.atDepth[0] = 1;
  }

  private insertIntoFull(hash: number, ref: number): void {
    this.note();
    const first = this.firstOf(hash);
    let segment = this.overflowOf(this.directory[first]);
    while (segment !== 0 && this.usedOfOverflow(segment) >= SPLIT_AT) segment = this.overflowOf(segment);
    if (segment === 0) {
      if (this.split(hash)) {
        this.insert(hash, ref);
        return;
      }
      segment = this.chain(first);
    }
    this.putOverflow(segment, hash, ref);
    this.count++;
  }

  private put(segment: number, hash: number, ref: number): void {
    const { arena } = this;
    this.keep(segment);
    const words = arena.i32[segment >>> arena.chunkShift];
    const base = (segment & arena.unitMask) << 2;
    let slot = hash & SLOT_MASK;
    if (slot === 0) slot = 1;
    while (words[base + (slot << 1) + 1] !== 0) slot = slot === SLOT_MASK ? 1 : slot + 1;
    words[base + (slot << 1)] = hash;
    words[base + (slot << 1) + 1] = ref;
  }

  private putOverflow(segment: number, hash: number, ref: number): void {
    this.put(segment, hash, ref);
    this.addUsedOfOverflow(segment, 1);
  }

  /** The record moved. */
  replace(hash: number, from: number, to: number): void {
    const { arena } = this;
    for (
      let segment = this.directory[this.entryOf(hash)];
      segment !== 0;
      segment = this.overflowOf(segment)
    ) {
      const slot = this.slotOf(segment, hash, from);
      if (slot === 0) continue;
      this.keep(segment);
      arena.i32[segment >>> arena.chunkShift][((segment & arena.unitMask) << 2) + (slot << 1) + 1] = to;
      return;
    }
    throw new Error('a record that moved is not in the key table');
  }

  /** Moves a record to where `relocate` says, and returns that; 0 when the table does not lead to it. */
  moveRecord(hash: number, ref: number, relocate: (ref: number) => number): number {
    if (!this.has(hash, ref)) return 0;
    const to = relocate(ref);
    this.replace(hash, ref, to);
    return to;
  }

  /** The table leads to this record. */
  has(hash: number, ref: number): boolean {
    for (
      let segment = this.directory[this.entryOf(hash)];
      segment !== 0;
      segment = this.overflowOf(segment)
    ) {
      if (this.slotOf(segment, hash, ref) !== 0) return true;
    }
    return false;
  }

  remove(hash: number, ref: number): void {
    const first = this.firstOf(hash);
    const head = this.directory[first];
    let previous = 0;
    for (let segment = head; segment !== 0; segment = this.overflowOf(segment)) {
      const slot = this.slotOf(segment, hash, ref);
      if (slot !== 0) {
        this.noteUsed(first);
        this.closeSlot(segment, slot);
        this.count--;
        if (previous === 0) this.used[first]--;
        else this.addUsedOfOverflow(segment, -1);
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
    this.keep(segment);
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
  }

  /**
   * Moves a segment to where `relocate` says; `hash` is that of one of its slots. False when the table does
   * not lead to it.
   */
  moveSegment(segment: number, hash: number, relocate: (ref: number) => number): boolean {
    if (this.segments === 0) return false;
    const first = this.firstOf(hash);
    if (this.directory[first] === segment) {
      this.directory.fill(relocate(segment), first, first + this.spanAt(first));
      return true;
    }
    for (let above = this.directory[first]; above !== 0; above = this.overflowOf(above)) {
      if (this.overflowOf(above) !== segment) continue;
      this.setOverflow(above, relocate(segment));
      return true;
    }
    return false;
  }

  /** The same with one that has no slots in use. */
  moveEmptySegment(segment: number, relocate: (ref: number) => number): boolean {
    const entry = this.directory.indexOf(segment);
    return (
      entry >= 0 && this.moveSegment(segment, this.depth === 0 ? 0 : entry << (32 - this.depth), relocate)
    );
  }

  private newSegment(): number {
    const { arena } = this;
    const segment = arena.alloc(SEGMENT_BYTES);
    const words = arena.i32[segment >>> arena.chunkShift];
    const base = (segment & arena.unitMask) << 2;
    words.fill(0, base, base + SEGMENT_WORDS);
    words[base] = (Kind.Plain << KIND_SHIFT) | SEGMENT;
    this.segments++;
    return segment;
  }

  private freeSegment(segment: number): void {
    this.arena.free(segment);
    this.segments--;
  }

  private overflowOf(segment: number): number {
    const { arena } = this;
    return arena.i32[segment >>> arena.chunkShift][((segment & arena.unitMask) << 2) + 1];
  }

  private setOverflow(segment: number, overflow: number): void {
    const { arena } = this;
    this.keep(segment);
    arena.i32[segment >>> arena.chunkShift][((segment & arena.unitMask) << 2) + 1] = overflow;
  }

  private usedOfOverflow(segment: number): number {
    const { arena } = this;
    const head = arena.i32[segment >>> arena.chunkShift][(segment & arena.unitMask) << 2];
    return (head >>> USED_SHIFT) & USED_MASK;
  }

  private addUsedOfOverflow(segment: number, slots: number): void {
    const { arena } = this;
    this.keep(segment);
    arena.i32[segment >>> arena.chunkShift][(segment & arena.unitMask) << 2] += slots << USED_SHIFT;
  }

  /** Directory entries of the segment whose first entry is given. */
  private spanAt(first: number): number {
    return 1 << (this.depth - (this.info[first] & DEPTH_MASK));
  }

  /** Puts a new overflow segment behind the head of a chain. */
  private chain(first: number): number {
    const head = this.directory[first];
    const overflow = this.newSegment();
    this.setOverflow(overflow, this.overflowOf(head));
    this.setOverflow(head, overflow);
    this.noteEntries(first, first + this.spanAt(first));
    this.info.fill(this.info[first] | CHAINED, first, first + this.spanAt(first));
    return overflow;
  }

  /** Gives a segment entries in the directory, and adds it up. */
  private link(first: number, segment: number, depth: number): void {
    const span = 1 << (this.depth - depth);
    this.noteEntries(first, first + span);
    this.directory.fill(segment, first, first + span);
    this.info.fill(depth, first, first + span);
    this.used[first] = 0;
    this.atDepth[depth]++;
  }

  /**
   * Splits the chain of segments that `hash` lies in; false when that would separate nothing, or needs
   * a directory out of proportion.
   */
  private split(hash: number): boolean {
    let first = this.firstOf(hash);
    const segment = this.directory[first];
    const depth = this.info[first] & DEPTH_MASK;
    if (depth === 32) return false;
    const bit = 31 - depth;
    const entries = this.entries(segment);
    let ones = 0;
    for (let i = 0; i < entries.length; i += 2) ones += (entries[i] >>> bit) & 1;
    if (ones === 0 || ones === entries.length / 2) return false;
    if (depth === this.depth) {
      if (this.directory.length * 2 > DIRECTORY_PER_SEGMENT * (this.segments + 4)) return false;
      this.doubleDirectory();
      first *= 2;
    }

    for (let rest = this.overflowOf(segment); rest !== 0;) {
      const next = this.overflowOf(rest);
      this.freeSegment(rest);
      rest = next;
    }
    const { arena } = this;
    const base = (segment & arena.unitMask) << 2;
    this.keep(segment);
    arena.i32[segment >>> arena.chunkShift].fill(0, base + 1, base + SEGMENT_WORDS);
    this.atDepth[depth]--;
    this.link(first, segment, depth + 1);
    this.link(first + this.spanAt(first), this.newSegment(), depth + 1);
    this.count -= entries.length / 2;
    for (let i = 0; i < entries.length; i += 2) this.insertAgain(entries[i], entries[i + 1]);
    return true;
  }

  /** Inserts without splitting. */
  private insertAgain(hash: number, ref: number): void {
    const first = this.firstOf(hash);
    if (this.used[first] < SPLIT_AT) {
      this.noteUsed(first);
      this.put(this.directory[first], hash, ref);
      this.used[first]++;
    } else {
      let segment = this.overflowOf(this.directory[first]);
      if (segment === 0 || this.usedOfOverflow(segment) >= SPLIT_AT) segment = this.chain(first);
      this.putOverflow(segment, hash, ref);
    }
    this.count++;
  }

  /** Copies of all slots in use of a chain: hash, record, hash, record, …; valid until the next call. */
  private entries(head: number): Int32Array {
    const { arena } = this;
    let segments = 0;
    for (let segment = head; segment !== 0; segment = this.overflowOf(segment)) segments++;
    const words = segments * SEGMENT_WORDS;
    const copy = words <= scratch.length ? scratch : new Int32Array(words);
    let to = 0;
    for (let segment = head; segment !== 0; segment = this.overflowOf(segment)) {
      const slots = arena.i32[segment >>> arena.chunkShift];
      const base = (segment & arena.unitMask) << 2;
      for (let at = base + 2; at < base + SEGMENT_WORDS; at += 2) {
        if (slots[at + 1] === 0) continue;
        copy[to++] = slots[at];
        copy[to++] = slots[at + 1];
      }
    }
    return copy.subarray(0, to);
  }

  private doubleDirectory(): void {
    this.resizeDirectory(this.directory.length * 2, (entry) => entry >>> 1);
    // The number of slots in use is at the first entry alone.
    for (let entry = 1; entry < this.used.length; entry += 2) this.used[entry] = 0;
    this.depth++;
  }

  private halveDirectory(): void {
    this.resizeDirectory(this.directory.length / 2, (entry) => entry * 2);
    this.depth--;
  }

  private resizeDirectory(length: number, from: (entry: number) => number): void {
    const { directory, info, used } = this;
    this.newDirectory(length);
    for (let entry = 0; entry < length; entry++) {
      const source = from(entry);
      this.directory[entry] = directory[source];
      this.info[entry] = info[source];
      this.used[entry] = used[source];
    }
  }

  /** After a removal from `segment`, which follows `previous` in its chain: gives back what has become too much. */
  private shrink(hash: number, segment: number, previous: number): void {
    if (previous !== 0) {
      if (this.usedOfOverflow(segment) > 0) return;
      this.setOverflow(previous, this.overflowOf(segment));
      this.freeSegment(segment);
      const first = this.firstOf(hash);
      if (this.overflowOf(this.directory[first]) === 0) {
        this.noteEntries(first, first + this.spanAt(first));
        this.info.fill(this.info[first] & ~CHAINED, first, first + this.spanAt(first));
      }
      return;
    }
    if (this.count === 0) this.clear();
    else if (this.used[this.firstOf(hash)] < MERGE_BELOW) this.merge(hash);
  }

  /** Joins the segment of `hash` with its neighbour, as long as both are nearly empty. */
  private merge(hash: number): void {
    for (;;) {
      const first = this.firstOf(hash);
      const info = this.info[first];
      const span = this.spanAt(first);
      const sibling = first ^ span;
      // Equal bytes: the same depth, and no overflow segments.
      if (info === 0 || (info & CHAINED) !== 0 || this.info[sibling] !== info) return;
      if (this.used[first] + this.used[sibling] >= MERGE_BELOW) return;
      const segment = this.directory[first];
      const entries = this.entries(this.directory[sibling]);
      const used = this.used[first] + entries.length / 2;
      for (let i = 0; i < entries.length; i += 2) this.put(segment, entries[i], entries[i + 1]);
      this.freeSegment(this.directory[sibling]);
      this.noteUsed(first);
      this.noteUsed(sibling);
      this.used[first] = 0;
      this.used[sibling] = 0;
      const pair = first & ~span;
      this.atDepth[info] -= 2;
      this.link(pair, segment, info - 1);
      this.noteUsed(pair);
      this.used[pair] = used;
      while (this.depth > 0 && this.atDepth[this.depth] === 0) this.halveDirectory();
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
    this.note();
    const { arena } = this;
    const head = this.directory[this.dropped];
    const overflow = this.overflowOf(head);
    const segment = overflow === 0 ? head : overflow;
    const words = arena.i32[segment >>> arena.chunkShift];
    const base = (segment & arena.unitMask) << 2;
    for (let at = base + 2; at < base + SEGMENT_WORDS; at += 2) {
      if (words[at + 1] !== 0) visit(words[at + 1]);
    }
    if (overflow !== 0) this.setOverflow(head, this.overflowOf(overflow));
    else this.dropped += this.spanAt(this.dropped);
    this.freeSegment(segment);
    if (this.dropped === this.directory.length) {
      this.newDirectory(1);
      this.depth = 0;
      this.count = 0;
      this.dropped = 0;
      this.atDepth.fill(0);
    }
    return true;
  }

  /**
   * Gives `visit` all records whose hash, unsigned, is in the next stretch from `cursor` on; stretches
   * are made so long that about `count` records, at least, are met, unless `to` comes first. Returns the
   * position after them, 0 at the end. `visit` may remove the record that it is given, and nothing else.
   */
  scan(cursor: number, count: number, visit: (ref: number) => void, to = 2 ** 32): number {
    let position = cursor;
    let met = 0;
    while (met < count && position < to && this.count > 0) {
      const first = this.firstOf(position | 0);
      const span = 2 ** (32 - (this.info[first] & DEPTH_MASK));
      const segmentEnd = Math.floor(position / span) * span + span;
      const width = Math.ceil(((count - met) * span) / Math.max(1, this.used[first]));
      const end = Math.min(segmentEnd, position + width, to);
      met += this.visitRange(this.directory[first], position, end, visit);
      position = end;
      if (position >= 2 ** 32) return 0;
    }
    return this.count > 0 ? position : to % 2 ** 32;
  }

  /**
   * Gives `visit` the hashes of all slots of the segment that the hash `cursor`, unsigned, lies in, whatever they
   * lead to; returns where the next segment begins, 0 at the end. Whoever goes on from there until the end meets
   * every hash that was in the table all the time, perhaps more than once.
   */
  forEachHash(cursor: number, visit: (hash: number) => void): number {
    if (this.count === 0) return 0;
    const { arena } = this;
    const first = this.firstOf(cursor | 0);
    for (let segment = this.directory[first]; segment !== 0; segment = this.overflowOf(segment)) {
      const words = arena.i32[segment >>> arena.chunkShift];
      const base = (segment & arena.unitMask) << 2;
      for (let at = base + 2; at < base + SEGMENT_WORDS; at += 2) if (words[at + 1] !== 0) visit(words[at]);
    }
    const span = 2 ** (32 - (this.info[first] & DEPTH_MASK));
    return (Math.floor(cursor / span) * span + span) % 2 ** 32;
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
      if ((entry & (this.spanAt(entry) - 1)) !== 0) continue;
      const slots = this.usedInChain(entry);
      if (slots === 0 || (this.segments > 1 && random() * SPLIT_AT >= slots)) continue;
      return this.nth(entry, Math.floor(random() * slots));
    }
    // Nearly all segments are nearly empty.
    for (let entry = Math.floor(random() * length); ; entry = (entry + 1) % length) {
      const slots = this.usedInChain(entry);
      if (slots > 0) return this.nth(entry, Math.floor(random() * slots));
    }
  }

  /** Slots in use of the chain whose first directory entry is given. */
  private usedInChain(first: number): number {
    let slots = this.used[first];
    for (
      let segment = this.overflowOf(this.directory[first]);
      segment !== 0;
      segment = this.overflowOf(segment)
    ) {
      slots += this.usedOfOverflow(segment);
    }
    return slots;
  }

  private nth(first: number, n: number): number {
    const { arena } = this;
    for (let segment = this.directory[first]; ; segment = this.overflowOf(segment)) {
      const words = arena.i32[segment >>> arena.chunkShift];
      const base = (segment & arena.unitMask) << 2;
      for (let at = base + 2; at < base + SEGMENT_WORDS; at += 2) {
        if (words[at + 1] !== 0 && n-- === 0) return words[at + 1];
      }
    }
  }
}
