/** MULTI, EXEC, DISCARD, WATCH, UNWATCH. */
import { OutOfTierError, type Database } from '../../store/api.ts';
import { CommandError, type Command } from '../command.ts';
import { Gate } from '../client.ts';
import type { Context } from '../context.ts';
import { OUT_OF_MEMORY } from '../errors.ts';
import { monitorLine, showMonitors } from '../monitor.ts';
import { loadRequest } from '../stored-request.ts';
import { Transaction, type WatchedKey } from '../transactions.ts';
import { keysFrom } from './key-specs.ts';

function multi({ client, reply }: Context): void {
  if (client.transaction !== null) throw new CommandError('ERR MULTI calls can not be nested');
  client.transaction = new Transaction();
  client.setGate(Gate.Multi, true);
  reply.ok();
}

function discard({ client, server, reply }: Context): void {
  if (client.transaction === null) throw new CommandError('ERR DISCARD without MULTI');
  server.discardTransaction(client);
  reply.ok();
}

function watch({ argc, args, client, db, server, reply }: Context): void {
  if (client.transaction !== null) throw new CommandError('ERR WATCH inside MULTI is not allowed');
  for (let i = 1; i < argc; i++) {
    // A key that is due is removed now, so that its removal does not break the watch later.
    db.type(args[i]);
    server.watches.watch(client, db, args[i]);
  }
  server.keyspace.observe();
  reply.ok();
}

function unwatch({ client, server, reply }: Context): void {
  server.watches.unwatch(client);
  server.keyspace.observe();
  reply.ok();
}

function exec(context: Context): void {
  const { client, server } = context;
  const { transaction } = client;
  if (transaction === null) throw new CommandError('ERR EXEC without MULTI');
  if (transaction.failed) {
    server.discardTransaction(client);
    throw new CommandError('EXECABORT Transaction discarded because of previous errors.');
  }
  server.watches.expire(client);
  const broken = client.watchBroken;
  const before = {
    transaction,
    db: client.db,
    protocol: client.protocol,
    watched: server.watches.of(client),
  };
  server.discardTransaction(client);
  if (broken) {
    context.reply.nullArray();
    return;
  }
  const name = context.args[0].clone();
  const { mayBlock } = context;
  context.mayBlock = false;
  context.nested = true;
  const group = context.beginGroup();
  try {
    runQueue(context, transaction);
  } catch (error) {
    if (error instanceof OutOfTierError)
      throw new CommandError(`EXECABORT Transaction discarded because of: ${OUT_OF_MEMORY}`);
    takeBack(context, before);
    throw error;
  } finally {
    context.nested = false;
    context.mayBlock = mayBlock;
    context.endGroup(group);
    context.args[0].setSlice(name);
    context.argc = 1;
    context.requestStart = -1;
  }
}

/** All of it is one unit of work: it throws when one of the commands met what is not in memory. */
function runQueue(context: Context, { requests }: Transaction): void {
  const { client, server, reply } = context;
  reply.array(requests.length);
  let run = 0;
  try {
    for (const request of requests) {
      const { entry } = request;
      loadRequest(context, request);
      server.runTimed(context, client, entry);
      run++;
      if (server.monitors.size > 0) {
        const line = monitorLine(server, client, entry, context.args, context.argc);
        if (line !== null) context.afterwards(() => showMonitors(server, line));
      }
      if (client.tracking !== null)
        context.afterwards(() => server.tracking.remember(request.args, request.args.length, client, entry));
      context.db = client.db;
    }
  } catch (error) {
    for (let i = 0; i < run; i++) requests[i].entry.calls--;
    server.clock.endLaps(false);
    throw error;
  }
  server.clock.endLaps(true);
}

interface ClientState {
  transaction: Transaction;
  db: Database;
  protocol: 2 | 3;
  watched: readonly WatchedKey[];
}

/** EXEC has not happened: its queue and its watches wait as before. */
function takeBack({ client, server, reply }: Context, before: ClientState): void {
  client.transaction = before.transaction;
  client.setGate(Gate.Multi, true);
  client.db = before.db;
  client.protocol = before.protocol;
  reply.protocol = before.protocol;
  for (const { db, key } of before.watched) server.watches.add(client, db, key);
  server.keyspace.observe();
}

const transactions = { categories: ['transaction'], group: 'transactions', complexity: 'O(1)' } as const;

export const transactionCommands: readonly Command[] = [
  {
    ...transactions,
    name: 'multi',
    arity: 1,
    flags: ['noscript', 'loading', 'stale', 'fast', 'allow_busy'],
    since: '1.2.0',
    summary: 'Begins a transaction: commands are queued until EXEC',
    run: multi,
  },
  {
    ...transactions,
    name: 'exec',
    arity: 1,
    flags: ['noscript', 'loading', 'stale', 'skip_slowlog'],
    since: '1.2.0',
    complexity: 'Depends on the queued commands',
    summary: 'Runs the queued commands as one step',
    run: exec,
  },
  {
    ...transactions,
    name: 'discard',
    arity: 1,
    flags: ['noscript', 'loading', 'stale', 'fast', 'allow_busy'],
    since: '2.0.0',
    complexity: 'O(N) with N queued commands',
    summary: 'Drops the queued commands',
    run: discard,
  },
  {
    ...transactions,
    name: 'watch',
    arity: -2,
    syntax: 'key...',
    flags: ['noscript', 'loading', 'stale', 'fast', 'allow_busy'],
    since: '2.2.0',
    complexity: 'O(1) for every key',
    summary: 'Makes the next EXEC fail if one of the keys changes before it',
    keys: [keysFrom(1, -1, 'RO')],
    run: watch,
  },
  {
    ...transactions,
    name: 'unwatch',
    arity: 1,
    flags: ['noscript', 'loading', 'stale', 'fast', 'allow_busy'],
    since: '2.2.0',
    summary: 'Forgets all watched keys',
    run: unwatch,
  },
];
