/** Sets. */
import { Slice } from '../../bytes/slice.ts';
import type { SetValue } from '../../store/api.ts';
import type { Command } from '../command.ts';
import type { Context } from '../context.ts';
import { setMemberAdded } from '../encoding.ts';
import { syntaxError } from '../errors.ts';
import { positiveCount } from './arguments.ts';
import { announceKey } from './announce.ts';
import { scanCollection } from './collection-scan.ts';
import { countedKeys, keyAt, keysFrom } from './key-specs.ts';
import { forEachSampled, randomRank, sampleCount, sampledCount } from './sampling.ts';
import { sdiff, sdiffstore, sinter, sintercard, sinterstore, sunion, sunionstore } from './set-algebra.ts';
import { readSet } from './lookups.ts';

const member = new Slice();

function sadd(context: Context): void {
  const { args, argc } = context;
  const key = args[1];
  const set = context.db.set(key, true);
  const before = set.size;
  let size = before;
  for (let i = 2; i < argc; i++) if (set.add(args[i])) setMemberAdded(context, key, ++size, args[i]);
  if (size > before) {
    if (before === 0) announceKey(context, key);
    context.changed(key, 's', 'sadd');
  }
  context.reply.integer(size - before);
}

function srem(context: Context): void {
  const { args, argc } = context;
  const key = args[1];
  const set = context.db.set(key);
  if (set === null) return context.reply.integer(0);
  const { size } = set;
  let removed = 0;
  for (let i = 2; i < argc && removed < size; i++) if (set.remove(args[i])) removed++;
  if (removed > 0) context.changed(key, 's', 'srem');
  if (removed === size) context.event(key, 'g', 'del');
  context.reply.integer(removed);
}

function sismember(context: Context): void {
  const { args, reply } = context;
  reply.integer(readSet(context, args[1])?.has(args[2]) ? 1 : 0);
}

function smismember(context: Context): void {
  const { args, argc, reply } = context;
  const set = readSet(context, args[1]);
  reply.array(argc - 2);
  for (let i = 2; i < argc; i++) reply.integer(set?.has(args[i]) ? 1 : 0);
}

function scard(context: Context): void {
  context.reply.integer(readSet(context, context.args[1])?.size ?? 0);
}

function replyWithAll(context: Context, set: SetValue): void {
  const { reply } = context;
  reply.set(set.size);
  set.forEachFrom(0, (each) => {
    reply.bulk(each);
    return true;
  });
}

function smembers(context: Context): void {
  const set = readSet(context, context.args[1]);
  if (set === null) context.reply.set(0);
  else replyWithAll(context, set);
}

/** Logged as the removal of the members that the dice chose. */
function spop(context: Context): void {
  const { argc, reply } = context;
  const key = context.args[1];
  if (argc === 3) return spopCount(context);
  if (argc > 3) throw syntaxError();
  const set = context.db.set(key);
  if (set === null) return reply.null();
  const { size } = set;
  const rank = randomRank(context, size);
  set.at(rank, member);
  reply.bulk(member);
  context.effect('SREM', key, member);
  set.removeAt(rank);
  context.changed(key, 's', 'spop');
  if (size === 1) context.event(key, 'g', 'del');
}

function spopCount(context: Context): void {
  const { db, reply } = context;
  const key = context.args[1];
  const count = positiveCount(context, 2);
  const set = db.set(key);
  if (set === null || count === 0) return reply.set(0);
  context.changed(key, 's', 'spop');
  if (count >= set.size) {
    replyWithAll(context, set);
    db.remove(key);
    context.event(key, 'g', 'del');
    context.effect('DEL', key);
    return;
  }
  reply.set(count);
  for (let size = set.size, rest = count; rest > 0; size--, rest--) {
    const rank = randomRank(context, size);
    set.at(rank, member);
    reply.bulk(member);
    context.effect('SREM', key, member);
    set.removeAt(rank);
  }
}

