/** Hashes. */
import { addExtended, formatExtended, parseExtended, type Extended } from '../../bytes/extended.ts';
import { INT64_MAX, INT64_MIN, parseInt64, sliceInteger } from '../../bytes/number.ts';
import { Scratch } from '../../bytes/scratch.ts';
import { Slice } from '../../bytes/slice.ts';
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { hashFieldSet } from '../encoding.ts';
import {
  INCREMENT_OVERFLOW,
  NAN_OR_INFINITY,
  NOT_FLOAT,
  NOT_INTEGER,
  wrongArgumentCount,
} from '../errors.ts';
import { announceKey } from './announce.ts';
import { scanCollection } from './collection-scan.ts';
import { keyAt } from './key-specs.ts';
import { forEachSampled, randomRank, sampleCount, sampledCount } from './sampling.ts';
import { readHash } from './lookups.ts';

const field = new Slice();
const value = new Slice();
const scratch = new Scratch();
const EXTENDED_ZERO: Extended = { mantissa: 0n, exponent: 0 };

/** Returns how many of the fields are new. */
function setFields(context: Context, name: string): number {
  const { args, argc } = context;
  if ((argc & 1) === 1) throw new CommandError(wrongArgumentCount(name));
  const key = args[1];
  const hash = context.db.hash(key, true);
  const before = hash.size;
  let size = before;
  for (let i = 2; i < argc; i += 2) {
    if (hash.set(args[i], args[i + 1])) size++;
    hashFieldSet(context, key, size, args[i], args[i + 1]);
  }
  if (before === 0) announceKey(context, key);
  context.changed(key, 'h', 'hset');
  return size - before;
}

function hset(context: Context): void {
  context.reply.integer(setFields(context, 'hset'));
}

function hmset(context: Context): void {
  setFields(context, 'hmset');
  context.reply.ok();
}

function hsetnx(context: Context): void {
  const { args, db, reply } = context;
  if (db.hash(args[1])?.get(args[2], value)) return reply.integer(0);
  setFields(context, 'hsetnx');
  reply.integer(1);
}

function hget(context: Context): void {
  const { args, reply } = context;
  if (readHash(context, args[1])?.get(args[2], value)) reply.bulk(value);
  else reply.null();
}

function hmget(context: Context): void {
  const { args, argc, reply } = context;
  const hash = readHash(context, args[1]);
  reply.array(argc - 2);
  for (let i = 2; i < argc; i++) {
    if (hash?.get(args[i], value)) reply.bulk(value);
    else reply.null();
  }
}

function hdel(context: Context): void {
  const { args, argc } = context;
  const key = args[1];
  const hash = context.db.hash(key);
  if (hash === null) return context.reply.integer(0);
  const { size } = hash;
  let removed = 0;
  for (let i = 2; i < argc && removed < size; i++) if (hash.remove(args[i])) removed++;
  if (removed > 0) context.changed(key, 'h', 'hdel');
  if (removed === size) context.event(key, 'g', 'del');
  context.reply.integer(removed);
}

function hlen(context: Context): void {
  context.reply.integer(readHash(context, context.args[1])?.size ?? 0);
}

function hexists(context: Context): void {
  const { args } = context;
  context.reply.integer(readHash(context, args[1])?.get(args[2], value) ? 1 : 0);
}

function hstrlen(context: Context): void {
  const { args } = context;
  context.reply.integer(readHash(context, args[1])?.get(args[2], value) ? value.length : 0);
}

function hkeys(context: Context): void {
  const { reply } = context;
  const hash = readHash(context, context.args[1]);
  reply.array(hash?.size ?? 0);
  hash?.forEachFrom(0, (each) => {
    reply.bulk(each);
    return true;
  });
}

function hvals(context: Context): void {
  const { reply } = context;
  const hash = readHash(context, context.args[1]);
  reply.array(hash?.size ?? 0);
  hash?.forEachFrom(0, (_, each) => {
    reply.bulk(each);
    return true;
  });
}

function hgetall(context: Context): void {
  const { reply } = context;
  const hash = readHash(context, context.args[1]);
  reply.map(hash?.size ?? 0);
  hash?.forEachFrom(0, (eachField, eachValue) => {
    reply.bulk(eachField);
    reply.bulk(eachValue);
    return true;
  });
}

