/** Strings. SET, GET, INCR and MSET are the hot path: they make no object and no text. */
import { addExtended, formatExtended, parseExtended, type Extended } from '../../bytes/extended.ts';
import { INT64_MAX, INT64_MIN, parseInt64, sliceInteger } from '../../bytes/number.ts';
import { ByteSink } from '../../bytes/sink.ts';
import { Slice } from '../../bytes/slice.ts';
import { PREFETCH_KEYS_MAX, Type, WrongTypeError, type StringValue } from '../../store/api.ts';
import { CommandError, type Command, type KeyPosition } from '../command.ts';
import type { Context } from '../context.ts';
import { Encoding, stringChangedInPlace } from '../encoding.ts';
import {
  INCREMENT_OVERFLOW,
  NAN_OR_INFINITY,
  NOT_FLOAT,
  NOT_INTEGER,
  STRING_TOO_LONG,
  syntaxError,
  wrongArgumentCount,
} from '../errors.ts';
import { announceIfNew, lookedUp } from './announce.ts';
import { clampedInteger } from './arguments.ts';
import { deadlineArgument } from './deadlines.ts';
import { keyAt, keysFrom } from './key-specs.ts';
import { longestCommonSubsequence } from './lcs.ts';

/** A stored string, as the store shows it. */
const stored = new Slice();
/** A number's text, written here and given to the store. */
const text = new Slice();
const digits = new ByteSink(64);
/** Keys that are read ahead. */
const ahead: Slice[] = [];

/** Shows the string at a key that is read in `stored`; false when there is none. */
function read(context: Context, key: Slice): boolean {
  const found = context.db.getString(key, stored);
  lookedUp(context, key, found);
  return found;
}

/** Replies with the string at args[1], or null; false when there is none. */
function replyString(context: Context): boolean {
  const found = read(context, context.args[1]);
  if (found) context.reply.bulk(stored);
  else context.reply.null();
  return found;
}

/** The string at args[1], to be read. */
function open(context: Context): StringValue | null {
  const key = context.args[1];
  const value = context.db.string(key);
  lookedUp(context, key, value !== null);
  return value;
}

const Expiration = { None: 0, Ex: 1, Px: 2, ExAt: 3, PxAt: 4, Keep: 5, Persist: 6 } as const;
type Expiration = (typeof Expiration)[keyof typeof Expiration];

/** The option at args[i] that takes a time; None when it is another word. */
function timedOption(context: Context, i: number): Expiration {
  if (context.is(i, 'ex')) return Expiration.Ex;
  if (context.is(i, 'px')) return Expiration.Px;
  if (context.is(i, 'exat')) return Expiration.ExAt;
  if (context.is(i, 'pxat')) return Expiration.PxAt;
  return Expiration.None;
}

/** The deadline that the option with its time at args[i] asks for. */
function deadline(context: Context, expiration: Expiration, i: number): number {
  const seconds = expiration === Expiration.Ex || expiration === Expiration.ExAt;
  const relative = expiration === Expiration.Ex || expiration === Expiration.Px;
  return deadlineArgument(context, i, { seconds, relative, positive: true });
}

/** SET reads the key only with GET. */
function setKeys(args: readonly Slice[], argc: number): KeyPosition[] {
  const reads = args.slice(3, argc).some((arg) => arg.length === 3 && arg.latin1().toLowerCase() === 'get');
  return [{ index: 1, access: reads ? ['RW', 'access', 'update'] : ['OW', 'update'] }];
}

function set(context: Context): void {
  const { args, db } = context;
  const key = args[1];
  if (context.argc === 3) {
    announceIfNew(context, key);
    db.setString(key, args[2]);
    context.changed(key, '$', 'set');
    context.reply.ok();
    return;
  }
  let condition: '' | 'nx' | 'xx' = '';
  let get = false;
  let expiration: Expiration = Expiration.None;
  let timeAt = 0;
  for (let i = 3; i < context.argc; i++) {
    const timed = timedOption(context, i);
    if (timed !== Expiration.None && i + 1 < context.argc) {
      // Only the same option may be repeated; the last one counts.
      if (expiration !== Expiration.None && expiration !== timed) throw syntaxError();
      expiration = timed;
      timeAt = ++i;
    } else if (context.is(i, 'nx') && condition !== 'xx') {
      condition = 'nx';
    } else if (context.is(i, 'xx') && condition !== 'nx') {
      condition = 'xx';
    } else if (context.is(i, 'get')) {
      get = true;
    } else if (
      context.is(i, 'keepttl') &&
      (expiration === Expiration.None || expiration === Expiration.Keep)
    ) {
      expiration = Expiration.Keep;
    } else {
      throw syntaxError();
    }
  }
  const until = timeAt > 0 ? deadline(context, expiration, timeAt) : 0;
  if (get) replyString(context);
  if (condition !== '' && (db.type(key) === Type.None) !== (condition === 'nx')) {
    if (!get) context.reply.null();
    return;
  }
  announceIfNew(context, key);
  const kept = expiration === Expiration.Keep ? db.expiry(key) : 0;
  db.setString(key, args[2]);
  if (kept !== 0) db.setExpiry(key, kept);
  context.changed(key, '$', 'set');
  if (timeAt > 0) expireNew(context, key, args[2], until);
  if (!get) context.reply.ok();
}

