import { Slice } from '../bytes/slice.ts';
import { showKey } from '../rdb/error.ts';
import type { Visitor, ZSet } from './api.ts';
import { Collection } from './collection.ts';
import { detachedPayload, itemBytes, PackedItems } from './packed.ts';
import { Pages } from './pages.ts';
import { ValueRef, type Ground } from './record.ts';
import { scanTree } from './scan.ts';
import { joinScore, scoreWords, splitScore, stepAbove } from './score.ts';
import type { TreeCheck } from './tree-check.ts';
import { KeyedTree, NO_VALUE } from './tree-keyed.ts';

/** A range of ranks that is at least this part of all is removed in one walk over all members. */
const WALK_SHARE = 16;

/** Bytes of the score before a packed member. */
const SCORE_BYTES = 8;

/**
 * A sorted set: members packed in the order of (score, bytes), each after its score; then two trees,
 * one in that order and one of (hash, member) with the score.
 */
export class ZSetHandle extends Collection implements ZSet {
  changed = false;
  private readonly packed: PackedItems;
  private readonly byScore: KeyedTree;
  private readonly byMember: KeyedTree;
  private readonly member = new Slice();

  constructor(ground: Ground) {
    const value = new ValueRef(ground);
    const pages = new Pages(ground.collections);
    const byScore = new KeyedTree(pages, 2);
    const byMember = new KeyedTree(pages, 1, 2);
    super(value, byScore, byMember);
    this.packed = new PackedItems(value, SCORE_BYTES, 1);
    this.byScore = byScore;
    this.byMember = byMember;
  }

  get size(): number {
    return this.value.isTree ? this.byScore.count : this.packed.count;
  }

  private findMember(member: Slice): boolean {
    return this.byMember.find(this.value.ground.hasher.hash32(member), 0, member);
  }

  score(member: Slice): number | undefined {
    if (this.value.isTree) {
      if (!this.findMember(member)) return undefined;
      return joinScore(this.byMember.payload(0), this.byMember.payload(1));
    }
    const offset = this.packed.find(member);
    return offset < 0 ? undefined : this.packedScore(offset);
  }

  private packedScore(offset: number): number {
    return this.value.view.getFloat64(this.value.start + offset, true);
  }

  set(member: Slice, score: number): boolean {
    if (!this.value.isTree) {
      const old = this.packed.find(member);
      if (old >= 0) {
        this.changed = this.packedScore(old) !== score;
        if (this.changed) this.movePacked(old, member, score);
        return false;
      }
      this.changed = true;
      if (this.addPacked(member, score)) return true;
      this.moveToTrees(2 * (member.end - member.start));
    }
    const isNew = this.setInTrees(member, score);
    this.save();
    return isNew;
  }

  private setInTrees(member: Slice, score: number): boolean {
    const { byScore, byMember } = this;
    const hash = this.value.ground.hasher.hash32(member);
    // Both trees change or neither.
    byScore.reserveFor(2 * (member.end - member.start));
    const found = byMember.find(hash, 0, member);
    splitScore(score);
    const { high, low } = scoreWords;
    if (!found) {
      this.changed = true;
      byMember.insert(hash, 0, member, NO_VALUE, high, low);
    } else {
      const oldHigh = byMember.payload(0);
      const oldLow = byMember.payload(1);
      this.changed = oldHigh !== high || oldLow !== low;
      if (!this.changed) return false;
      byMember.setPayload(high, low);
      byScore.find(oldHigh, oldLow, member);
      byScore.remove();
    }
    byScore.find(high, low, member);
    byScore.insert(high, low, member, NO_VALUE);
    return !found;
  }

  /** False when there is no room. */
  private addPacked(member: Slice, score: number): boolean {
    const { packed } = this;
    const bytes = SCORE_BYTES + itemBytes(member.end - member.start);
    if (!packed.hasRoom(bytes)) return false;
    const offset = this.packedPlace(score, member, false);
    packed.open(offset, bytes);
    this.value.view.setFloat64(this.value.start + offset, score + 0, true);
    packed.write(offset + SCORE_BYTES, member);
    return true;
  }

