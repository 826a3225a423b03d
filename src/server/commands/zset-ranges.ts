/** Ranges of sorted sets by rank, by score or by bytes: read, counted, removed, stored. */
import { parseDouble } from '../../bytes/number.ts';
import { Scratch } from '../../bytes/scratch.ts';
import { Slice } from '../../bytes/slice.ts';
import type { ZSet } from '../../store/api.ts';
import { CommandError } from '../command.ts';
import type { Context } from '../context.ts';
import { zsetMemberAdded } from '../encoding.ts';
import { syntaxError } from '../errors.ts';
import { clampedInteger } from './arguments.ts';
import { replyScore } from './scores.ts';
import { storeTemporary, temporaryKey, withTemporary } from './temporary.ts';
import { readZSet } from './lookups.ts';

/** The members of ranks [first, end) of the set that a range was resolved against. */
interface Ranks {
  first: number;
  end: number;
}

/** A range as its arguments say, before the set is known. */
type Range = (zset: ZSet) => Ranks;

type RangeKind = 'rank' | 'score' | 'lex';

const NO_MEMBERS: Ranks = { first: 0, end: 0 };

const scratch = new Scratch();
const probe = new Slice();

/** By rank, negative ones from the end; with `reverse`, ranks count from the highest member down. */
function rankRange(context: Context, startAt: number, stopAt: number, reverse: boolean): Range {
  const start = clampedInteger(context, startAt);
  const stop = clampedInteger(context, stopAt);
  return ({ size }) => {
    const first = Math.min(start < 0 ? Math.max(start + size, 0) : start, size);
    const end = Math.max(Math.min(stop < 0 ? stop + size : stop, size - 1) + 1, first);
    return reverse ? { first: size - end, end: size - first } : { first, end };
  };
}

/** What C's isspace takes for a blank. */
const BLANKS = /^[ \t\n\v\f\r]+/;
const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/**
 * The end of a score range from byte `start` of the argument on, as C's strtod reads it: here, unlike
 * elsewhere, blanks may precede it, nothing at all is 0, and what is too large is infinite.
 */
function scoreBound(argument: Slice, start: number): number {
  const bytes = new Slice();
  bytes.set(argument.u8, argument.view, argument.start + start, argument.end);
  if (bytes.length === 0) return 0;
  const value = parseDouble(bytes);
  if (!Number.isNaN(value)) return value;
  const text = bytes.latin1().replace(BLANKS, '');
  return DECIMAL.test(text) ? Number(text) : parseDouble(Slice.from(Buffer.from(text, 'latin1')));
}

function scoreRange(context: Context, minAt: number, maxAt: number): Range {
  const [minimum, maximum] = [context.args[minAt], context.args[maxAt]];
  const minOpen = minimum.length > 0 && minimum.u8[minimum.start] === 40; // (
  const maxOpen = maximum.length > 0 && maximum.u8[maximum.start] === 40;
  const min = scoreBound(minimum, minOpen ? 1 : 0);
  const max = scoreBound(maximum, maxOpen ? 1 : 0);
  if (Number.isNaN(min) || Number.isNaN(max)) throw new CommandError('ERR min or max is not a float');
  return (zset) => {
    const first = zset.countBelow(min, minOpen);
    return { first, end: Math.max(zset.countBelow(max, !maxOpen), first) };
  };
}

/** An end of a lexicographic range. */
interface LexBound {
  /** -1: before all members; 1: after all; 0: `member` says where. */
  infinite: number;
  member: Slice;
  open: boolean;
}

function lexBound(argument: Slice): LexBound {
  const first = argument.length > 0 ? argument.u8[argument.start] : 0;
  const member = new Slice();
  if (argument.length === 1) {
    if (first === 45) return { infinite: -1, member, open: false }; // -
    if (first === 43) return { infinite: 1, member, open: false }; // +
  }
  const open = first === 40; // (
  if (!open && first !== 91 /* [ */) throw new CommandError('ERR min or max not valid string range item');
  member.set(argument.u8, argument.view, argument.start + 1, argument.end);
  return { infinite: 0, member, open };
}