function srandmember(context: Context): void {
  const { argc, reply } = context;
  if (argc > 3) throw syntaxError();
  const count = argc === 3 ? sampleCount(context, '') : 1;
  const set = readSet(context, context.args[1]);
  if (argc === 2) {
    if (set === null) return reply.null();
    set.at(randomRank(context, set.size), member);
    return reply.bulk(member);
  }
  if (set === null || count === 0) return reply.array(0);
  const { size } = set;
  reply.array(sampledCount(size, count));
  forEachSampled(context, size, count, (rank) => {
    set.at(rank, member);
    reply.bulk(member);
  });
}

function smove(context: Context): void {
  const { args, db, reply } = context;
  const [, from, to, moved] = args;
  const source = db.set(from);
  if (source === null) return reply.integer(0);
  const within = from.equals(to);
  const present = source.has(moved);
  const target = within ? source : db.set(to);
  if (within || !present) return reply.integer(present ? 1 : 0);
  const destination = target ?? db.set(to, true);
  const added = destination.add(moved);
  if (added) setMemberAdded(context, to, destination.size, moved);
  const emptied = source.size === 1;
  source.remove(moved);
  context.changed(from, 's', 'srem');
  if (emptied) context.event(from, 'g', 'del');
  if (added) {
    if (target === null) announceKey(context, to);
    context.changed(to, 's', 'sadd');
  }
  reply.integer(1);
}

function sscan(context: Context): void {
  scanCollection(context, (key) => readSet(context, key), 'nothing');
}

