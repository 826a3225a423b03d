/** Lists. */
import { Slice } from '../../bytes/slice.ts';
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { INDEX_OUT_OF_RANGE, NO_SUCH_KEY, syntaxError, wrongArgumentCount } from '../errors.ts';
import { clampedInteger, integerFrom, positiveCount } from './arguments.ts';
import { blmove, blmpop, blpop, brpop, brpoplpush } from './blocking-lists.ts';
import { countedKeys, keyAt, keysFrom } from './key-specs.ts';
import { announceKey } from './announce.ts';
import { leftEnd, listMultiPop, move, takeMany, takeOne } from './list-ends.ts';
import { readList } from './lookups.ts';

const element = new Slice();

function push(context: Context, left: boolean): void {
  const { args, argc } = context;
  const key = args[1];
  const list = context.db.list(key, true);
  const created = list.length === 0;
  if (left) for (let i = 2; i < argc; i++) list.pushLeft(args[i]);
  else for (let i = 2; i < argc; i++) list.pushRight(args[i]);
  if (created) announceKey(context, key);
  context.changed(key, 'l', left ? 'lpush' : 'rpush');
  context.reply.integer(list.length);
}

function pushIfExists(context: Context, left: boolean): void {
  if (context.db.list(context.args[1]) === null) context.reply.integer(0);
  else push(context, left);
}

function pop(context: Context, left: boolean): void {
  const { argc, reply } = context;
  const key = context.args[1];
  if (argc === 2) {
    const list = context.db.list(key);
    if (list === null) reply.null();
    else takeOne(context, key, list, left);
    return;
  }
  if (argc > 3) throw new CommandError(wrongArgumentCount(left ? 'lpop' : 'rpop'));
  const count = positiveCount(context, 2);
  const list = context.db.list(key);
  if (list === null) reply.nullArray();
  else if (count === 0) reply.array(0);
  else takeMany(context, key, list, left, count);
}

function llen(context: Context): void {
  context.reply.integer(readList(context, context.args[1])?.length ?? 0);
}

function lindex(context: Context): void {
  const list = readList(context, context.args[1]);
  if (list === null) return context.reply.null();
  let index = clampedInteger(context, 2);
  if (index < 0) index += list.length;
  if (index >= 0 && list.at(index, element)) context.reply.bulk(element);
  else context.reply.null();
}

function lset(context: Context): void {
  const key = context.args[1];
  const list = context.db.list(key);
  if (list === null) throw new CommandError(NO_SUCH_KEY);
  let index = clampedInteger(context, 2);
  if (index < 0) index += list.length;
  if (index < 0 || index >= list.length) throw new CommandError(INDEX_OUT_OF_RANGE);
  list.set(index, context.args[3]);
  context.changed(key, 'l', 'lset');
  context.reply.ok();
}

function lrange(context: Context): void {
  const { reply } = context;
  let start = clampedInteger(context, 2);
  let stop = clampedInteger(context, 3);
  const list = readList(context, context.args[1]);
  if (list === null) return reply.array(0);
  const { length } = list;
  if (start < 0) start = Math.max(start + length, 0);
  if (stop < 0) stop += length;
  else if (stop >= length) stop = length - 1;
  if (start > stop) return reply.array(0);
  reply.array(stop - start + 1);
  list.copyFramed(start, stop - start + 1, reply);
}

function ltrim(context: Context): void {
  const key = context.args[1];
  let start = clampedInteger(context, 2);
  let stop = clampedInteger(context, 3);
  const list = context.db.list(key);
  if (list === null) return context.reply.ok();
  const { length } = list;
  if (start < 0) start = Math.max(start + length, 0);
  if (stop < 0) stop += length;
  else if (stop >= length) stop = length - 1;
  const emptied = start > stop;
  if (emptied) {
    context.db.remove(key);
  } else {
    if (stop < length - 1) list.remove(stop + 1, length - stop - 1);
    if (start > 0) list.remove(0, start);
  }
  context.changed(key, 'l', 'ltrim');
  if (emptied) context.event(key, 'g', 'del');
  context.reply.ok();
}