/** Negative where the member lies before the bound, positive where it lies behind it, `equal` where it is the bound itself. */
function compareToBound(member: Slice, bound: LexBound, equal: number): number {
  if (bound.infinite !== 0) return -bound.infinite;
  return member.compare(bound.member) || (bound.open ? equal : 0);
}

function membersBefore(zset: ZSet, { infinite, member }: LexBound, inclusive: boolean): number {
  if (infinite !== 0) return infinite < 0 ? 0 : zset.size;
  return zset.countBelowLex(member, inclusive);
}

/**
 * By bytes. With `reverse` the range is read from its end: that makes a difference where scores differ. Such
 * a range is not made for that; Redis looks at the last member and at the first, then for the first
 * in the order of reading that is within the near end, and goes on while members are within the far one.
 */
function lexRange(context: Context, minAt: number, maxAt: number, reverse: boolean): Range {
  const min = lexBound(context.args[minAt]);
  const max = lexBound(context.args[maxAt]);
  return (zset) => {
    const { size } = zset;
    if (zset.at(0, probe) === zset.at(size - 1, probe)) {
      const first = membersBefore(zset, min, min.open);
      return { first, end: Math.max(membersBefore(zset, max, !max.open), first) };
    }
    const above = (member: Slice): boolean => compareToBound(member, min, -1) >= 0;
    const below = (member: Slice): boolean => compareToBound(member, max, 1) <= 0;
    zset.at(size - 1, probe);
    if (!above(probe)) return NO_MEMBERS;
    zset.at(0, probe);
    if (!below(probe) || isNever(min, max)) return NO_MEMBERS;
    const [near, far] = reverse ? [below, above] : [above, below];
    let place = reverse ? size - 1 : 0;
    let from = -1;
    zset.forEachFrom(place, reverse ? -1 : 1, (member) => {
      if (from < 0 && near(member)) from = place;
      if (from >= 0 && !far(member)) return false;
      place += reverse ? -1 : 1;
      return true;
    });
    if (from < 0) return NO_MEMBERS;
    return reverse ? { first: place + 1, end: from + 1 } : { first: from, end: place };
  };
}

/** The ends are in the wrong order. */
function isNever(min: LexBound, max: LexBound): boolean {
  if (min.infinite !== 0 || max.infinite !== 0)
    return min.infinite > max.infinite || (min.infinite === max.infinite && min.open);
  const order = min.member.compare(max.member);
  return order > 0 || (order === 0 && (min.open || max.open));
}

/** The range of a kind in which the lower end comes first, as in commands without a direction. */
function plainRange(context: Context, kind: RangeKind): Range {
  if (kind === 'rank') return rankRange(context, 2, 3, false);
  return kind === 'score' ? scoreRange(context, 2, 3) : lexRange(context, 2, 3, false);
}

export function countRange(context: Context, kind: RangeKind): void {
  const range = plainRange(context, kind);
  const zset = readZSet(context, context.args[1]);
  if (zset === null) return context.reply.integer(0);
  const { first, end } = range(zset);
  context.reply.integer(end - first);
}

export function removeRange(context: Context, kind: RangeKind, event: string): void {
  const key = context.args[1];
  const range = plainRange(context, kind);
  const zset = context.db.zset(key);
  if (zset === null) return context.reply.integer(0);
  const { size } = zset;
  const { first, end } = range(zset);
  const removed = end - first;
  if (removed > 0) {
    if (removed === size) context.db.remove(key);
    else zset.removeRange(first, removed);
    context.changed(key, 'z', event);
    if (removed === size) context.event(key, 'g', 'del');
  }
  context.reply.integer(removed);
}

/** What ZRANGE and its relatives are asked for. */
interface RangeQuery {
  range: Range;
  reverse: boolean;
  withScores: boolean;
  /** Members to leave out in the order of reading; negative: all. */
  offset: number;
  /** Members to read at most; negative: all. */
  limit: number;
}