export const setCommands: readonly Command[] = [
  {
    name: 'sadd',
    arity: -3,
    syntax: 'key member...',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['set'],
    keys: [keyAt(1, 'RW', 'insert')],
    group: 'set',
    since: '1.0.0',
    complexity: 'O(N) for N members given',
    summary: 'Adds members to a set, which is created if needed.',
    run: sadd,
  },
  {
    name: 'srem',
    arity: -3,
    syntax: 'key member...',
    flags: ['write', 'fast'],
    categories: ['set'],
    keys: [keyAt(1, 'RW', 'delete')],
    group: 'set',
    since: '1.0.0',
    complexity: 'O(N) for N members given',
    summary: 'Removes members from a set.',
    run: srem,
  },
  {
    name: 'sismember',
    arity: 3,
    syntax: 'key member',
    flags: ['readonly', 'fast'],
    categories: ['set'],
    keys: [keyAt(1, 'RO')],
    group: 'set',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Tells whether a set has a member.',
    run: sismember,
  },
  {
    name: 'smismember',
    arity: -3,
    syntax: 'key member...',
    flags: ['readonly', 'fast'],
    categories: ['set'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'set',
    since: '6.2.0',
    complexity: 'O(N) for N members given',
    summary: 'Tells for each of several members whether a set has it.',
    run: smismember,
  },
  {
    name: 'scard',
    arity: 2,
    syntax: 'key',
    flags: ['readonly', 'fast'],
    categories: ['set'],
    keys: [keyAt(1, 'RO')],
    group: 'set',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Tells how many members a set has.',
    run: scard,
  },
  {
    name: 'smembers',
    arity: 2,
    syntax: 'key',
    flags: ['readonly'],
    categories: ['set'],
    tips: ['nondeterministic_output_order'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'set',
    since: '1.0.0',
    complexity: 'O(N) for N members in the set',
    summary: 'Returns all members of a set.',
    run: smembers,
  },
  {
    name: 'spop',
    arity: -2,
    syntax: 'key [count]',
    flags: ['write', 'fast'],
    categories: ['set'],
    tips: ['nondeterministic_output'],
    keys: [keyAt(1, 'RW', 'access', 'delete')],
    group: 'set',
    since: '1.0.0',
    complexity: 'O(N*log(M)) for N members removed from a set of M',
    summary: 'Removes and returns random members of a set.',
    run: spop,
  },
  {
    name: 'srandmember',
    arity: -2,
    syntax: 'key [count]',
    flags: ['readonly'],
    categories: ['set'],
    tips: ['nondeterministic_output'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'set',
    since: '1.0.0',
    complexity: 'O(N*log(M)) for N members returned of a set of M',
    summary: 'Returns random members of a set.',
    run: srandmember,
  },
  {
    name: 'smove',
    arity: 4,
    syntax: 'source destination member',
    flags: ['write', 'fast'],
    categories: ['set'],
    keys: [keyAt(1, 'RW', 'access', 'delete'), keyAt(2, 'RW', 'insert')],
    group: 'set',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Moves a member from one set to another.',
    run: smove,
  },
  {
    name: 'sinter',
    arity: -2,
    syntax: 'key...',
    flags: ['readonly'],
    categories: ['set'],
    tips: ['nondeterministic_output_order'],
    keys: [keysFrom(1, -1, 'RO', 'access')],
    group: 'set',
    since: '1.0.0',
    complexity: 'O(N*M) for M sets, the smallest of N members',
    summary: 'Returns the members that all of several sets have.',
    run: sinter,
  },
  {
    name: 'sinterstore',
    arity: -3,
    syntax: 'destination key...',
    flags: ['write', 'denyoom'],
    categories: ['set'],
    keys: [keyAt(1, 'RW', 'update'), keysFrom(2, -1, 'RO', 'access')],
    group: 'set',
    since: '1.0.0',
    complexity: 'O(N*M) for M sets, the smallest of N members',
    summary: 'Stores the members that all of several sets have.',
    run: sinterstore,
  },
  {
    name: 'sintercard',
    arity: -3,
    syntax: 'numkeys key... [LIMIT limit]',
    flags: ['readonly', 'movablekeys'],
    categories: ['set'],
    keys: [countedKeys(1, 'RO', 'access')],
    group: 'set',
    since: '7.0.0',
    complexity: 'O(N*M) for M sets, the smallest of N members',
    summary: 'Counts the members that all of several sets have.',
    run: sintercard,
  },
  {
    name: 'sunion',
    arity: -2,
    syntax: 'key...',
    flags: ['readonly'],
    categories: ['set'],
    tips: ['nondeterministic_output_order'],
    keys: [keysFrom(1, -1, 'RO', 'access')],
    group: 'set',
    since: '1.0.0',
    complexity: 'O(N*M) for M sets with N members together',
    summary: 'Returns the members that any of several sets has.',
    run: sunion,
  },
  {
    name: 'sunionstore',
    arity: -3,
    syntax: 'destination key...',
    flags: ['write', 'denyoom'],
    categories: ['set'],
    keys: [keyAt(1, 'OW', 'update'), keysFrom(2, -1, 'RO', 'access')],
    group: 'set',
    since: '1.0.0',
    complexity: 'O(N*M) for M sets with N members together',
    summary: 'Stores the members that any of several sets has.',
    run: sunionstore,
  },
  {
    name: 'sdiff',
    arity: -2,
    syntax: 'key...',
    flags: ['readonly'],
    categories: ['set'],
    tips: ['nondeterministic_output_order'],
    keys: [keysFrom(1, -1, 'RO', 'access')],
    group: 'set',
    since: '1.0.0',
    complexity: 'O(N*M) for M sets, the first of N members',
    summary: 'Returns the members of the first set that no other set has.',
    run: sdiff,
  },
  {
    name: 'sdiffstore',
    arity: -3,
    syntax: 'destination key...',
    flags: ['write', 'denyoom'],
    categories: ['set'],
    keys: [keyAt(1, 'OW', 'update'), keysFrom(2, -1, 'RO', 'access')],
    group: 'set',
    since: '1.0.0',
    complexity: 'O(N*M) for M sets, the first of N members',
    summary: 'Stores the members of the first set that no other set has.',
    run: sdiffstore,
  },
  {
    name: 'sscan',
    arity: -3,
    syntax: 'key cursor [MATCH pattern] [COUNT count]',
    flags: ['readonly'],
    categories: ['set'],
    tips: ['nondeterministic_output'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'set',
    since: '2.8.0',
    complexity: 'O(1) for a call, O(N) for a whole iteration over N members',
    summary: 'Goes through the members of a set in steps.',
    run: sscan,
  },
];
