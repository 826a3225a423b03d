/** Sorted sets. */
import { Slice } from '../../bytes/slice.ts';
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { zsetMemberAdded } from '../encoding.ts';
import { syntaxError } from '../errors.ts';
import { announceKey } from './announce.ts';
import { positiveCount } from './arguments.ts';
import { bzmpop, bzpopmax, bzpopmin } from './blocking-zsets.ts';
import { scanCollection } from './collection-scan.ts';
import { countedKeys, keyAt, keysFrom } from './key-specs.ts';
import { forEachSampled, randomRank, sampleCount, sampledCount } from './sampling.ts';
import { exactScore, replyScore } from './scores.ts';
import { replyWithResult, storeResult, zintercard } from './zset-algebra.ts';
import { takeFromKey, takeMany, takeOne, zsetMultiPop } from './zset-ends.ts';
import { countRange, removeRange, replyWithRange, zrangestore } from './zset-ranges.ts';
import { readZSet } from './lookups.ts';

const member = new Slice();

const NX = 1;
const XX = 2;
const GT = 4;
const LT = 8;
const CH = 16;
const INCR = 32;

/** Scores of one ZADD that have a place of their own; more of them get an array for the moment. */
const SCORES_KEPT = 128;
const keptScores = new Float64Array(SCORES_KEPT);

/** The option of ZADD at args[i], 0 when it is none: then it should be a score. */
function addOption(context: Context, i: number): number {
  const { u8, start, end } = context.args[i];
  if (end - start < 2 || u8[start] < 65) return 0;
  if (context.is(i, 'nx')) return NX;
  if (context.is(i, 'xx')) return XX;
  if (context.is(i, 'gt')) return GT;
  if (context.is(i, 'lt')) return LT;
  if (context.is(i, 'ch')) return CH;
  return context.is(i, 'incr') ? INCR : 0;
}

/** ZADD and, with INCR from the start, ZINCRBY, which as in Redis takes ADD's options for what they are. */
function add(context: Context, options: number): void {
  let at = 2;
  for (; at < context.argc; at++) {
    const option = addOption(context, at);
    if (option === 0) break;
    options |= option;
  }
  addMembers(context, options, at);
}

/** Adds the pairs of score and member from args[at] on. An increment is logged with its result. */
function addMembers(context: Context, options: number, at: number): void {
  const { args, argc, db, reply } = context;
  const pairs = (argc - at) / 2;
  const incrementing = (options & INCR) !== 0;
  if (pairs === 0 || ((argc - at) & 1) === 1) throw syntaxError();
  if ((options & ~(CH | XX)) !== 0) checkOptions(options, pairs);
  const scores = pairs <= SCORES_KEPT ? keptScores : new Float64Array(pairs);
  for (let i = 0; i < pairs; i++) scores[i] = context.float(at + 2 * i);

  const key = args[1];
  const zset = (options & XX) !== 0 ? db.zset(key) : db.zset(key, true);
  if (zset === null) {
    if (incrementing) reply.null();
    else reply.integer(0);
    return;
  }
  const before = zset.size;
  let size = before;
  let updated = 0;
  let result = NaN;
  for (let i = 0; i < pairs; i++) {
    const each = args[at + 2 * i + 1];
    let score = scores[i];
    if ((options & ~CH) !== 0) {
      const old = zset.score(each);
      if (old === undefined ? (options & XX) !== 0 : (options & NX) !== 0) continue;
      if (old !== undefined) {
        if (incrementing) score += old;
        if (Number.isNaN(score)) throw new CommandError('ERR resulting score is not a number (NaN)');
        if (((options & GT) !== 0 && score <= old) || ((options & LT) !== 0 && score >= old)) continue;
      }
      result = score;
    }
    if (zset.set(each, score)) zsetMemberAdded(context, key, ++size, each);
    else if (zset.changed) updated++;
  }
  const added = size - before;
  if (added + updated > 0) {
    if (before === 0) announceKey(context, key);
    context.changed(key, 'z', incrementing ? 'zincr' : 'zadd');
    if (incrementing) context.effect('ZADD', key, exactScore(result), args[at + 1]);
  }
  if (!incrementing) reply.integer((options & CH) !== 0 ? added + updated : added);
  else if (Number.isNaN(result)) reply.null();
  else replyScore(reply, result);
}