/** Gives a string that was just set its deadline, and logs both as one. */
function expireNew(context: Context, key: Slice, value: Slice, until: number): void {
  context.db.setExpiry(key, until);
  context.event(key, 'g', 'expire');
  context.effect('SET', key, value, 'PXAT', until);
}

function setAndExpire(context: Context, expiration: Expiration): void {
  const [, key, , value] = context.args;
  const until = deadline(context, expiration, 2);
  announceIfNew(context, key);
  context.db.setString(key, value);
  context.changed(key, '$', 'set');
  expireNew(context, key, value, until);
  context.reply.ok();
}

function setnx(context: Context): void {
  const { args, db } = context;
  if (db.type(args[1]) !== Type.None) {
    context.reply.integer(0);
    return;
  }
  context.event(args[1], 'n', 'new');
  db.setString(args[1], args[2]);
  context.changed(args[1], '$', 'set');
  context.reply.integer(1);
}

function getset(context: Context): void {
  const { args } = context;
  if (!replyString(context)) context.event(args[1], 'n', 'new');
  context.db.setString(args[1], args[2]);
  context.changed(args[1], '$', 'set');
  context.effect('SET', args[1], args[2]);
}

function getdel(context: Context): void {
  const key = context.args[1];
  if (!replyString(context)) return;
  context.db.remove(key);
  context.changed(key, 'g', 'del');
  context.effect('DEL', key);
}

function getex(context: Context): void {
  const { db } = context;
  const key = context.args[1];
  let expiration: Expiration = Expiration.None;
  let timeAt = 0;
  for (let i = 2; i < context.argc; i++) {
    const timed = timedOption(context, i);
    if (timed !== Expiration.None && i + 1 < context.argc) {
      if (expiration !== Expiration.None && expiration !== timed) throw syntaxError();
      expiration = timed;
      timeAt = ++i;
    } else if (
      context.is(i, 'persist') &&
      (expiration === Expiration.None || expiration === Expiration.Persist)
    ) {
      expiration = Expiration.Persist;
    } else {
      throw syntaxError();
    }
  }
  if (!read(context, key)) {
    context.reply.null();
    return;
  }
  const until = timeAt > 0 ? deadline(context, expiration, timeAt) : 0;
  context.reply.bulk(stored);
  if (timeAt > 0 && until <= context.now) {
    db.remove(key);
    context.changed(key, 'g', 'del');
    context.effect('DEL', key);
  } else if (timeAt > 0) {
    db.setExpiry(key, until);
    context.changed(key, 'g', 'expire');
    context.effect('PEXPIREAT', key, until);
  } else if (expiration === Expiration.Persist && db.expiry(key) !== 0) {
    db.setExpiry(key, 0);
    context.changed(key, 'g', 'persist');
    context.effect('PERSIST', key);
  }
}

function mget(context: Context): void {
  const { args, reply, argc } = context;
  reply.array(argc - 1);
  try {
    for (let i = 1; i < argc; i++) {
      readAhead(context, i, 1);
      if (readIfString(context, args[i])) reply.bulk(stored);
      else reply.null();
    }
  } finally {
    context.store.prefetched();
  }
}

/** In a loop over keys that are every `step`th argument from args[1] on: every so often reads the next ones ahead. */
function readAhead(context: Context, i: number, step: number): void {
  const { args, argc } = context;
  if (((i - 1) / step) % PREFETCH_KEYS_MAX !== 0) return;
  let count = 0;
  for (; i < argc && count < PREFETCH_KEYS_MAX; i += step) ahead[count++] = args[i];
  if (count > 1) context.db.prefetch(ahead, count);
}

/** As `read`; what is no string counts as absent. */
function readIfString(context: Context, key: Slice): boolean {
  try {
    return read(context, key);
  } catch (error) {
    if (error instanceof WrongTypeError) return false;
    throw error;
  }
}