/** Sets the field that an increment is for. */
function setIncremented(context: Context, text: Slice, event: string): void {
  const { args, db } = context;
  const key = args[1];
  const hash = db.hash(key, true);
  const created = hash.size === 0;
  hash.set(args[2], text);
  hashFieldSet(context, key, hash.size, args[2], text);
  if (created) announceKey(context, key);
  context.changed(key, 'h', event);
}

function hincrby(context: Context): void {
  const { args, db } = context;
  const increment = sliceInteger(args[3]);
  if (Number.isNaN(increment) && parseInt64(args[3]) === undefined) throw new CommandError(NOT_INTEGER);
  const found = db.hash(args[1])?.get(args[2], value);
  const sum = (found ? sliceInteger(value) : 0) + increment;
  const result = Number.isSafeInteger(sum) ? sum : addLong(context, found ? value : null);
  setIncremented(context, scratch.integer(result), 'hincrby');
  context.reply.integer(result);
}

/** The sum of a stored value (null: 0) and args[3] when one of them, or the sum, is no safe integer. */
function addLong(context: Context, stored: Slice | null): bigint {
  const old = stored === null ? 0n : parseInt64(stored);
  if (old === undefined) throw new CommandError('ERR hash value is not an integer');
  const sum = old + parseInt64(context.args[3])!;
  if (sum < INT64_MIN || sum > INT64_MAX) throw new CommandError(INCREMENT_OVERFLOW);
  return sum;
}

/** Logged with the result: another machine may add differently in the last digit. */
function hincrbyfloat(context: Context): void {
  const { args, db } = context;
  const increment = parseExtended(args[3]);
  if (increment === undefined) throw new CommandError(NOT_FLOAT);
  if (increment.exponent === Infinity) throw new CommandError('ERR value is NaN or Infinity');
  const old = db.hash(args[1])?.get(args[2], value) ? parseExtended(value) : EXTENDED_ZERO;
  if (old === undefined) throw new CommandError('ERR hash value is not a float');
  const sum = addExtended(old, increment);
  if (sum === undefined) throw new CommandError(NAN_OR_INFINITY);
  const text = scratch.ascii(formatExtended(sum));
  setIncremented(context, text, 'hincrbyfloat');
  context.effect('HSET', args[1], args[2], text);
  context.reply.bulk(text);
}

function hrandfield(context: Context): void {
  const { args, argc, reply } = context;
  if (argc === 2) {
    const hash = readHash(context, args[1]);
    if (hash === null) return reply.null();
    hash.at(randomRank(context, hash.size), field, value);
    return reply.bulk(field);
  }
  const withValues = argc > 3;
  const count = sampleCount(context, 'withvalues');
  const hash = readHash(context, args[1]);
  if (hash === null || count === 0) return reply.array(0);
  const { size } = hash;
  const nested = withValues && reply.protocol === 3;
  const sampled = sampledCount(size, count);
  reply.array(withValues && !nested ? sampled * 2 : sampled);
  forEachSampled(context, size, count, (rank) => {
    hash.at(rank, field, value);
    if (nested) reply.array(2);
    reply.bulk(field);
    if (withValues) reply.bulk(value);
  });
}

function hscan(context: Context): void {
  scanCollection(context, (key) => readHash(context, key), 'value');
}

