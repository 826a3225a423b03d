/**
 * The deadlines of one keyspace in their order, so that what is due is found without looking at any
 * other key: a tree of (deadline, hash of the key), kept and persisted like any collection. Its root
 * is a record of its own that no key leads to.
 *
 * Each key with a deadline has an entry. Of keys with the same hash and deadline (some thousand pairs when
 * ten million keys expire at midnight) the second has the hash followed by 1, the third by 2, and so on: which
 * entry is whose need not be known, only how many there are, also while not all of the keys are in memory.
 */
import { Slice } from '../bytes/slice.ts';
import {
  FLAG_PERSISTED,
  FLAG_TREE,
  recordHead,
  RECORD_HEADER_BYTES,
  TREE_PREFIX_BYTES,
  TYPE_SYSTEM,
} from './record.ts';
import type { Ground } from './record.ts';
import type { Pages } from './pages.ts';
import { TreeCheck } from './tree-check.ts';
import { NO_VALUE, type KeyedTree } from './tree-keyed.ts';

/** Words of the descriptor: root, height, count, next page number, first free page number. */
const DESCRIPTOR_WORDS = 5;
const PAYLOAD_BYTES = TREE_PREFIX_BYTES + DESCRIPTOR_WORDS * 4;
/** Index of the descriptor in the record, in words: header, no key, the tree's prefix. */
const DESCRIPTOR_WORD = (RECORD_HEADER_BYTES + TREE_PREFIX_BYTES) / 4;

/** Turns the order of unsigned words into that of signed ones. */
const SIGN = 0x80000000 | 0;
const WORD = 2 ** 32;

/** One tree object, shared by the indexes of all keyspaces. */
export interface DeadlineTree {
  pages: Pages;
  tree: KeyedTree;
}

export class ExpiryIndex {
  /** The root's record; 0 until there has been a deadline. */
  record = 0;
  /** Hash of the entry that `first` found, signed. */
  firstHash = 0;

  private readonly ground: Ground;
  private readonly keyspace: number;
  private readonly shared: DeadlineTree;
  /** Hash, and number among the keys of the same hash and deadline if it is not the first. */
  private readonly entry = Slice.from(Buffer.alloc(8));
  private readonly found = new Slice();

  constructor(ground: Ground, keyspace: number, shared: DeadlineTree) {
    this.ground = ground;
    this.keyspace = keyspace;
    this.shared = shared;
  }

  /** Entries: keys with a deadline, and deadlines of values that were damaged. */
  get size(): number {
    return this.record === 0 ? 0 : this.words()[this.at() + 2];
  }

  add(deadline: number, hash: number): void {
    if (this.record === 0) this.create();
    const tree = this.open();
    let number = 0;
    if (this.find(tree, deadline, hash, 0)) {
      number = this.count(tree, deadline, hash);
      this.find(tree, deadline, hash, number);
    }
    const word0 = Math.floor(deadline / WORD);
    tree.insert(word0, (deadline - word0 * WORD) ^ SIGN, this.entry, NO_VALUE);
    this.save();
  }

  /** Takes one of the entries of a hash and deadline out, if there is one. */
  remove(deadline: number, hash: number): void {
    if (this.record === 0) return;
    const tree = this.open();
    if (this.find(tree, deadline, hash, 1))
      this.find(tree, deadline, hash, this.count(tree, deadline, hash) - 1);
    else if (!this.find(tree, deadline, hash, 0)) return;
    tree.remove();
    this.save();
  }

  /** Moves the cursor to the entry of that number, or to where it would be; whether it is there. */
  private find(tree: KeyedTree, deadline: number, hash: number, number: number): boolean {
    const { entry } = this;
    const word0 = Math.floor(deadline / WORD);
    entry.view.setInt32(entry.start, hash);
    entry.view.setInt32(entry.start + 4, number);
    entry.end = entry.start + (number === 0 ? 4 : 8);
    return tree.find(word0, (deadline - word0 * WORD) ^ SIGN, entry);
  }

  /** How many entries a hash and deadline have, at least one. */
  private count(tree: KeyedTree, deadline: number, hash: number): number {
    let there = 0;
    let absent = 1;
    while (this.find(tree, deadline, hash, absent)) {
      there = absent;
      absent *= 2;
    }
    while (absent - there > 1) {
      const middle = (there + absent) >>> 1;
      if (this.find(tree, deadline, hash, middle)) there = middle;
      else absent = middle;
    }
    return absent;
  }