function setPairs(context: Context): void {
  const { args, db, argc } = context;
  try {
    for (let i = 1; i < argc; i += 2) {
      readAhead(context, i, 2);
      announceIfNew(context, args[i]);
      db.setString(args[i], args[i + 1]);
      context.changed(args[i], '$', 'set');
    }
  } finally {
    context.store.prefetched();
  }
}

function mset(context: Context): void {
  if ((context.argc & 1) === 0) throw new CommandError(wrongArgumentCount('mset'));
  setPairs(context);
  context.reply.ok();
}

function msetnx(context: Context): void {
  if ((context.argc & 1) === 0) throw new CommandError(wrongArgumentCount('msetnx'));
  for (let i = 1; i < context.argc; i += 2) {
    if (context.db.type(context.args[i]) !== Type.None) {
      context.reply.integer(0);
      return;
    }
  }
  setPairs(context);
  context.reply.integer(1);
}

function append(context: Context): void {
  const { args, db, reply } = context;
  const key = args[1];
  const value = db.string(key);
  if (value === null) {
    context.event(key, 'n', 'new');
    db.setString(key, args[2]);
    reply.integer(args[2].length);
  } else {
    checkLength(context, value.length + args[2].length);
    value.write(value.length, args[2]);
    reply.integer(value.length);
    stringChangedInPlace(db, key);
  }
  context.changed(key, '$', 'append');
}

/** A string may be as long as a bulk string of a request (`proto-max-bulk-len`). */
function checkLength(context: Context, length: number): void {
  if (length > context.server.requestLimits.bulkLengthMax) throw new CommandError(STRING_TOO_LONG);
}

function strlen(context: Context): void {
  context.reply.integer(open(context)?.length ?? 0);
}

function setrange(context: Context): void {
  const { args, db, reply } = context;
  const key = args[1];
  const part = args[3];
  const offset = clampedInteger(context, 2);
  if (offset < 0) throw new CommandError('ERR offset is out of range');
  if (part.length === 0) {
    reply.integer(db.string(key)?.length ?? 0);
    return;
  }
  db.string(key); // a wrong type comes before a wrong length
  checkLength(context, offset + part.length);
  announceIfNew(context, key);
  const value = db.string(key, true);
  value.write(offset, part);
  reply.integer(value.length);
  stringChangedInPlace(db, key);
  context.changed(key, '$', 'setrange');
}

function getrange(context: Context): void {
  let start = clampedInteger(context, 2);
  let end = clampedInteger(context, 3);
  const value = open(context);
  const length = value?.length ?? 0;
  const empty = start < 0 && end < 0 && start > end;
  if (start < 0) start = Math.max(0, length + start);
  if (end < 0) end = Math.max(0, length + end);
  end = Math.min(end, length - 1);
  const count = empty || value === null ? 0 : Math.max(0, end - start + 1);
  context.reply.beginBulk(count);
  if (count > 0) value!.read(start, end + 1, context.reply);
  context.reply.endBulk();
}

/** Adds to the integer at args[1], as a double as long as that is exact. */
function increment(context: Context, delta: number): void {
  const key = context.args[1];
  const exists = context.db.getString(key, stored);
  const sum = (exists ? sliceInteger(stored) : 0) + delta;
  if (!Number.isSafeInteger(sum)) {
    incrementLong(context, BigInt(delta));
    return;
  }
  if (!exists) context.event(key, 'n', 'new');
  digits.clear();
  digits.decimal(sum);
  text.set(digits.u8, digits.view, 0, digits.pos);
  context.db.replaceString(key, text);
  context.changed(key, '$', 'incrby');
  context.reply.integer(sum);
}

function incrementLong(context: Context, delta: bigint): void {
  const key = context.args[1];
  const value = context.db.getString(key, stored) ? parseInt64(stored) : 0n;
  if (value === undefined) throw new CommandError(NOT_INTEGER);
  const sum = value + delta;
  if (sum > INT64_MAX || sum < INT64_MIN) throw new CommandError(INCREMENT_OVERFLOW);
  announceIfNew(context, key);
  context.db.replaceString(key, Slice.from(sum.toString()));
  context.changed(key, '$', 'incrby');
  context.reply.integer(sum);
}

function incrby(context: Context): void {
  const delta = sliceInteger(context.args[2]);
  if (Number.isNaN(delta)) incrementLong(context, context.bigInteger(2));
  else increment(context, delta);
}

function decrby(context: Context): void {
  const delta = sliceInteger(context.args[2]);
  if (!Number.isNaN(delta)) {
    increment(context, -delta);
    return;
  }
  const long = context.bigInteger(2);
  if (long === INT64_MIN) throw new CommandError('ERR decrement would overflow');
  incrementLong(context, -long);
}

