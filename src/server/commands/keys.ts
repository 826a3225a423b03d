/** Keys of any type: existence, deadlines, iteration, renaming and copying. */
import { isLiteral, matchesEverything, matchGlob } from '../../bytes/glob.ts';
import { Slice } from '../../bytes/slice.ts';
import { RespWriter } from '../../resp/writer.ts';
import { Type, type Database } from '../../store/api.ts';
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { NO_SUCH_KEY, SAME_OBJECT, syntaxError } from '../errors.ts';
import { lookedUp } from './announce.ts';
import { clampedInteger, databaseArgument, scanCursor } from './arguments.ts';
import { deadlineArgument } from './deadlines.ts';
import { keyAt, keysFrom } from './key-specs.ts';
import { objectCommand } from './object.ts';
import { sortCommands } from './sort.ts';

/** Names of the types, by their numbers. */
const TYPE_NAMES = ['none', 'string', 'list', 'set', 'hash', 'zset', 'stream'] as const;

const NX_EXCLUDES = 'ERR NX and XX, GT or LT options at the same time are not compatible';
const GT_EXCLUDES_LT = 'ERR GT and LT options at the same time are not compatible';

const randomKey = new Slice();
/** Keys that a scan has found; the cursor that stands before them is known only after it. */
const found = new RespWriter();

function del(context: Context): void {
  const { args, argc, db } = context;
  let removed = 0;
  for (let i = 1; i < argc; i++) {
    if (!db.remove(args[i])) continue;
    context.changed(args[i], 'g', 'del');
    removed++;
  }
  context.reply.integer(removed);
}

function countExisting(context: Context): void {
  let count = 0;
  for (let i = 1; i < context.argc; i++) if (typeOf(context, context.args[i]) !== Type.None) count++;
  context.reply.integer(count);
}

function touch(context: Context): void {
  const { args, argc, db } = context;
  let count = 0;
  for (let i = 1; i < argc; i++) {
    const type = typeOf(context, args[i]);
    if (type === Type.None) continue;
    markUsed(db, args[i], type);
    count++;
  }
  context.reply.integer(count);
}

/** A value counts as used when it is opened. */
function markUsed(db: Database, key: Slice, type: Type): void {
  if (type === Type.String) db.string(key);
  else if (type === Type.List) db.list(key);
  else if (type === Type.Set) db.set(key);
  else if (type === Type.Hash) db.hash(key);
  else if (type === Type.ZSet) db.zset(key);
  else if (type === Type.Stream) db.stream(key);
}

/** The type of the value at a key that is read. */
function typeOf(context: Context, key: Slice): Type {
  const type = context.db.type(key);
  lookedUp(context, key, type !== Type.None);
  return type;
}

function type(context: Context): void {
  context.reply.simple(TYPE_NAMES[typeOf(context, context.args[1])]);
}

function expire(context: Context, seconds: boolean, relative: boolean): void {
  const { db, reply } = context;
  const key = context.args[1];
  let nx = false;
  let xx = false;
  let gt = false;
  let lt = false;
  for (let i = 3; i < context.argc; i++) {
    if (context.is(i, 'nx')) nx = true;
    else if (context.is(i, 'xx')) xx = true;
    else if (context.is(i, 'gt')) gt = true;
    else if (context.is(i, 'lt')) lt = true;
    else throw new CommandError(`ERR Unsupported option ${context.args[i].latin1()}`);
  }
  if (nx && (xx || gt || lt)) throw new CommandError(NX_EXCLUDES);
  if (gt && lt) throw new CommandError(GT_EXCLUDES_LT);
  const deadline = deadlineArgument(context, 2, { seconds, relative, positive: false });
  const current = db.expiry(key); // 0, no deadline, counts as infinitely late
  if (
    db.type(key) === Type.None ||
    (nx && current !== 0) ||
    (xx && current === 0) ||
    (gt && (current === 0 || deadline <= current)) ||
    (lt && current !== 0 && deadline >= current)
  ) {
    reply.integer(0);
    return;
  }
  if (deadline <= context.now) {
    db.remove(key);
    context.changed(key, 'g', 'del');
    context.effect('DEL', key);
  } else {
    db.setExpiry(key, deadline);
    context.changed(key, 'g', 'expire');
    context.effect('PEXPIREAT', key, deadline);
  }
  reply.integer(1);
}

/** Replies with the time of expiry, or -1 when there is none, or -2 when the key does not exist. */
function timeOfExpiry(context: Context, seconds: boolean, relative: boolean): void {
  const key = context.args[1];
  if (typeOf(context, key) === Type.None) {
    context.reply.integer(-2);
    return;
  }
  const deadline = context.db.expiry(key);
  if (deadline === 0) {
    context.reply.integer(-1);
    return;
  }
  const time = Math.max(0, relative ? deadline - context.now : deadline);
  context.reply.integer(seconds ? Math.floor((time + 500) / 1000) : time);
}