  /** Gives the element at an offset another score and its place. */
  private movePacked(from: number, member: Slice, score: number): void {
    const { value, packed } = this;
    const to = this.packedPlace(score, member, false);
    value.touch();
    const { u8, start } = value;
    const bytes = packed.elementBytes(u8, start + from);
    // What lies between the places moves over; the element's own bytes are written anew.
    if (to > from) u8.copyWithin(start + from, start + from + bytes, start + to);
    else u8.copyWithin(start + to + bytes, start + to, start + from);
    const at = to > from ? to - bytes : to;
    value.view.setFloat64(start + at, score + 0, true);
    packed.write(at + SCORE_BYTES, member);
  }

  /** Offset of the first packed element not below (score, member), or, with `above`, of the first above it. */
  private packedPlace(score: number, member: Slice, above: boolean): number {
    const { packed } = this;
    let offset = 1;
    for (let left = packed.count; left > 0; left--, offset = packed.after(offset)) {
      const other = this.packedScore(offset);
      if (other < score) continue;
      if (other > score) break;
      packed.item(offset, 0, this.member);
      const order = this.member.compare(member);
      if (above ? order > 0 : order >= 0) break;
    }
    return offset;
  }

  private packedRank(offset: number): number {
    let rank = 0;
    for (let at = 1; at < offset; at = this.packed.after(at)) rank++;
    return rank;
  }

  private moveToTrees(bytes: number): void {
    const detached = detachedPayload(this.value);
    const old = new PackedItems(detached, SCORE_BYTES, 1);
    this.makeTrees(bytes);
    for (let rank = 0, offset = 1; rank < old.count; rank++, offset = old.after(offset)) {
      old.item(offset, 0, this.member);
      this.setInTrees(this.member, detached.view.getFloat64(detached.start + offset, true));
    }
  }

  remove(member: Slice): boolean {
    if (!this.value.isTree) {
      const offset = this.packed.find(member);
      if (offset < 0) return false;
      this.packed.remove(offset, 1);
      return true;
    }
    const { byScore, byMember } = this;
    if (!this.findMember(member)) return false;
    const high = byMember.payload(0);
    const low = byMember.payload(1);
    byScore.find(high, low, member);
    // The member may be shown by a slice into either tree: it is read before both change.
    byScore.remove();
    byMember.remove();
    this.save();
    return true;
  }

  rank(member: Slice): number {
    if (!this.value.isTree) {
      const offset = this.packed.find(member);
      return offset < 0 ? -1 : this.packedRank(offset);
    }
    if (!this.findMember(member)) return -1;
    this.byScore.find(this.byMember.payload(0), this.byMember.payload(1), member);
    return this.byScore.rank();
  }

  at(rank: number, into: Slice): number {
    if (rank >= this.size) return NaN;
    if (!this.value.isTree) {
      const offset = this.packed.offset(rank);
      this.packed.item(offset, 0, into);
      return this.packedScore(offset);
    }
    this.byScore.select(rank);
    return this.current(into);
  }

  /** Member and score at the cursor of the tree by score. */
  private current(member: Slice): number {
    this.byScore.key(member);
    return joinScore(this.byScore.wordAt(0), this.byScore.wordAt(1));
  }

  countBelow(score: number, inclusive: boolean): number {
    if (!this.value.isTree) {
      const { packed } = this;
      let rank = 0;
      for (let offset = 1; rank < packed.count; rank++, offset = packed.after(offset)) {
        const other = this.packedScore(offset);
        if (inclusive ? other > score : other >= score) break;
      }
      return rank;
    }
    splitScore(score);
    if (inclusive) stepAbove();
    // The empty key is the lowest of its score.
    this.byScore.find(scoreWords.high, scoreWords.low, NO_VALUE);
    return this.byScore.rank();
  }

  countBelowLex(member: Slice, inclusive: boolean): number {
    if (this.size === 0) return 0;
    if (!this.value.isTree) return this.packedRank(this.packedPlace(this.packedScore(1), member, inclusive));
    const { byScore } = this;
    byScore.select(0);
    const found = byScore.find(byScore.wordAt(0), byScore.wordAt(1), member);
    return byScore.rank() + (found && inclusive ? 1 : 0);
  }

  removeRange(rank: number, count: number): void {
    const run = Math.min(count, this.size - rank);
    if (run <= 0) return;
    if (!this.value.isTree) {
      this.packed.remove(this.packed.offset(rank), run);
      return;
    }
    if (run * WALK_SHARE >= this.size) this.removeByWalk(rank, run);
    else this.removeOneByOne(rank, run);
    this.byScore.removeRange(rank, run);
    this.save();
  }