  /** The earliest deadline, its hash in `firstHash`; Infinity when there is none. */
  first(): number {
    if (this.record === 0) return Infinity;
    const tree = this.open();
    if (!tree.select(0)) return Infinity;
    tree.key(this.found);
    this.firstHash = this.found.view.getInt32(this.found.start);
    return tree.wordAt(0) * WORD + ((tree.wordAt(1) ^ SIGN) >>> 0);
  }

  /** Calls `visit` with the hashes of the first entries, up to `count`, whose deadline is not after `now`. */
  forEachDue(now: number, count: number, visit: (hash: number) => void): void {
    if (this.record === 0) return;
    const tree = this.open();
    if (!tree.select(0)) return;
    do {
      if (tree.wordAt(0) * WORD + ((tree.wordAt(1) ^ SIGN) >>> 0) > now) return;
      tree.key(this.found);
      visit(this.found.view.getInt32(this.found.start));
    } while (--count > 0 && tree.next());
  }

  /** Gives the index up; false when there was none. */
  drop(): boolean {
    if (this.record === 0) return false;
    const { arena } = this.ground;
    arena.preserve(this.record);
    this.ground.dropCollection(this.words()[this.at() - TREE_PREFIX_BYTES / 4]);
    arena.free(this.record);
    this.setRecord(0);
    return true;
  }

  /** Null when the tree is sound, else what is wrong: for `ardent check`. */
  check(): string | null {
    if (this.record === 0) return null;
    const tree = this.open();
    const check = new TreeCheck(this.shared.pages);
    return check.keyed(tree) ?? check.finish();
  }

  private create(): void {
    const record = this.newRecord();
    const { arena, collections } = this.ground;
    const i32 = arena.i32[record >>> arena.chunkShift];
    const slot = collections.open(record);
    const id = collections.id[slot];
    const at = this.at() - TREE_PREFIX_BYTES / 4;
    i32[at] = slot;
    i32[at + 1] = id | 0;
    i32[at + 2] = Math.floor(id / WORD);
    this.shared.pages.open(slot, 1, 0);
    this.shared.tree.create();
    this.save();
  }

  private newRecord(): number {
    const { arena } = this.ground;
    const record = arena.alloc(RECORD_HEADER_BYTES + PAYLOAD_BYTES);
    const i32 = arena.i32[record >>> arena.chunkShift];
    const word = (record & arena.unitMask) << 2;
    i32.fill(0, word, word + (RECORD_HEADER_BYTES + PAYLOAD_BYTES) / 4);
    i32[word] = recordHead(TYPE_SYSTEM, FLAG_TREE, 0);
    i32[word + 1] = (this.keyspace << 16) | PAYLOAD_BYTES;
    this.setRecord(record);
    return record;
  }

  /** Moves the root's record to where `relocate` says. False when `record` is not that. */
  move(record: number, relocate: (ref: number) => number): boolean {
    if (record !== this.record) return false;
    this.record = relocate(record);
    this.ground.collections.setRecord(this.words()[this.at() - TREE_PREFIX_BYTES / 4], this.record);
    return true;
  }

  private setRecord(record: number): void {
    const old = this.record;
    this.ground.arena.journal?.onRollback(() => (this.record = old));
    this.record = record;
  }

  /** Takes the root from its row, clean; returns its record, 0 when the row is no root. */
  install(payload: Slice): number {
    if (payload.length !== PAYLOAD_BYTES) return 0;
    const { arena } = this.ground;
    const record = this.newRecord();
    const at = ((record & arena.unitMask) << 4) + RECORD_HEADER_BYTES;
    payload.u8.copy(arena.u8[record >>> arena.chunkShift], at, payload.start, payload.end);
    arena.i32[record >>> arena.chunkShift][(record & arena.unitMask) << 2] |= FLAG_PERSISTED;
    return record;
  }

  private words(): Int32Array {
    const { arena } = this.ground;
    return arena.i32[this.record >>> arena.chunkShift];
  }

  private at(): number {
    return ((this.record & this.ground.arena.unitMask) << 2) + DESCRIPTOR_WORD;
  }

  private open(): KeyedTree {
    const { pages, tree } = this.shared;
    const words = this.words();
    const at = this.at();
    pages.open(words[at - TREE_PREFIX_BYTES / 4], words[at + 3], words[at + 4]);
    tree.open(words[at], words[at + 1], words[at + 2]);
    return tree;
  }

  private save(): void {
    const { pages, tree } = this.shared;
    this.ground.arena.touch(this.record);
    const words = this.words();
    const at = this.at();
    words[at] = tree.root;
    words[at + 1] = tree.height;
    words[at + 2] = tree.count;
    words[at + 3] = pages.next;
    words[at + 4] = pages.freeHead;
  }
}
