/**
 * From a parsed request to its command. The plain case is short: found, enough arguments, no gate
 * closed. Everything else asks Redis's questions in Redis's order.
 */
import type { Slice } from '../bytes/slice.ts';
import { CommandError } from './command.ts';
import { Flag, type CommandEntry } from './command-entry.ts';
import { Gate, type Client } from './client.ts';
import type { Context } from './context.ts';
import { NO_AUTH, OUT_OF_MEMORY, wrongArgumentCount } from './errors.ts';
import { feedMonitors } from './monitor.ts';
import type { Server } from './server.ts';
import { storeRequest } from './stored-request.ts';

/** Runs the request in `context` for its client. */
export function dispatch(server: Server, context: Context, client: Client): void {
  const entry = server.lookup.find(context.args[0]);
  if (
    entry !== undefined &&
    entry.plain &&
    (client.gates | server.gates) === 0 &&
    (entry.arity >= 0 ? context.argc === entry.arity : context.argc >= -entry.arity)
  ) {
    call(server, context, client, entry);
  } else {
    dispatchCarefully(server, context, client, entry);
  }
}

/**
 * Runs a command that nothing speaks against, and hands out what it staged. False when it met what is
 * not in memory: nothing of it has happened, and it runs again.
 */
function call(server: Server, context: Context, client: Client, entry: CommandEntry): boolean {
  client.lastCommand = entry;
  context.replyFrom = context.reply.pos;
  let done: boolean;
  if (entry.quick && !server.timeEach) {
    done = context.run(entry);
    if (done) server.clock.ran(entry);
  } else {
    done = server.runTimed(context, client, entry);
  }
  if (!done) {
    server.faults.suspend(context, client, entry);
    return false;
  }
  if ((client.gates & Gate.Muted) !== 0)
    mute(client, context, context.replyFrom, SUBSCRIPTIONS.has(entry.fullName));
  if (context.blocked !== null) {
    server.blocking.begin(context, entry, context.blocked);
    context.blocked = null;
  }
  if (context.staging) server.output.publish(client);
  return true;
}

/** Replies with an error that no command has written. */
function refuse(server: Server, context: Context, message: string): void {
  const mark = context.reply.pos;
  context.reply.error(message);
  server.statistics.countError(context.reply.u8, mark, context.reply.pos);
}

/** The subcommand that the request names, or the command itself; throws Redis's errors for what is none. */
export function resolve(context: Context, entry: CommandEntry | undefined): CommandEntry {
  const { args, argc } = context;
  if (entry === undefined) throw new CommandError(unknownCommand(context));
  if (entry.subcommands !== null && argc > 1) {
    const sub = entry.subcommands.get(context.word(1));
    if (sub !== undefined) entry = sub;
    else
      throw new CommandError(
        oneLine(
          `ERR unknown subcommand '${quotable(args[1], 128)}'. Try ${entry.fullName.toUpperCase()} HELP.`,
        ),
      );
  }
  if (
    (entry.arity >= 0 ? argc !== entry.arity : argc < -entry.arity) ||
    (entry.run === undefined && argc === 1)
  )
    throw new CommandError(wrongArgumentCount(entry.fullName));
  return entry;
}

/** The first characters of an argument as Redis shows them in an error: up to a NUL. */
const quotable = (argument: Slice, most: number): string => argument.latin1().slice(0, most).split('\0')[0];
const oneLine = (text: string): string => text.replace(/[\r\n]/g, ' ');

function unknownCommand(context: Context): string {
  const { args, argc } = context;
  let shown = '';
  for (let i = 1; i < argc && shown.length < 128; i++) shown += `'${quotable(args[i], 128 - shown.length)}' `;
  const name = quotable(args[0], 128);
  return oneLine(`ERR unknown command '${name}', with args beginning with: ${shown}`);
}

/** Commands that a queueing client runs at once. */
const NOT_QUEUED = new Set(['exec', 'discard', 'multi', 'watch', 'quit', 'reset']);
/** Commands whose replies are pushes, which CLIENT REPLY OFF does not stop. */
const SUBSCRIPTIONS = new Set([
  'subscribe',
  'ssubscribe',
  'unsubscribe',
  'sunsubscribe',
  'psubscribe',
  'punsubscribe',
]);
/** Commands of a RESP2 client that is subscribed. */
const WHILE_SUBSCRIBED = new Set([...SUBSCRIPTIONS, 'ping', 'quit', 'reset']);
/** Commands that a queueing client may send even when the tier is full. */
const WHILE_FULL = new Set(['exec', 'discard', 'quit', 'reset']);