  /** Looks up each member of a range of ranks, and removes it from the tree by member. */
  private removeOneByOne(rank: number, count: number): void {
    const { byScore, byMember, member } = this;
    byScore.select(rank);
    for (let left = count; ;) {
      byScore.key(member);
      this.findMember(member);
      byMember.remove();
      if (--left === 0) break;
      byScore.next();
    }
  }

  /** The same by going through the tree by member from one end to the other: its order has nothing to do with ranks. */
  private removeByWalk(rank: number, count: number): void {
    const { byMember, member } = this;
    const first = this.bound(rank);
    const last = this.bound(rank + count - 1);
    byMember.removeWhere(() => {
      const high = byMember.payload(0);
      const low = byMember.payload(1);
      const fromFirst = high === first.high ? low - first.low : high - first.high;
      const fromLast = high === last.high ? low - last.low : high - last.high;
      if (fromFirst < 0 || fromLast > 0) return false;
      if (fromFirst > 0 && fromLast < 0) return true;
      byMember.key(member);
      return (
        (fromFirst > 0 || member.compare(first.member) >= 0) &&
        (fromLast < 0 || member.compare(last.member) <= 0)
      );
    });
  }

  /** What stands at a rank: the words of the score, which are in its order, and a copy of the member. */
  private bound(rank: number): { high: number; low: number; member: Slice } {
    const { byScore, member } = this;
    byScore.select(rank);
    byScore.key(member);
    return { high: byScore.wordAt(0), low: byScore.wordAt(1), member: member.clone() };
  }

  forEachFrom(rank: number, step: 1 | -1, visit: (member: Slice, score: number) => boolean): void {
    const { byScore, packed, member } = this;
    const size = this.size;
    if (rank < 0 || rank >= size) return;
    if (this.value.isTree) {
      byScore.select(rank);
      let score: number;
      do score = this.current(member);
      while (visit(member, score) && (step === 1 ? byScore.next() : byScore.previous()));
      return;
    }
    for (let offset = packed.offset(rank); ;) {
      packed.item(offset, 0, member);
      if (!visit(member, this.packedScore(offset))) return;
      rank += step;
      if (rank < 0 || rank >= size) return;
      offset = step === 1 ? packed.after(offset) : packed.offset(rank);
    }
  }

  scan(cursor: number, count: number, visit: Visitor): number {
    if (!this.value.isTree) {
      this.forEachFrom(0, 1, (member, score) => {
        visit(member, null, score);
        return true;
      });
      return 0;
    }
    const { byMember, member } = this;
    return scanTree(byMember, cursor, count, () => {
      byMember.key(member);
      visit(member, null, joinScore(byMember.payload(0), byMember.payload(1)));
    });
  }

  protected override checkPacked(): string | null {
    const { packed, member, value } = this;
    const reason = packed.check() ?? packed.checkTwins();
    if (reason !== null || value.length === 0) return reason;
    const last = new Slice();
    let lastScore = -Infinity;
    for (let rank = 0, offset = 1; rank < packed.count; rank++, offset = packed.after(offset)) {
      const score = this.packedScore(offset);
      packed.item(offset, 0, member);
      if (!(score >= lastScore) || (score === lastScore && rank > 0 && member.compare(last) <= 0))
        return `element ${rank} is not above the one before`;
      lastScore = score;
      last.setSlice(member);
    }
    return null;
  }

  protected override checkTrees(check: TreeCheck): string | null {
    const reason = check.keyed(this.byScore) ?? check.keyed(this.byMember);
    if (reason !== null) return reason;
    const { byScore, byMember } = this;
    if (byScore.count !== byMember.count)
      return `${byScore.count} members by score, ${byMember.count} by name`;
    return this.checkHashes(byMember) ?? this.checkScores();
  }

  /** Both trees say the same of each member. */
  private checkScores(): string | null {
    const { byScore, byMember, member } = this;
    if (!byMember.select(0)) return null;
    do {
      byMember.key(member);
      const high = byMember.payload(0);
      const low = byMember.payload(1);
      if (Number.isNaN(joinScore(high, low)) || !byScore.find(high, low, member))
        return `the score of ${showKey(member.toBuffer())} is not that by which it is ordered`;
    } while (byMember.next());
    return null;
  }
}
