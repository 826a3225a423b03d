/** MULTI, EXEC, DISCARD, WATCH, UNWATCH. */
import { CommandError, type Command } from '../command.ts';
import { Flag } from '../command-entry.ts';
import { Gate } from '../client.ts';
import type { Context } from '../context.ts';
import { OUT_OF_MEMORY } from '../errors.ts';
import { feedMonitors } from '../monitor.ts';
import { loadRequest } from '../stored-request.ts';
import { Transaction } from '../transactions.ts';
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
  const { client, server, reply } = context;
  const { transaction } = client;
  if (transaction === null) throw new CommandError('ERR EXEC without MULTI');
  if (transaction.failed) {
    server.discardTransaction(client);
    throw new CommandError('EXECABORT Transaction discarded because of previous errors.');
  }
  server.watches.expire(client);
  const broken = client.watchBroken;
  server.discardTransaction(client);
  if (broken) {
    reply.nullArray();
    return;
  }
  const name = context.args[0].clone();
  const mayBlock = context.mayBlock;
  context.mayBlock = false;
  const group = context.beginGroup();
  try {
    reply.array(transaction.requests.length);
    for (const request of transaction.requests) {
      const { entry } = request;
      loadRequest(context, request);
      if ((server.gates & Gate.Full) !== 0 && (entry.flags & Flag.DenyOom) !== 0) {
        reply.error(OUT_OF_MEMORY);
        entry.rejected++;
        continue;
      }
      server.runTimed(context, client, entry);
      if ((entry.flags & Flag.DenyOom) !== 0) server.tierLimit.closeWhenFull();
      if (server.monitors.size > 0) feedMonitors(server, client, entry, context.args, context.argc);
      server.tracking.remember(context, client, entry);
      context.db = client.db;
    }
  } finally {
    context.endGroup(group);
    context.mayBlock = mayBlock;
    context.args[0].setSlice(name);
    context.argc = 1;
  }
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