/**
 * Reads the arguments from the source key (at index `at`) on. A command that has a kind or a direction
 * of its own takes no option for it.
 */
function rangeQuery(
  context: Context,
  at: number,
  fixedKind: RangeKind | null,
  fixedReverse: boolean | null,
  storing: boolean,
): RangeQuery {
  const { argc } = context;
  let kind = fixedKind;
  let reverse = fixedReverse;
  let withScores = false;
  let offset = 0;
  let limit = -1;
  for (let i = at + 3; i < argc; i++) {
    if (!storing && context.is(i, 'withscores')) {
      withScores = true;
    } else if (context.is(i, 'limit') && i + 2 < argc) {
      offset = clampedInteger(context, i + 1);
      limit = clampedInteger(context, i + 2);
      i += 2;
    } else if (reverse === null && context.is(i, 'rev')) {
      reverse = true;
    } else if (kind === null && context.is(i, 'bylex')) {
      kind = 'lex';
    } else if (kind === null && context.is(i, 'byscore')) {
      kind = 'score';
    } else {
      throw syntaxError();
    }
  }
  kind ??= 'rank';
  reverse ??= false;
  if (kind === 'rank' && limit !== -1) {
    throw new CommandError(
      'ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX',
    );
  }
  if (kind === 'lex' && withScores) {
    throw new CommandError('ERR syntax error, WITHSCORES not supported in combination with BYLEX');
  }
  const [low, high] = reverse && kind !== 'rank' ? [at + 2, at + 1] : [at + 1, at + 2];
  if (kind === 'rank') offset = 0;
  let range: Range;
  if (kind === 'rank') range = rankRange(context, low, high, reverse);
  else if (kind === 'score') range = scoreRange(context, low, high);
  else range = lexRange(context, low, high, reverse);
  return { range, reverse, withScores, offset, limit };
}

/** How many members the query gives, after `begin` is told their number, and `visit` each of them. */
function readRange(
  zset: ZSet,
  query: RangeQuery,
  begin: (count: number) => void,
  visit: (member: Slice, score: number) => void,
): void {
  const { first, end } = query.range(zset);
  const skipped = query.offset < 0 ? end - first : Math.min(query.offset, end - first);
  let rest = end - first - skipped;
  if (query.limit >= 0) rest = Math.min(rest, query.limit);
  begin(rest);
  if (rest === 0) return;
  zset.forEachFrom(
    query.reverse ? end - 1 - skipped : first + skipped,
    query.reverse ? -1 : 1,
    (member, score) => {
      visit(member, score);
      return --rest > 0;
    },
  );
}

export function replyWithRange(
  context: Context,
  fixedKind: RangeKind | null,
  fixedReverse: boolean | null,
): void {
  const { reply } = context;
  const query = rangeQuery(context, 1, fixedKind, fixedReverse, false);
  const zset = readZSet(context, context.args[1]);
  if (zset === null) return reply.array(0);
  const { withScores } = query;
  const nested = withScores && reply.protocol === 3;
  readRange(
    zset,
    query,
    (count) => reply.array(withScores && !nested ? count * 2 : count),
    (member, score) => {
      if (nested) reply.array(2);
      reply.bulk(member);
      if (withScores) replyScore(reply, score);
    },
  );
}

export function zrangestore(context: Context): void {
  const { args } = context;
  const query = rangeQuery(context, 2, null, null, true);
  const zset = readZSet(context, args[2]);
  withTemporary(context, () => {
    let size = 0;
    if (zset !== null) {
      const result = context.db.zset(temporaryKey, true);
      readRange(
        zset,
        query,
        () => {},
        (member, score) => {
          const copy = scratch.keep(member);
          result.set(copy, score);
          zsetMemberAdded(context, temporaryKey, ++size, copy);
        },
      );
    }
    storeTemporary(context, args[1], size, 'z', 'zrangestore');
  });
}