function checkOptions(options: number, pairs: number): void {
  const has = (option: number): boolean => (options & option) !== 0;
  if (has(NX) && has(XX)) {
    throw new CommandError('ERR XX and NX options at the same time are not compatible');
  }
  if ((has(NX) && (has(GT) || has(LT))) || (has(GT) && has(LT))) {
    throw new CommandError('ERR GT, LT, and/or NX options at the same time are not compatible');
  }
  if (has(INCR) && pairs > 1) {
    throw new CommandError('ERR INCR option supports a single increment-element pair');
  }
}

function zrem(context: Context): void {
  const { args, argc } = context;
  const key = args[1];
  const zset = context.db.zset(key);
  if (zset === null) return context.reply.integer(0);
  const { size } = zset;
  let removed = 0;
  for (let i = 2; i < argc && removed < size; i++) if (zset.remove(args[i])) removed++;
  if (removed > 0) context.changed(key, 'z', 'zrem');
  if (removed === size) context.event(key, 'g', 'del');
  context.reply.integer(removed);
}

function zcard(context: Context): void {
  context.reply.integer(readZSet(context, context.args[1])?.size ?? 0);
}

function zscore(context: Context): void {
  const { args, reply } = context;
  const score = readZSet(context, args[1])?.score(args[2]);
  if (score === undefined) reply.null();
  else replyScore(reply, score);
}

function zmscore(context: Context): void {
  const { args, argc, reply } = context;
  const zset = readZSet(context, args[1]);
  reply.array(argc - 2);
  for (let i = 2; i < argc; i++) {
    const score = zset?.score(args[i]);
    if (score === undefined) reply.null();
    else replyScore(reply, score);
  }
}

function rankOf(context: Context, reverse: boolean): void {
  const { args, reply } = context;
  const zset = readZSet(context, args[1]);
  const rank = zset?.rank(args[2]) ?? -1;
  if (rank < 0) reply.null();
  else reply.integer(reverse ? zset!.size - 1 - rank : rank);
}

function pop(context: Context, lowest: boolean): void {
  const { args, argc, reply } = context;
  if (argc > 3) throw syntaxError();
  const key = args[1];
  if (argc === 2) {
    const zset = context.db.zset(key);
    if (zset === null) return reply.array(0);
    reply.array(2);
    return takeOne(context, key, zset, lowest);
  }
  const wanted = positiveCount(context, 2);
  const zset = context.db.zset(key);
  if (zset === null || wanted === 0) return reply.array(0);
  const count = Math.min(wanted, zset.size);
  const nested = reply.protocol === 3;
  reply.array(nested ? count : count * 2);
  takeMany(context, key, zset, lowest, count, nested);
}

function zmpop(context: Context): void {
  const { args } = context;
  const { keyCount, lowest, count } = zsetMultiPop(context, 1);
  for (let i = 2; i < 2 + keyCount; i++) {
    const zset = context.db.zset(args[i]);
    if (zset !== null) return takeFromKey(context, args[i], zset, lowest, count);
  }
  context.reply.nullArray();
}

function zrandmember(context: Context): void {
  const { args, argc, reply } = context;
  if (argc === 2) {
    const zset = readZSet(context, args[1]);
    if (zset === null) return reply.null();
    zset.at(randomRank(context, zset.size), member);
    return reply.bulk(member);
  }
  const withScores = argc > 3;
  const count = sampleCount(context, 'withscores');
  const zset = readZSet(context, args[1]);
  if (zset === null || count === 0) return reply.array(0);
  const { size } = zset;
  const nested = withScores && reply.protocol === 3;
  const sampled = sampledCount(size, count);
  reply.array(withScores && !nested ? sampled * 2 : sampled);
  forEachSampled(context, size, count, (rank) => {
    const score = zset.at(rank, member);
    if (nested) reply.array(2);
    reply.bulk(member);
    if (withScores) replyScore(reply, score);
  });
}