function persist(context: Context): void {
  const key = context.args[1];
  if (context.db.expiry(key) === 0) {
    context.reply.integer(0);
    return;
  }
  context.db.setExpiry(key, 0);
  context.changed(key, 'g', 'persist');
  context.reply.integer(1);
}

function keys(context: Context): void {
  const { db, reply } = context;
  const pattern = context.args[1];
  if (isLiteral(pattern)) {
    const exists = db.type(pattern) !== Type.None;
    reply.array(exists ? 1 : 0);
    if (exists) reply.bulk(pattern);
    return;
  }
  if (!context.nested && !context.store.residency().complete) return keysInParts(context);
  const all = matchesEverything(pattern);
  const mark = reply.beginDeferred();
  let count = 0;
  let cursor = 0;
  do {
    cursor = db.scan(cursor, Number.MAX_SAFE_INTEGER, (key) => {
      if (!all && !matchGlob(pattern, key)) return;
      reply.bulk(key);
      count++;
    });
  } while (cursor !== 0);
  reply.endDeferred(mark, 'array', count);
}

/** Keys that one part of KEYS goes through, when not all are in memory. */
const KEYS_PART = 1000;

interface KeysProgress {
  cursor: number;
  /** The keys found, as they are replied. */
  found: RespWriter;
  count: number;
}

/** KEYS over more than the memory holds: a part that is done stays done, and its keys may leave again. */
function keysInParts(context: Context): void {
  const { db, reply } = context;
  const pattern = context.args[1];
  const all = matchesEverything(pattern);
  let progress = (context.progress ?? { cursor: 0, found: new RespWriter(), count: 0 }) as KeysProgress;
  do {
    found.clear();
    let { count } = progress;
    const cursor = db.scan(progress.cursor, KEYS_PART, (key) => {
      if (!all && !matchGlob(pattern, key)) return;
      found.bulk(key);
      count++;
    });
    progress.found.copy(found.u8, 0, found.pos);
    progress = { cursor, found: progress.found, count };
    context.advance(progress);
  } while (progress.cursor !== 0);
  context.endParts();
  reply.array(progress.count);
  reply.copy(progress.found.u8, 0, progress.found.pos);
}

function scan(context: Context): void {
  const { args, argc, reply } = context;
  const cursor = scanCursor(context, 1);
  let count = 10;
  let pattern: Slice | null = null;
  let typeName: string | null = null;
  for (let i = 2; i < argc; i += 2) {
    if (i + 1 >= argc) throw syntaxError();
    if (context.is(i, 'count')) {
      count = clampedInteger(context, i + 1);
      if (count < 1) throw syntaxError();
    } else if (context.is(i, 'match')) {
      pattern = matchesEverything(args[i + 1]) ? null : args[i + 1];
    } else if (context.is(i, 'type')) {
      typeName = context.word(i + 1);
    } else {
      throw syntaxError();
    }
  }
  found.clear();
  let matching = 0;
  const next = context.db.scan(cursor, count, (key, type) => {
    if (pattern !== null && !matchGlob(pattern, key)) return;
    if (typeName !== null && typeName !== TYPE_NAMES[type]) return;
    found.bulk(key);
    matching++;
  });
  reply.array(2);
  reply.bulkString(String(next));
  reply.array(matching);
  reply.copy(found.u8, 0, found.pos);
}

function random(context: Context): void {
  if (context.db.randomKey(context.random(), randomKey)) context.reply.bulk(randomKey);
  else context.reply.null();
}

/** Clients may wait for lists, sorted sets and streams; a key that comes to be by other means wakes them too. */
function wake(context: Context, key: Slice, db: Database): void {
  const type = db.type(key);
  if (type === Type.List || type === Type.ZSet || type === Type.Stream) context.ready(key, db);
}

/** False when the new name is taken and must not be. */
function renamed(context: Context, replace: boolean): boolean {
  const [, from, to] = context.args;
  const { db } = context;
  if (db.type(from) === Type.None) throw new CommandError(NO_SUCH_KEY);
  if (from.equals(to)) return replace;
  if (!replace && db.type(to) !== Type.None) return false;
  context.event(to, 'n', 'new');
  db.rename(from, db, to);
  context.changed(from, 'g', 'rename_from');
  context.changed(to, 'g', 'rename_to');
  wake(context, to, db);
  return true;
}

function rename(context: Context): void {
  renamed(context, true);
  context.reply.ok();
}