/** Removes whole runs of matches at once: each takes one search and one removal. */
function lrem(context: Context): void {
  const { args, db } = context;
  const key = args[1];
  const wanted = args[3];
  const count = clampedInteger(context, 2);
  const list = db.list(key);
  if (list === null) return context.reply.integer(0);
  const step = count < 0 ? -1 : 1;
  const { length } = list;
  let left = count === 0 ? length : Math.abs(count);
  let removed = 0;
  let lowest = 0;
  let run = 0;
  const findRun = (candidate: Slice, index: number): boolean => {
    if (!candidate.equals(wanted)) return run === 0;
    if (run === 0 || step < 0) lowest = index;
    return ++run < left;
  };
  let from = step < 0 ? length - 1 : 0;
  while (left > 0 && from >= 0 && from < length - removed) {
    run = 0;
    list.forEachFrom(from, step, findRun);
    if (run === 0) break;
    list.remove(lowest, run);
    removed += run;
    left -= run;
    from = step < 0 ? lowest - 1 : lowest;
  }
  if (removed > 0) context.changed(key, 'l', 'lrem');
  if (removed === length) context.event(key, 'g', 'del');
  context.reply.integer(removed);
}

function linsert(context: Context): void {
  const { args, reply } = context;
  const after = context.is(2, 'after');
  if (!after && !context.is(2, 'before')) throw syntaxError();
  const key = args[1];
  const pivot = args[3];
  const list = context.db.list(key);
  if (list === null) return reply.integer(0);
  let place = -1;
  list.forEachFrom(0, 1, (candidate, index) => {
    if (!candidate.equals(pivot)) return true;
    place = index;
    return false;
  });
  if (place < 0) return reply.integer(-1);
  list.insert(after ? place + 1 : place, args[4]);
  context.changed(key, 'l', 'linsert');
  reply.integer(list.length);
}

const LOWEST_RANK = '-9223372036854775808';

function lpos(context: Context): void {
  const { argc, args, reply } = context;
  const wanted = args[2];
  let rank = 1;
  let count = -1;
  let comparisons = 0;
  for (let i = 3; i < argc; i += 2) {
    if (i + 1 === argc) throw syntaxError();
    if (context.is(i, 'rank')) {
      rank = clampedInteger(context, i + 1);
      // Redis negates the lowest of all numbers, which stays what it is: the first match from the end will do.
      if (context.is(i + 1, LOWEST_RANK)) rank = -1;
      if (rank === 0) {
        throw new CommandError(
          "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... " +
            'or use negative to start from the end of the list',
        );
      }
    } else if (context.is(i, 'count')) {
      count = integerFrom(context, i + 1, 0, "ERR COUNT can't be negative");
    } else if (context.is(i, 'maxlen')) {
      comparisons = integerFrom(context, i + 1, 0, "ERR MAXLEN can't be negative");
    } else {
      throw syntaxError();
    }
  }
  const list = readList(context, args[1]);
  if (list === null) return count < 0 ? reply.null() : reply.array(0);

  const step = rank < 0 ? -1 : 1;
  const single = count < 0;
  let skip = Math.abs(rank) - 1;
  let matches = 0;
  if (comparisons === 0) comparisons = list.length;
  const mark = reply.beginDeferred();
  list.forEachFrom(step < 0 ? list.length - 1 : 0, step, (candidate, index) => {
    if (candidate.equals(wanted) && --skip < 0) {
      reply.integer(index);
      if (++matches === count || single) return false;
    }
    return --comparisons > 0;
  });
  if (!single) reply.endDeferred(mark, 'array', matches);
  else if (matches === 0) reply.null();
}

function moveBetween(context: Context, fromLeft: boolean, toLeft: boolean): void {
  const { args } = context;
  const source = context.db.list(args[1]);
  if (source === null) context.reply.null();
  else move(context, args[1], source, args[2], fromLeft, toLeft);
}

function lmove(context: Context): void {
  const fromLeft = leftEnd(context, 3);
  moveBetween(context, fromLeft, leftEnd(context, 4));
}

function lmpop(context: Context): void {
  const { args } = context;
  const { keyCount, left, count } = listMultiPop(context, 1);
  for (let i = 2; i < 2 + keyCount; i++) {
    const list = context.db.list(args[i]);
    if (list === null) continue;
    context.reply.array(2);
    context.reply.bulk(args[i]);
    const taken = takeMany(context, args[i], list, left, count);
    context.effect(left ? 'LPOP' : 'RPOP', args[i], taken);
    return;
  }
  context.reply.nullArray();
}

