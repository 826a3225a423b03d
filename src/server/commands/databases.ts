/** Whole databases: DBSIZE, FLUSHDB, FLUSHALL, SWAPDB. */
import { Slice } from '../../bytes/slice.ts';
import { sliceInteger } from '../../bytes/number.ts';
import { Type, type Database } from '../../store/api.ts';
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { DB_OUT_OF_RANGE, syntaxError } from '../errors.ts';

/** ASYNC and SYNC make no difference: the database is empty at once, its memory freed in slices. */
function checkFlushOptions(context: Context): void {
  const { argc } = context;
  if (argc > 2 || (argc === 2 && !context.is(1, 'async') && !context.is(1, 'sync'))) throw syntaxError();
}

const exists = (db: Database, key: string): boolean =>
  db.type(Slice.from(Buffer.from(key, 'latin1'))) !== Type.None;

function empty(context: Context, db: Database): void {
  const { server, store } = context;
  const broken = server.watches.touchedBy(db, (key) => exists(db, key));
  if (broken.length > 0) context.afterwards(() => server.watches.break(broken));
  server.changes += db.size;
  store.flush(db.index);
  context.signalDatabase(db);
}

function flushDb(context: Context): void {
  checkFlushOptions(context);
  empty(context, context.db);
  context.effect('FLUSHDB');
  context.flushed();
  context.reply.ok();
}

function flushAll(context: Context): void {
  const { store } = context;
  checkFlushOptions(context);
  for (let i = 0; i < store.databaseCount; i++) empty(context, store.database(i));
  context.effect('FLUSHALL');
  context.flushed();
  context.reply.ok();
}

function databaseIndex(context: Context, i: number, which: string): number {
  const index = sliceInteger(context.args[i]);
  if (Number.isNaN(index) || Math.abs(index) > 0x7fffffff)
    throw new CommandError(`ERR invalid ${which} DB index`);
  return index;
}

function swapDb(context: Context): void {
  const { server, store } = context;
  const a = databaseIndex(context, 1, 'first');
  const b = databaseIndex(context, 2, 'second');
  const inRange = (index: number): boolean => index >= 0 && index < store.databaseCount;
  if (!inRange(a) || !inRange(b)) throw new CommandError(DB_OUT_OF_RANGE);
  if (a !== b) {
    const [first, second] = [store.database(a), store.database(b)];
    const broken = [first, second].flatMap((db) =>
      server.watches.touchedBy(db, (key) => exists(first, key) || exists(second, key)),
    );
    if (broken.length > 0) context.afterwards(() => server.watches.break(broken));
    store.swap(a, b);
    context.signalDatabase(first);
    context.signalDatabase(second);
    context.flushed();
  }
  server.changes++;
  context.effect('SWAPDB', a, b);
  context.reply.ok();
}

const flush = {
  flags: ['write'],
  categories: ['keyspace', 'dangerous'],
  group: 'server',
  since: '1.0.0',
  tips: ['request_policy:all_shards', 'response_policy:all_succeeded'],
} as const;

export const databaseCommands: readonly Command[] = [
  {
    name: 'dbsize',
    arity: 1,
    flags: ['readonly', 'fast'],
    categories: ['keyspace'],
    group: 'server',
    since: '1.0.0',
    complexity: 'O(1)',
    tips: ['request_policy:all_shards', 'response_policy:agg_sum'],
    summary: 'Counts the keys of the database',
    run({ db, reply }) {
      db.settle();
      reply.integer(db.size);
    },
  },
  {
    ...flush,
    name: 'flushdb',
    arity: -1,
    syntax: '[async(ASYNC|SYNC)]',
    complexity: 'O(1); memory is reclaimed in the background',
    summary: 'Empties the database',
    run: flushDb,
  },
  {
    ...flush,
    name: 'flushall',
    arity: -1,
    syntax: '[async(ASYNC|SYNC)]',
    complexity: 'O(N) with N databases; memory is reclaimed in the background',
    summary: 'Empties all databases',
    run: flushAll,
  },
  {
    name: 'swapdb',
    arity: 3,
    syntax: 'index1 index2',
    flags: ['write', 'fast'],
    categories: ['keyspace', 'dangerous'],
    group: 'server',
    since: '4.0.0',
    complexity: 'O(N) with N watched keys',
    summary: 'Exchanges two databases',
    run: swapDb,
  },
];