export const hashCommands: readonly Command[] = [
  {
    name: 'hset',
    arity: -4,
    syntax: 'key field_value(field value)...',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['hash'],
    keys: [keyAt(1, 'RW', 'update')],
    group: 'hash',
    since: '2.0.0',
    complexity: 'O(N) for N fields given',
    summary: 'Sets fields of a hash, which is created if needed.',
    run: hset,
  },
  {
    name: 'hmset',
    arity: -4,
    syntax: 'key field_value(field value)...',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['hash'],
    keys: [keyAt(1, 'RW', 'update')],
    group: 'hash',
    since: '2.0.0',
    deprecated: { since: '4.0.0', use: '`HSET`' },
    complexity: 'O(N) for N fields given',
    summary: 'Sets fields of a hash, which is created if needed; HSET does the same.',
    run: hmset,
  },
  {
    name: 'hsetnx',
    arity: 4,
    syntax: 'key field value',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['hash'],
    keys: [keyAt(1, 'RW', 'insert')],
    group: 'hash',
    since: '2.0.0',
    complexity: 'O(1)',
    summary: 'Sets a field of a hash unless it exists.',
    run: hsetnx,
  },
  {
    name: 'hget',
    arity: 3,
    syntax: 'key field',
    flags: ['readonly', 'fast'],
    categories: ['hash'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'hash',
    since: '2.0.0',
    complexity: 'O(1)',
    summary: 'Returns the value of a field.',
    run: hget,
  },
  {
    name: 'hmget',
    arity: -3,
    syntax: 'key field...',
    flags: ['readonly', 'fast'],
    categories: ['hash'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'hash',
    since: '2.0.0',
    complexity: 'O(N) for N fields given',
    summary: 'Returns the values of several fields.',
    run: hmget,
  },
  {
    name: 'hdel',
    arity: -3,
    syntax: 'key field...',
    flags: ['write', 'fast'],
    categories: ['hash'],
    keys: [keyAt(1, 'RW', 'delete')],
    group: 'hash',
    since: '2.0.0',
    complexity: 'O(N) for N fields given',
    summary: 'Removes fields from a hash.',
    run: hdel,
  },
  {
    name: 'hlen',
    arity: 2,
    syntax: 'key',
    flags: ['readonly', 'fast'],
    categories: ['hash'],
    keys: [keyAt(1, 'RO')],
    group: 'hash',
    since: '2.0.0',
    complexity: 'O(1)',
    summary: 'Tells how many fields a hash has.',
    run: hlen,
  },
  {
    name: 'hexists',
    arity: 3,
    syntax: 'key field',
    flags: ['readonly', 'fast'],
    categories: ['hash'],
    keys: [keyAt(1, 'RO')],
    group: 'hash',
    since: '2.0.0',
    complexity: 'O(1)',
    summary: 'Tells whether a hash has a field.',
    run: hexists,
  },
  {
    name: 'hstrlen',
    arity: 3,
    syntax: 'key field',
    flags: ['readonly', 'fast'],
    categories: ['hash'],
    keys: [keyAt(1, 'RO')],
    group: 'hash',
    since: '3.2.0',
    complexity: 'O(1)',
    summary: 'Tells how long the value of a field is.',
    run: hstrlen,
  },
  {
    name: 'hkeys',
    arity: 2,
    syntax: 'key',
    flags: ['readonly'],
    categories: ['hash'],
    tips: ['nondeterministic_output_order'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'hash',
    since: '2.0.0',
    complexity: 'O(N) for N fields in the hash',
    summary: 'Returns all fields of a hash.',
    run: hkeys,
  },
  {
    name: 'hvals',
    arity: 2,
    syntax: 'key',
    flags: ['readonly'],
    categories: ['hash'],
    tips: ['nondeterministic_output_order'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'hash',
    since: '2.0.0',
    complexity: 'O(N) for N fields in the hash',
    summary: 'Returns all values of a hash.',
    run: hvals,
  },
  {
    name: 'hgetall',
    arity: 2,
    syntax: 'key',
    flags: ['readonly'],
    categories: ['hash'],
    tips: ['nondeterministic_output_order'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'hash',
    since: '2.0.0',
    complexity: 'O(N) for N fields in the hash',
    summary: 'Returns all fields of a hash with their values.',
    run: hgetall,
  },
  {
    name: 'hincrby',
    arity: 4,
    syntax: 'key field increment',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['hash'],
    keys: [keyAt(1, 'RW', 'access', 'update')],
    group: 'hash',
    since: '2.0.0',
    complexity: 'O(1)',
    summary: 'Adds to the integer in a field, which counts as 0 if absent.',
    run: hincrby,
  },
  {
    name: 'hincrbyfloat',
    arity: 4,
    syntax: 'key field increment:double',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['hash'],
    keys: [keyAt(1, 'RW', 'access', 'update')],
    group: 'hash',
    since: '2.6.0',
    complexity: 'O(1)',
    summary: 'Adds to the number in a field, which counts as 0 if absent.',
    run: hincrbyfloat,
  },
  {
    name: 'hrandfield',
    arity: -2,
    syntax: 'key [options(count [WITHVALUES])]',
    flags: ['readonly'],
    categories: ['hash'],
    tips: ['nondeterministic_output'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'hash',
    since: '6.2.0',
    complexity: 'O(N*log(M)) for N fields returned of a hash of M',
    summary: 'Returns random fields of a hash.',
    run: hrandfield,
  },
  {
    name: 'hscan',
    arity: -3,
    syntax: 'key cursor [MATCH pattern] [COUNT count]',
    flags: ['readonly'],
    categories: ['hash'],
    tips: ['nondeterministic_output'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'hash',
    since: '2.8.0',
    complexity: 'O(1) for a call, O(N) for a whole iteration over N fields',
    summary: 'Goes through the fields of a hash in steps.',
    run: hscan,
  },
];