const EXTENDED_ZERO: Extended = { mantissa: 0n, exponent: 0 };

function incrbyfloat(context: Context): void {
  const { args, db } = context;
  const key = args[1];
  const value = db.getString(key, stored) ? parseExtended(stored) : EXTENDED_ZERO;
  const delta = parseExtended(args[2]);
  if (value === undefined || delta === undefined) throw new CommandError(NOT_FLOAT);
  const sum = addExtended(value, delta);
  if (sum === undefined) throw new CommandError(NAN_OR_INFINITY);
  const printed = Slice.from(formatExtended(sum));
  announceIfNew(context, key);
  db.replaceString(key, printed);
  db.setEncoding(key, Encoding.Text);
  context.changed(key, '$', 'incrbyfloat');
  context.effect('SET', key, printed, 'KEEPTTL');
  context.reply.bulk(printed);
}

const GETRANGE_COMPLEXITY = 'O(N), N being the length of the returned string';

export const stringCommands: readonly Command[] = [
  {
    name: 'set',
    arity: -3,
    syntax:
      'key value [condition(NX|XX)] [GET] ' +
      '[expiration(EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL)]',
    flags: ['write', 'denyoom'],
    categories: ['string'],
    keys: [keyAt(1, 'RW', 'access', 'update', 'variable_flags')],
    getKeys: setKeys,
    group: 'string',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Stores a string under a key, on conditions and with a deadline if asked for.',
    run: set,
  },
  {
    name: 'get',
    arity: 2,
    syntax: 'key',
    flags: ['readonly', 'fast'],
    categories: ['string'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'string',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Returns the string stored under a key.',
    run: replyString,
  },
  {
    name: 'setnx',
    arity: 3,
    syntax: 'key value',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['string'],
    keys: [keyAt(1, 'OW', 'insert')],
    group: 'string',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Stores a string unless the key exists.',
    run: setnx,
  },
  {
    name: 'setex',
    arity: 4,
    syntax: 'key seconds value',
    flags: ['write', 'denyoom'],
    categories: ['string'],
    keys: [keyAt(1, 'OW', 'update')],
    group: 'string',
    since: '2.0.0',
    complexity: 'O(1)',
    summary: 'Stores a string that expires after so many seconds.',
    run: (context) => setAndExpire(context, Expiration.Ex),
  },
  {
    name: 'psetex',
    arity: 4,
    syntax: 'key milliseconds value',
    flags: ['write', 'denyoom'],
    categories: ['string'],
    keys: [keyAt(1, 'OW', 'update')],
    group: 'string',
    since: '2.6.0',
    complexity: 'O(1)',
    summary: 'Stores a string that expires after so many milliseconds.',
    run: (context) => setAndExpire(context, Expiration.Px),
  },
  {
    name: 'getset',
    arity: 3,
    syntax: 'key value',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['string'],
    keys: [keyAt(1, 'RW', 'access', 'update')],
    group: 'string',
    since: '1.0.0',
    deprecated: { since: '6.2.0', use: '`SET … GET`' },
    complexity: 'O(1)',
    summary: 'Stores a string and returns the one it replaces.',
    run: getset,
  },
  {
    name: 'getdel',
    arity: 2,
    syntax: 'key',
    flags: ['write', 'fast'],
    categories: ['string'],
    keys: [keyAt(1, 'RW', 'access', 'delete')],
    group: 'string',
    since: '6.2.0',
    complexity: 'O(1)',
    summary: 'Returns a string and deletes its key.',
    run: getdel,
  },
  {
    name: 'getex',
    arity: -2,
    syntax:
      'key [expiration(EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST)]',
    flags: ['write', 'fast'],
    categories: ['string'],
    keys: [keyAt(1, 'RW', 'access', 'update')],
    group: 'string',
    since: '6.2.0',
    complexity: 'O(1)',
    summary: 'Returns a string and sets or clears the deadline of its key.',
    run: getex,
  },
  {
    name: 'mget',
    arity: -2,
    syntax: 'key...',
    flags: ['readonly', 'fast'],
    categories: ['string'],
    keys: [keysFrom(1, -1, 'RO', 'access')],
    group: 'string',
    since: '1.0.0',
    complexity: 'O(N), N being the number of keys',
    tips: ['request_policy:multi_shard'],
    summary: 'Returns the strings of several keys.',
    run: mget,
  },
  {
    name: 'mset',
    arity: -3,
    syntax: 'key_value(key value)...',
    flags: ['write', 'denyoom'],
    categories: ['string'],
    keys: [{ access: ['OW', 'update'], begin: { index: 1 }, find: { last: -1, step: 2 } }],
    group: 'string',
    since: '1.0.1',
    complexity: 'O(N), N being the number of keys',
    tips: ['request_policy:multi_shard', 'response_policy:all_succeeded'],
    summary: 'Stores several strings at once.',
    run: mset,
  },
  {
    name: 'msetnx',
    arity: -3,
    syntax: 'key_value(key value)...',
    flags: ['write', 'denyoom'],
    categories: ['string'],
    keys: [{ access: ['OW', 'insert'], begin: { index: 1 }, find: { last: -1, step: 2 } }],
    group: 'string',
    since: '1.0.1',
    complexity: 'O(N), N being the number of keys',
    tips: ['request_policy:multi_shard', 'response_policy:agg_min'],
    summary: 'Stores several strings at once, or none when one of the keys exists.',
    run: msetnx,
  },
  {
    name: 'append',
    arity: 3,
    syntax: 'key value',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['string'],
    keys: [keyAt(1, 'RW', 'insert')],
    group: 'string',
    since: '2.0.0',
    complexity: 'O(N), N being the length of what is appended',
    summary: 'Appends to a string; an absent one is created.',
    run: append,
  },
  {
    name: 'strlen',
    arity: 2,
    syntax: 'key',
    flags: ['readonly', 'fast'],
    categories: ['string'],
    keys: [keyAt(1, 'RO')],
    group: 'string',
    since: '2.2.0',
    complexity: 'O(1)',
    summary: 'Returns the length of a string in bytes.',
    run: strlen,
  },
  {
    name: 'setrange',
    arity: 4,
    syntax: 'key offset value',
    flags: ['write', 'denyoom'],
    categories: ['string'],
    keys: [keyAt(1, 'RW', 'update')],
    group: 'string',
    since: '2.2.0',
    complexity: 'O(N), N being the length of the part and of the gap before it',
    summary: 'Overwrites a part of a string, which grows with zero bytes as needed.',
    run: setrange,
  },
  {
    name: 'getrange',
    arity: 4,
    syntax: 'key start end',
    flags: ['readonly'],
    categories: ['string'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'string',
    since: '2.4.0',
    complexity: GETRANGE_COMPLEXITY,
    summary: 'Returns a part of a string.',
    run: getrange,
  },
  {
    name: 'substr',
    arity: 4,
    syntax: 'key start end',
    flags: ['readonly'],
    categories: ['string'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'string',
    since: '1.0.0',
    deprecated: { since: '2.0.0', use: '`GETRANGE`' },
    complexity: GETRANGE_COMPLEXITY,
    summary: 'Returns a part of a string, as GETRANGE, its newer name.',
    run: getrange,
  },
  {
    name: 'incr',
    arity: 2,
    syntax: 'key',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['string'],
    keys: [keyAt(1, 'RW', 'access', 'update')],
    group: 'string',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Adds one to an integer.',
    run: (context) => increment(context, 1),
  },
  {
    name: 'decr',
    arity: 2,
    syntax: 'key',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['string'],
    keys: [keyAt(1, 'RW', 'access', 'update')],
    group: 'string',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Subtracts one from an integer.',
    run: (context) => increment(context, -1),
  },
  {
    name: 'incrby',
    arity: 3,
    syntax: 'key increment',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['string'],
    keys: [keyAt(1, 'RW', 'access', 'update')],
    group: 'string',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Adds to an integer.',
    run: incrby,
  },
  {
    name: 'decrby',
    arity: 3,
    syntax: 'key decrement',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['string'],
    keys: [keyAt(1, 'RW', 'access', 'update')],
    group: 'string',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Subtracts from an integer.',
    run: decrby,
  },
  {
    name: 'incrbyfloat',
    arity: 3,
    syntax: 'key increment:double',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['string'],
    keys: [keyAt(1, 'RW', 'access', 'update')],
    group: 'string',
    since: '2.6.0',
    complexity: 'O(1)',
    summary: 'Adds a floating point number to a number.',
    run: incrbyfloat,
  },
  {
    name: 'lcs',
    arity: -3,
    syntax: 'key1 key2@0 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]',
    flags: ['readonly'],
    categories: ['string'],
    keys: [{ access: ['RO', 'access'], begin: { index: 1 }, find: { last: 1, step: 1 } }],
    group: 'string',
    since: '7.0.0',
    complexity: 'O(N*M), N and M being the lengths of the two strings',
    summary: 'Returns the longest subsequence that two strings have in common.',
    run: longestCommonSubsequence,
  },
];