export const listCommands: readonly Command[] = [
  {
    name: 'lpush',
    arity: -3,
    syntax: 'key element...',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['list'],
    keys: [keyAt(1, 'RW', 'insert')],
    group: 'list',
    since: '1.0.0',
    complexity: 'O(N) for N elements',
    summary: 'Adds elements at the left end of a list, which is created if needed.',
    run: (context) => push(context, true),
  },
  {
    name: 'rpush',
    arity: -3,
    syntax: 'key element...',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['list'],
    keys: [keyAt(1, 'RW', 'insert')],
    group: 'list',
    since: '1.0.0',
    complexity: 'O(N) for N elements',
    summary: 'Adds elements at the right end of a list, which is created if needed.',
    run: (context) => push(context, false),
  },
  {
    name: 'lpushx',
    arity: -3,
    syntax: 'key element...',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['list'],
    keys: [keyAt(1, 'RW', 'insert')],
    group: 'list',
    since: '2.2.0',
    complexity: 'O(N) for N elements',
    summary: 'Adds elements at the left end of a list that exists.',
    run: (context) => pushIfExists(context, true),
  },
  {
    name: 'rpushx',
    arity: -3,
    syntax: 'key element...',
    flags: ['write', 'denyoom', 'fast'],
    categories: ['list'],
    keys: [keyAt(1, 'RW', 'insert')],
    group: 'list',
    since: '2.2.0',
    complexity: 'O(N) for N elements',
    summary: 'Adds elements at the right end of a list that exists.',
    run: (context) => pushIfExists(context, false),
  },
  {
    name: 'lpop',
    arity: -2,
    syntax: 'key [count]',
    flags: ['write', 'fast'],
    categories: ['list'],
    keys: [keyAt(1, 'RW', 'access', 'delete')],
    group: 'list',
    since: '1.0.0',
    complexity: 'O(N) for N elements',
    summary: 'Removes and returns elements of the left end of a list.',
    run: (context) => pop(context, true),
  },
  {
    name: 'rpop',
    arity: -2,
    syntax: 'key [count]',
    flags: ['write', 'fast'],
    categories: ['list'],
    keys: [keyAt(1, 'RW', 'access', 'delete')],
    group: 'list',
    since: '1.0.0',
    complexity: 'O(N) for N elements',
    summary: 'Removes and returns elements of the right end of a list.',
    run: (context) => pop(context, false),
  },
  {
    name: 'llen',
    arity: 2,
    syntax: 'key',
    flags: ['readonly', 'fast'],
    categories: ['list'],
    keys: [keyAt(1, 'RO')],
    group: 'list',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Tells how many elements a list has.',
    run: llen,
  },
  {
    name: 'lindex',
    arity: 3,
    syntax: 'key index',
    flags: ['readonly'],
    categories: ['list'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'list',
    since: '1.0.0',
    complexity: 'O(log(N)) for N elements in the list',
    summary: 'Returns the element at an index.',
    run: lindex,
  },
  {
    name: 'lset',
    arity: 4,
    syntax: 'key index element',
    flags: ['write', 'denyoom'],
    categories: ['list'],
    keys: [keyAt(1, 'RW', 'update')],
    group: 'list',
    since: '1.0.0',
    complexity: 'O(log(N)) for N elements in the list',
    summary: 'Replaces the element at an index.',
    run: lset,
  },
  {
    name: 'lrange',
    arity: 4,
    syntax: 'key start stop',
    flags: ['readonly'],
    categories: ['list'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'list',
    since: '1.0.0',
    complexity: 'O(log(N)+M) for N elements in the list, M of them returned',
    summary: 'Returns the elements between two indexes.',
    run: lrange,
  },
  {
    name: 'ltrim',
    arity: 4,
    syntax: 'key start stop',
    flags: ['write'],
    categories: ['list'],
    keys: [keyAt(1, 'RW', 'delete')],
    group: 'list',
    since: '1.0.0',
    complexity: 'O(log(N)+M) for N elements in the list, M of them removed',
    summary: 'Keeps only the elements between two indexes.',
    run: ltrim,
  },
  {
    name: 'lrem',
    arity: 4,
    syntax: 'key count element',
    flags: ['write'],
    categories: ['list'],
    keys: [keyAt(1, 'RW', 'delete')],
    group: 'list',
    since: '1.0.0',
    complexity: 'O(N+M*log(N)) for N elements in the list, M of them removed',
    summary: 'Removes elements that equal a value.',
    run: lrem,
  },
  {
    name: 'linsert',
    arity: 5,
    syntax: 'key where(BEFORE|AFTER) pivot element',
    flags: ['write', 'denyoom'],
    categories: ['list'],
    keys: [keyAt(1, 'RW', 'insert')],
    group: 'list',
    since: '2.2.0',
    complexity: 'O(N) for N elements before the pivot',
    summary: 'Inserts an element beside the first that equals a pivot.',
    run: linsert,
  },
  {
    name: 'lpos',
    arity: -3,
    syntax: 'key element [RANK rank] [COUNT num-matches] [MAXLEN len]',
    flags: ['readonly'],
    categories: ['list'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'list',
    since: '6.0.6',
    complexity: 'O(N) for N elements compared',
    summary: 'Finds the indexes of elements that equal a value.',
    run: lpos,
  },
  {
    name: 'rpoplpush',
    arity: 3,
    syntax: 'source destination',
    flags: ['write', 'denyoom'],
    categories: ['list'],
    keys: [keyAt(1, 'RW', 'access', 'delete'), keyAt(2, 'RW', 'insert')],
    group: 'list',
    since: '1.2.0',
    deprecated: { since: '6.2.0', use: '`LMOVE … RIGHT LEFT`' },
    complexity: 'O(1)',
    summary: 'Moves the last element of a list to the left end of another and returns it.',
    run: (context) => moveBetween(context, false, true),
  },
  {
    name: 'lmove',
    arity: 5,
    syntax: 'source destination wherefrom(LEFT|RIGHT) whereto(LEFT|RIGHT)',
    flags: ['write', 'denyoom'],
    categories: ['list'],
    keys: [keyAt(1, 'RW', 'access', 'delete'), keyAt(2, 'RW', 'insert')],
    group: 'list',
    since: '6.2.0',
    complexity: 'O(1)',
    summary: 'Moves an element from an end of a list to an end of another and returns it.',
    run: lmove,
  },
  {
    name: 'lmpop',
    arity: -4,
    syntax: 'numkeys key... where(LEFT|RIGHT) [COUNT count]',
    flags: ['write', 'movablekeys'],
    categories: ['list'],
    keys: [countedKeys(1, 'RW', 'access', 'delete')],
    group: 'list',
    since: '7.0.0',
    complexity: 'O(N+M) for N keys and M elements returned',
    summary: 'Removes and returns elements of an end of the first list that exists.',
    run: lmpop,
  },
  {
    name: 'blpop',
    arity: -3,
    syntax: 'key... timeout',
    flags: ['write', 'noscript', 'blocking'],
    categories: ['list'],
    keys: [keysFrom(1, -2, 'RW', 'access', 'delete')],
    group: 'list',
    since: '2.0.0',
    complexity: 'O(N) for N keys',
    summary:
      'Removes and returns the first element of the first list that exists; waits for one if there is none.',
    run: blpop,
  },
  {
    name: 'brpop',
    arity: -3,
    syntax: 'key... timeout',
    flags: ['write', 'noscript', 'blocking'],
    categories: ['list'],
    keys: [keysFrom(1, -2, 'RW', 'access', 'delete')],
    group: 'list',
    since: '2.0.0',
    complexity: 'O(N) for N keys',
    summary:
      'Removes and returns the last element of the first list that exists; waits for one if there is none.',
    run: brpop,
  },
  {
    name: 'brpoplpush',
    arity: 4,
    syntax: 'source destination timeout',
    flags: ['write', 'denyoom', 'noscript', 'blocking'],
    categories: ['list'],
    keys: [keyAt(1, 'RW', 'access', 'delete'), keyAt(2, 'RW', 'insert')],
    group: 'list',
    since: '2.2.0',
    deprecated: { since: '6.2.0', use: '`BLMOVE … RIGHT LEFT`' },
    complexity: 'O(1)',
    summary:
      'Moves the last element of a list to the left end of another and returns it; waits for one if there is none.',
    run: brpoplpush,
  },
  {
    name: 'blmove',
    arity: 6,
    syntax: 'source destination wherefrom(LEFT|RIGHT) whereto(LEFT|RIGHT) timeout',
    flags: ['write', 'denyoom', 'noscript', 'blocking'],
    categories: ['list'],
    keys: [keyAt(1, 'RW', 'access', 'delete'), keyAt(2, 'RW', 'insert')],
    group: 'list',
    since: '6.2.0',
    complexity: 'O(1)',
    summary:
      'Moves an element from an end of a list to an end of another and returns it; waits for one if there is none.',
    run: blmove,
  },
  {
    name: 'blmpop',
    arity: -5,
    syntax: 'timeout numkeys key... where(LEFT|RIGHT) [COUNT count]',
    flags: ['write', 'blocking', 'movablekeys'],
    categories: ['list'],
    keys: [countedKeys(2, 'RW', 'access', 'delete')],
    group: 'list',
    since: '7.0.0',
    complexity: 'O(N+M) for N keys and M elements returned',
    summary:
      'Removes and returns elements of an end of the first list that exists; waits for one if there is none.',
    run: blmpop,
  },
];