function renamenx(context: Context): void {
  context.reply.integer(renamed(context, false) ? 1 : 0);
}

function move(context: Context): void {
  const { db, reply } = context;
  const key = context.args[1];
  const target = databaseArgument(context, 2);
  if (target.index === db.index) throw new CommandError(SAME_OBJECT);
  if (db.type(key) === Type.None || target.type(key) !== Type.None) {
    reply.integer(0);
    return;
  }
  context.event(key, 'n', 'new', target);
  db.rename(key, target, key);
  context.changed(key, 'g', 'move_from');
  context.changed(key, 'g', 'move_to', target);
  wake(context, key, target);
  reply.integer(1);
}

function copy(context: Context): void {
  const { db, reply } = context;
  const [, from, to] = context.args;
  let target = db;
  let replace = false;
  for (let i = 3; i < context.argc; i++) {
    if (context.is(i, 'replace')) replace = true;
    else if (context.is(i, 'db') && i + 1 < context.argc) target = databaseArgument(context, ++i);
    else throw syntaxError();
  }
  if (target.index === db.index && from.equals(to)) throw new CommandError(SAME_OBJECT);
  if (typeOf(context, from) === Type.None || (!replace && target.type(to) !== Type.None)) {
    reply.integer(0);
    return;
  }
  context.event(to, 'n', 'new', target);
  db.copy(from, target, to);
  context.changed(to, 'g', 'copy_to', target);
  wake(context, to, target);
  reply.integer(1);
}

/** What the four commands that set a deadline, and the four that tell it, have in common. */
const expiring = {
  arity: -3,
  flags: ['write', 'fast'],
  categories: ['keyspace'],
  keys: [keyAt(1, 'RW', 'update')],
  group: 'generic',
  complexity: 'O(1)',
} as const;
const telling = {
  arity: 2,
  flags: ['readonly', 'fast'],
  categories: ['keyspace'],
  keys: [keyAt(1, 'RO', 'access')],
  group: 'generic',
  complexity: 'O(1)',
} as const;