function dispatchCarefully(
  server: Server,
  context: Context,
  client: Client,
  found: CommandEntry | undefined,
): void {
  if (server.input.refuseHttp(context, client)) return;
  const mark = context.reply.pos;
  let entry: CommandEntry;
  try {
    entry = resolve(context, found);
    admit(server, client, entry);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    reject(server, context, client, found, error.message);
    mute(client, context, mark);
    return;
  }
  if (mustPostpone(server, client, entry)) {
    client.postponed = storeRequest(context, entry);
    server.pause.postponed.add(client);
    return;
  }
  if (client.transaction !== null && !NOT_QUEUED.has(entry.fullName)) {
    client.transaction.add(storeRequest(context, entry));
    context.reply.simple('QUEUED');
    mute(client, context, mark);
    return;
  }
  const caching = client.tracking?.caching === true;
  if (!call(server, context, client, entry)) return;
  if (server.monitors.size > 0) feedMonitors(server, client, entry, context.args, context.argc);
  if (client.tracking !== null) {
    server.tracking.remember(context.args, context.argc, client, entry);
    // Other keys may have been given up for these.
    if (context.staging) server.output.publish(client);
    if (caching && client.transaction === null && !entry.fullName.startsWith('client|'))
      client.tracking.caching = false;
  }
}

/** CLIENT REPLY OFF and SKIP: the reply since `mark`, or one that is still to come, is not sent unless it is a push. */
function mute(client: Client, context: Context, mark: number, isPush = false): void {
  if ((client.gates & Gate.Muted) === 0) return;
  if (client.replyMode === 'skip-next') {
    client.replyMode = 'skip';
    return;
  }
  if (!isPush) {
    context.reply.pos = mark;
    client.unanswered = context.blocked !== null || client.suspended;
  }
  if (client.replyMode === 'skip') {
    client.replyMode = 'on';
    client.setGate(Gate.Muted, false);
  }
}

/** A command that waited for rows is not to run after all. */
export function giveUp(
  server: Server,
  context: Context,
  client: Client,
  entry: CommandEntry,
  message: string,
): void {
  const mark = context.reply.pos;
  reject(server, context, client, entry, message);
  mute(client, context, mark);
}

function reject(
  server: Server,
  context: Context,
  client: Client,
  entry: CommandEntry | undefined,
  message: string,
): void {
  if (entry !== undefined) entry.rejected++;
  if (entry?.fullName === 'exec') {
    // Redis says so even if there is none.
    if (client.transaction !== null) server.discardTransaction(client);
    message = `EXECABORT Transaction discarded because of: ${message.replace(/^ERR /, '')}`;
  } else if (client.transaction !== null) {
    client.transaction.failed = true;
  }
  refuse(server, context, message);
}

/** Throws when something stands against the command. */
function admit(server: Server, client: Client, entry: CommandEntry): void {
  const gates = client.gates | server.gates;
  const refusal = entry.guard?.(server, client) ?? entry.parent?.guard?.(server, client);
  if (refusal !== undefined) throw new CommandError(refusal);
  if (gates === 0) return;
  const name = entry.fullName;
  const { transaction } = client;
  let flags = entry.flags;
  let allowed = entry.flags;
  if (transaction !== null && name === 'exec') {
    flags |= transaction.flags;
    allowed &= transaction.commonFlags;
  }
  if ((gates & Gate.Auth) !== 0 && (entry.flags & Flag.NoAuth) === 0) throw new CommandError(NO_AUTH);
  if (transaction !== null && (entry.flags & Flag.NoMulti) !== 0)
    throw new CommandError('ERR Command not allowed inside a transaction');
  if ((gates & Gate.Full) !== 0) {
    const queues = transaction !== null && !WHILE_FULL.has(name);
    if (queues || (flags & Flag.DenyOom) !== 0) throw new CommandError(OUT_OF_MEMORY);
  }
  if ((gates & Gate.Misconf) !== 0) {
    if ((flags & Flag.Write) !== 0 || name === 'ping') throw new CommandError(server.misconf());
    if ((flags & Flag.ReadOnly) !== 0) client.sawUnlogged = true;
  }
  if ((gates & Gate.Subscribed) !== 0 && !WHILE_SUBSCRIBED.has(name))
    throw new CommandError(
      `ERR Can't execute '${name}': only (P|S)SUBSCRIBE / ` +
        '(P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context',
    );
  if ((gates & Gate.Loading) !== 0 && (allowed & Flag.Loading) === 0)
    throw new CommandError('LOADING Redis is loading the dataset in memory');
}

/** CLIENT PAUSE holds the command back. */
function mustPostpone(server: Server, client: Client, entry: CommandEntry): boolean {
  if (!server.pause.active) return false;
  if (server.pause.all) return true;
  let flags = entry.flags;
  if (entry.fullName === 'exec' && client.transaction !== null) flags |= client.transaction.flags;
  return (flags & (Flag.Write | Flag.MayReplicate)) !== 0;
}