function zscan(context: Context): void {
  scanCollection(context, (key) => readZSet(context, key), 'score');
}

export const zsetCommands: readonly Command[] = [
  {
    name: 'zadd',
    arity: -4,
    syntax:
      'key [condition(NX|XX)] [comparison(GT|LT)] [change=CH] [increment=INCR] score_member(score member)...',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RW', 'update')],
    group: 'sorted-set',
    since: '1.2.0',
    complexity: 'O(M*log(N)) for M members given and N in the set',
    summary: 'Adds members to a sorted set, or changes their scores.',
    run: (context) => add(context, 0),
  },
  {
    name: 'zincrby',
    arity: 4,
    syntax: 'key increment member',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RW', 'access', 'update')],
    group: 'sorted-set',
    since: '1.2.0',
    complexity: 'O(log(N)) for N members in the set',
    summary: 'Adds to the score of a member, which counts as 0 if absent.',
    run: (context) => add(context, INCR),
  },
  {
    name: 'zrem',
    arity: -3,
    syntax: 'key member...',
    flags: ['write', 'fast'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RW', 'delete')],
    group: 'sorted-set',
    since: '1.2.0',
    complexity: 'O(M*log(N)) for M members given and N in the set',
    summary: 'Removes members from a sorted set.',
    run: zrem,
  },
  {
    name: 'zremrangebyrank',
    arity: 4,
    syntax: 'key start stop',
    flags: ['write'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RW', 'delete')],
    group: 'sorted-set',
    since: '2.0.0',
    complexity: 'O(log(N)+M) for N members in the set, M of them removed',
    summary: 'Removes the members between two ranks.',
    run: (context) => removeRange(context, 'rank', 'zremrangebyrank'),
  },
  {
    name: 'zremrangebyscore',
    arity: 4,
    syntax: 'key min:double max:double',
    flags: ['write'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RW', 'delete')],
    group: 'sorted-set',
    since: '1.2.0',
    complexity: 'O(log(N)+M) for N members in the set, M of them removed',
    summary: 'Removes the members between two scores.',
    run: (context) => removeRange(context, 'score', 'zremrangebyscore'),
  },
  {
    name: 'zremrangebylex',
    arity: 4,
    syntax: 'key min max',
    flags: ['write'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RW', 'delete')],
    group: 'sorted-set',
    since: '2.8.9',
    complexity: 'O(log(N)+M) for N members in the set, M of them removed',
    summary: 'Removes the members between two strings, in a set whose scores are equal.',
    run: (context) => removeRange(context, 'lex', 'zremrangebylex'),
  },
  {
    name: 'zcard',
    arity: 2,
    syntax: 'key',
    flags: ['readonly', 'fast'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RO')],
    group: 'sorted-set',
    since: '1.2.0',
    complexity: 'O(1)',
    summary: 'Tells how many members a sorted set has.',
    run: zcard,
  },
  {
    name: 'zcount',
    arity: 4,
    syntax: 'key min:double max:double',
    flags: ['readonly', 'fast'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '2.0.0',
    complexity: 'O(log(N)) for N members in the set',
    summary: 'Counts the members between two scores.',
    run: (context) => countRange(context, 'score'),
  },
  {
    name: 'zlexcount',
    arity: 4,
    syntax: 'key min max',
    flags: ['readonly', 'fast'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '2.8.9',
    complexity: 'O(log(N)) for N members in the set',
    summary: 'Counts the members between two strings, in a set whose scores are equal.',
    run: (context) => countRange(context, 'lex'),
  },
  {
    name: 'zscore',
    arity: 3,
    syntax: 'key member',
    flags: ['readonly', 'fast'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '1.2.0',
    complexity: 'O(log(N)) for N members in the set',
    summary: 'Returns the score of a member.',
    run: zscore,
  },
  {
    name: 'zmscore',
    arity: -3,
    syntax: 'key member...',
    flags: ['readonly', 'fast'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '6.2.0',
    complexity: 'O(M*log(N)) for M members given and N in the set',
    summary: 'Returns the scores of several members.',
    run: zmscore,
  },
  {
    name: 'zrank',
    arity: 3,
    syntax: 'key member',
    flags: ['readonly', 'fast'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '2.0.0',
    complexity: 'O(log(N)) for N members in the set',
    summary: 'Returns the rank of a member, from the lowest score on.',
    run: (context) => rankOf(context, false),
  },
  {
    name: 'zrevrank',
    arity: 3,
    syntax: 'key member',
    flags: ['readonly', 'fast'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '2.0.0',
    complexity: 'O(log(N)) for N members in the set',
    summary: 'Returns the rank of a member, from the highest score on.',
    run: (context) => rankOf(context, true),
  },
  {
    name: 'zrange',
    arity: -4,
    syntax:
      'key start:string stop:string [sortby(BYSCORE|BYLEX)] [REV] [LIMIT offset_count(offset count)] [WITHSCORES]',
    flags: ['readonly'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '1.2.0',
    complexity: 'O(log(N)+M) for N members in the set, M of them returned',
    summary: 'Returns a range of members by rank, score or string.',
    run: (context) => replyWithRange(context, null, null),
  },
  {
    name: 'zrangestore',
    arity: -5,
    syntax: 'dst src min max [sortby(BYSCORE|BYLEX)] [REV] [LIMIT offset_count(offset count)]',
    flags: ['write', 'denyoom'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'OW', 'update'), keyAt(2, 'RO', 'access')],
    group: 'sorted-set',
    since: '6.2.0',
    complexity: 'O(log(N)+M*log(M)) for N members in the set, M of them stored',
    summary: 'Stores a range of members under another key.',
    run: zrangestore,
  },
  {
    name: 'zrevrange',
    arity: -4,
    syntax: 'key start stop [WITHSCORES]',
    flags: ['readonly'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '1.2.0',
    deprecated: { since: '6.2.0', use: '`ZRANGE … REV`' },
    complexity: 'O(log(N)+M) for N members in the set, M of them returned',
    summary: 'Returns the members between two ranks, from the highest score on.',
    run: (context) => replyWithRange(context, 'rank', true),
  },
  {
    name: 'zrangebyscore',
    arity: -4,
    syntax: 'key min:double max:double [WITHSCORES] [LIMIT offset_count(offset count)]',
    flags: ['readonly'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '1.0.5',
    deprecated: { since: '6.2.0', use: '`ZRANGE … BYSCORE`' },
    complexity: 'O(log(N)+M) for N members in the set, M of them returned',
    summary: 'Returns the members between two scores.',
    run: (context) => replyWithRange(context, 'score', false),
  },
  {
    name: 'zrevrangebyscore',
    arity: -4,
    syntax: 'key max:double min:double [WITHSCORES] [LIMIT offset_count(offset count)]',
    flags: ['readonly'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '2.2.0',
    deprecated: { since: '6.2.0', use: '`ZRANGE … BYSCORE REV`' },
    complexity: 'O(log(N)+M) for N members in the set, M of them returned',
    summary: 'Returns the members between two scores, from the highest on.',
    run: (context) => replyWithRange(context, 'score', true),
  },
  {
    name: 'zrangebylex',
    arity: -4,
    syntax: 'key min max [LIMIT offset_count(offset count)]',
    flags: ['readonly'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '2.8.9',
    deprecated: { since: '6.2.0', use: '`ZRANGE … BYLEX`' },
    complexity: 'O(log(N)+M) for N members in the set, M of them returned',
    summary: 'Returns the members between two strings, in a set whose scores are equal.',
    run: (context) => replyWithRange(context, 'lex', false),
  },
  {
    name: 'zrevrangebylex',
    arity: -4,
    syntax: 'key max min [LIMIT offset_count(offset count)]',
    flags: ['readonly'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '2.8.9',
    deprecated: { since: '6.2.0', use: '`ZRANGE … BYLEX REV`' },
    complexity: 'O(log(N)+M) for N members in the set, M of them returned',
    summary: 'Returns the members between two strings, from the last on, in a set whose scores are equal.',
    run: (context) => replyWithRange(context, 'lex', true),
  },
  {
    name: 'zpopmin',
    arity: -2,
    syntax: 'key [count]',
    flags: ['write', 'fast'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RW', 'access', 'delete')],
    group: 'sorted-set',
    since: '5.0.0',
    complexity: 'O(log(N)+M) for N members in the set, M of them removed',
    summary: 'Removes and returns the members of the lowest scores.',
    run: (context) => pop(context, true),
  },
  {
    name: 'zpopmax',
    arity: -2,
    syntax: 'key [count]',
    flags: ['write', 'fast'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'RW', 'access', 'delete')],
    group: 'sorted-set',
    since: '5.0.0',
    complexity: 'O(log(N)+M) for N members in the set, M of them removed',
    summary: 'Removes and returns the members of the highest scores.',
    run: (context) => pop(context, false),
  },
  {
    name: 'zmpop',
    arity: -4,
    syntax: 'numkeys key... where(MIN|MAX) [COUNT count]',
    flags: ['write', 'movablekeys'],
    categories: ['sortedset'],
    keys: [countedKeys(1, 'RW', 'access', 'delete')],
    group: 'sorted-set',
    since: '7.0.0',
    complexity: 'O(K+M+log(N)) for K keys, N members in the set, M of them removed',
    summary: 'Removes and returns members of an end of the first sorted set that exists.',
    run: zmpop,
  },
  {
    name: 'bzpopmin',
    arity: -3,
    syntax: 'key... timeout',
    flags: ['write', 'noscript', 'blocking', 'fast'],
    categories: ['sortedset'],
    keys: [keysFrom(1, -2, 'RW', 'access', 'delete')],
    group: 'sorted-set',
    since: '5.0.0',
    complexity: 'O(K+log(N)) for K keys and N members in the set',
    summary:
      'Removes and returns the member of the lowest score of the first set that exists; waits for one if there is none.',
    run: bzpopmin,
  },
  {
    name: 'bzpopmax',
    arity: -3,
    syntax: 'key... timeout',
    flags: ['write', 'noscript', 'blocking', 'fast'],
    categories: ['sortedset'],
    keys: [keysFrom(1, -2, 'RW', 'access', 'delete')],
    group: 'sorted-set',
    since: '5.0.0',
    complexity: 'O(K+log(N)) for K keys and N members in the set',
    summary:
      'Removes and returns the member of the highest score of the first set that exists; waits for one if there is none.',
    run: bzpopmax,
  },
  {
    name: 'bzmpop',
    arity: -5,
    syntax: 'timeout numkeys key... where(MIN|MAX) [COUNT count]',
    flags: ['write', 'blocking', 'movablekeys'],
    categories: ['sortedset'],
    keys: [countedKeys(2, 'RW', 'access', 'delete')],
    group: 'sorted-set',
    since: '7.0.0',
    complexity: 'O(K+M+log(N)) for K keys, N members in the set, M of them removed',
    summary:
      'Removes and returns members of an end of the first sorted set that exists; waits for one if there is none.',
    run: bzmpop,
  },
  {
    name: 'zunion',
    arity: -3,
    syntax: 'numkeys key... [WEIGHTS weight...] [AGGREGATE aggregate(SUM|MIN|MAX)] [WITHSCORES]',
    flags: ['readonly', 'movablekeys'],
    categories: ['sortedset'],
    keys: [countedKeys(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '6.2.0',
    complexity: 'O(N*log(M)) for N members together and M in the result',
    summary: 'Returns the members that any of several sorted sets has.',
    run: (context) => replyWithResult(context, 'union', 'zunion'),
  },
  {
    name: 'zunionstore',
    arity: -4,
    syntax: 'destination numkeys key... [WEIGHTS weight...] [AGGREGATE aggregate(SUM|MIN|MAX)]',
    flags: ['write', 'denyoom', 'movablekeys'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'OW', 'update'), countedKeys(2, 'RO', 'access')],
    group: 'sorted-set',
    since: '2.0.0',
    complexity: 'O(N*log(M)) for N members together and M in the result',
    summary: 'Stores the members that any of several sorted sets has.',
    run: (context) => storeResult(context, 'union', 'zunionstore'),
  },
  {
    name: 'zinter',
    arity: -3,
    syntax: 'numkeys key... [WEIGHTS weight...] [AGGREGATE aggregate(SUM|MIN|MAX)] [WITHSCORES]',
    flags: ['readonly', 'movablekeys'],
    categories: ['sortedset'],
    keys: [countedKeys(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '6.2.0',
    complexity: 'O(N*K+M*log(M)) for K sets, the smallest of N members, and M in the result',
    summary: 'Returns the members that all of several sorted sets have.',
    run: (context) => replyWithResult(context, 'inter', 'zinter'),
  },
  {
    name: 'zinterstore',
    arity: -4,
    syntax: 'destination numkeys key... [WEIGHTS weight...] [AGGREGATE aggregate(SUM|MIN|MAX)]',
    flags: ['write', 'denyoom', 'movablekeys'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'OW', 'update'), countedKeys(2, 'RO', 'access')],
    group: 'sorted-set',
    since: '2.0.0',
    complexity: 'O(N*K+M*log(M)) for K sets, the smallest of N members, and M in the result',
    summary: 'Stores the members that all of several sorted sets have.',
    run: (context) => storeResult(context, 'inter', 'zinterstore'),
  },
  {
    name: 'zdiff',
    arity: -3,
    syntax: 'numkeys key... [WITHSCORES]',
    flags: ['readonly', 'movablekeys'],
    categories: ['sortedset'],
    keys: [countedKeys(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '6.2.0',
    complexity: 'O(N*K+M*log(M)) for K sets, the first of N members, and M in the result',
    summary: 'Returns the members of the first sorted set that no other has.',
    run: (context) => replyWithResult(context, 'diff', 'zdiff'),
  },
  {
    name: 'zdiffstore',
    arity: -4,
    syntax: 'destination numkeys key...',
    flags: ['write', 'denyoom', 'movablekeys'],
    categories: ['sortedset'],
    keys: [keyAt(1, 'OW', 'update'), countedKeys(2, 'RO', 'access')],
    group: 'sorted-set',
    since: '6.2.0',
    complexity: 'O(N*K+M*log(M)) for K sets, the first of N members, and M in the result',
    summary: 'Stores the members of the first sorted set that no other has.',
    run: (context) => storeResult(context, 'diff', 'zdiffstore'),
  },
  {
    name: 'zintercard',
    arity: -3,
    syntax: 'numkeys key... [LIMIT limit]',
    flags: ['readonly', 'movablekeys'],
    categories: ['sortedset'],
    keys: [countedKeys(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '7.0.0',
    complexity: 'O(N*K) for K sets, the smallest of N members',
    summary: 'Counts the members that all of several sorted sets have.',
    run: zintercard,
  },
  {
    name: 'zrandmember',
    arity: -2,
    syntax: 'key [options(count [WITHSCORES])]',
    flags: ['readonly'],
    categories: ['sortedset'],
    tips: ['nondeterministic_output'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '6.2.0',
    complexity: 'O(N*log(M)) for N members returned of a set of M',
    summary: 'Returns random members of a sorted set.',
    run: zrandmember,
  },
  {
    name: 'zscan',
    arity: -3,
    syntax: 'key cursor [MATCH pattern] [COUNT count]',
    flags: ['readonly'],
    categories: ['sortedset'],
    tips: ['nondeterministic_output'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'sorted-set',
    since: '2.8.0',
    complexity: 'O(1) for a call, O(N) for a whole iteration over N members',
    summary: 'Goes through the members of a sorted set in steps.',
    run: zscan,
  },
];