export const keyCommands: readonly Command[] = [
  {
    name: 'del',
    arity: -2,
    syntax: 'key...',
    flags: ['write'],
    categories: ['keyspace'],
    keys: [keysFrom(1, -1, 'RM', 'delete')],
    group: 'generic',
    since: '1.0.0',
    complexity: 'O(N), N being the number of keys; the memory of large values is freed later',
    tips: ['request_policy:multi_shard', 'response_policy:agg_sum'],
    summary: 'Deletes keys.',
    run: del,
  },
  {
    name: 'unlink',
    arity: -2,
    syntax: 'key...',
    flags: ['write', 'fast'],
    categories: ['keyspace'],
    keys: [keysFrom(1, -1, 'RM', 'delete')],
    group: 'generic',
    since: '4.0.0',
    complexity: 'O(N), N being the number of keys; the memory of large values is freed later',
    tips: ['request_policy:multi_shard', 'response_policy:agg_sum'],
    summary: 'Deletes keys, as DEL, which does not wait for their memory here either.',
    run: del,
  },
  {
    name: 'exists',
    arity: -2,
    syntax: 'key...',
    flags: ['readonly', 'fast'],
    categories: ['keyspace'],
    keys: [keysFrom(1, -1, 'RO')],
    group: 'generic',
    since: '1.0.0',
    complexity: 'O(N), N being the number of keys',
    tips: ['request_policy:multi_shard', 'response_policy:agg_sum'],
    summary: 'Counts which of the keys exist.',
    run: countExisting,
  },
  {
    name: 'touch',
    arity: -2,
    syntax: 'key...',
    flags: ['readonly', 'fast'],
    categories: ['keyspace'],
    keys: [keysFrom(1, -1, 'RO')],
    group: 'generic',
    since: '3.2.1',
    complexity: 'O(N), N being the number of keys',
    tips: ['request_policy:multi_shard', 'response_policy:agg_sum'],
    summary: 'Marks keys as used and counts which of them exist.',
    run: touch,
  },
  {
    name: 'type',
    arity: 2,
    syntax: 'key',
    flags: ['readonly', 'fast'],
    categories: ['keyspace'],
    keys: [keyAt(1, 'RO')],
    group: 'generic',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Tells the type of the value at a key.',
    run: type,
  },
  {
    ...expiring,
    name: 'expire',
    syntax: 'key seconds [condition(NX|XX|GT|LT)]',
    since: '1.0.0',
    summary: 'Lets a key expire after so many seconds.',
    run: (context) => expire(context, true, true),
  },
  {
    ...expiring,
    name: 'pexpire',
    syntax: 'key milliseconds [condition(NX|XX|GT|LT)]',
    since: '2.6.0',
    summary: 'Lets a key expire after so many milliseconds.',
    run: (context) => expire(context, false, true),
  },
  {
    ...expiring,
    name: 'expireat',
    syntax: 'key unix-time-seconds [condition(NX|XX|GT|LT)]',
    since: '1.2.0',
    summary: 'Lets a key expire at a Unix time in seconds.',
    run: (context) => expire(context, true, false),
  },
  {
    ...expiring,
    name: 'pexpireat',
    syntax: 'key unix-time-milliseconds [condition(NX|XX|GT|LT)]',
    since: '2.6.0',
    summary: 'Lets a key expire at a Unix time in milliseconds.',
    run: (context) => expire(context, false, false),
  },
  {
    ...telling,
    name: 'ttl',
    syntax: 'key',
    since: '1.0.0',
    tips: ['nondeterministic_output'],
    summary: 'Tells in how many seconds a key expires.',
    run: (context) => timeOfExpiry(context, true, true),
  },
  {
    ...telling,
    name: 'pttl',
    syntax: 'key',
    since: '2.6.0',
    tips: ['nondeterministic_output'],
    summary: 'Tells in how many milliseconds a key expires.',
    run: (context) => timeOfExpiry(context, false, true),
  },
  {
    ...telling,
    name: 'expiretime',
    syntax: 'key',
    since: '7.0.0',
    summary: 'Tells at which Unix time in seconds a key expires.',
    run: (context) => timeOfExpiry(context, true, false),
  },
  {
    ...telling,
    name: 'pexpiretime',
    syntax: 'key',
    since: '7.0.0',
    summary: 'Tells at which Unix time in milliseconds a key expires.',
    run: (context) => timeOfExpiry(context, false, false),
  },
  {
    ...expiring,
    name: 'persist',
    arity: 2,
    syntax: 'key',
    since: '2.2.0',
    summary: 'Clears the deadline of a key.',
    run: persist,
  },
  {
    name: 'keys',
    arity: 2,
    syntax: 'pattern',
    flags: ['readonly'],
    categories: ['keyspace', 'dangerous'],
    group: 'generic',
    since: '1.0.0',
    complexity: 'O(N), N being the number of keys in the database',
    tips: ['request_policy:all_shards', 'nondeterministic_output_order'],
    summary: 'Returns all keys that match a pattern.',
    run: keys,
  },
  {
    name: 'scan',
    arity: -2,
    syntax: 'cursor [MATCH pattern] [COUNT count] [TYPE type]',
    flags: ['readonly'],
    categories: ['keyspace'],
    group: 'generic',
    since: '2.8.0',
    complexity: 'O(1) for a call, O(N) for a whole iteration over N keys',
    tips: ['nondeterministic_output', 'request_policy:special'],
    summary: 'Goes through the keys of the database in steps.',
    run: scan,
  },
  {
    name: 'randomkey',
    arity: 1,
    flags: ['readonly'],
    categories: ['keyspace'],
    group: 'generic',
    since: '1.0.0',
    complexity: 'O(1)',
    tips: ['request_policy:all_shards', 'nondeterministic_output'],
    summary: 'Returns a random key.',
    run: random,
  },
  {
    name: 'rename',
    arity: 3,
    syntax: 'key newkey',
    flags: ['write'],
    categories: ['keyspace'],
    keys: [keyAt(1, 'RW', 'access', 'delete'), keyAt(2, 'OW', 'update')],
    group: 'generic',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Gives a value another key, replacing what is there.',
    run: rename,
  },
  {
    name: 'renamenx',
    arity: 3,
    syntax: 'key newkey',
    flags: ['write', 'fast'],
    categories: ['keyspace'],
    keys: [keyAt(1, 'RW', 'access', 'delete'), keyAt(2, 'OW', 'insert')],
    group: 'generic',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Gives a value another key unless that exists.',
    run: renamenx,
  },
  {
    name: 'copy',
    arity: -3,
    syntax: 'source destination [DB destination-db] [REPLACE]',
    flags: ['write', 'denyoom'],
    categories: ['keyspace'],
    keys: [keyAt(1, 'RO', 'access'), keyAt(2, 'OW', 'update')],
    group: 'generic',
    since: '6.2.0',
    complexity: 'O(N), N being the size of the value',
    summary: 'Copies a value to another key, in the same or another database.',
    run: copy,
  },
  {
    name: 'move',
    arity: 3,
    syntax: 'key db',
    flags: ['write', 'fast'],
    categories: ['keyspace'],
    keys: [keyAt(1, 'RW', 'access', 'update')],
    group: 'generic',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Moves a key to another database unless it exists there.',
    run: move,
  },
  objectCommand,
  ...sortCommands,
];
