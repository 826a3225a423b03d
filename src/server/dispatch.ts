/**
 * From a parsed request to its command. The plain case is short: found, enough arguments, no gate
 * closed. Everything else asks Redis's questions in Redis's order.
 */
import { CommandError, type Command } from './command.ts';
import { Flag, type CommandEntry } from './command-entry.ts';
import { Gate, type Client } from './client.ts';
import type { Context } from './context.ts';
import { NO_AUTH, OUT_OF_MEMORY, wrongArgumentCount } from './errors.ts';
import type { Server } from './server.ts';
import { storeRequest } from './stored-request.ts';

/** Runs the request in `server.context` for its client. */
export function dispatch(server: Server, context: Context, client: Client): void {
  const entry = server.lookup.find(context.args[0]);
  if (
    entry !== undefined &&
    entry.run !== undefined &&
    entry.subcommands === null &&
    (client.gates | server.gates) === 0 &&
    (entry.arity >= 0 ? context.argc === entry.arity : context.argc >= -entry.arity)
  ) {
    call(server, context, client, entry);
  } else {
    dispatchCarefully(server, context, client, entry);
  }
}

/** Runs a command that nothing speaks against, and hands out what it staged. */
function call(server: Server, context: Context, client: Client, entry: CommandEntry): void {
  context.run(entry);
  if (context.blocked !== null) {
    server.blocking.begin(context, entry, context.blocked);
    context.blocked = null;
  }
  if (context.staging) {
    context.publish();
    if (server.blocking.pending) server.serveBlocked(client);
  }
}

/** The subcommand that the request names, or the command itself; throws Redis's errors for what is none. */
export function resolve(context: Context, entry: CommandEntry | undefined): CommandEntry {
  const { args, argc } = context;
  if (entry === undefined) throw new CommandError(unknownCommand(context));
  if (entry.subcommands !== null && argc > 1) {
    const sub = entry.subcommands.get(context.word(1));
    if (sub === undefined) {
      if (entry.run === undefined) {
        const shown = printable(args[1].latin1().slice(0, 128));
        throw new CommandError(
          `ERR unknown subcommand '${shown}'. Try ${entry.fullName.toUpperCase()} HELP.`,
        );
      }
    } else {
      entry = sub;
    }
  }
  if (entry.arity >= 0 ? argc !== entry.arity : argc < -entry.arity)
    throw new CommandError(wrongArgumentCount(entry.fullName));
  return entry;
}

const printable = (text: string): string => text.replace(/[\r\n]/g, ' ');

function unknownCommand(context: Context): string {
  const { args, argc } = context;
  let shown = '';
  for (let i = 1; i < argc && shown.length < 128; i++)
    shown += `'${args[i].latin1().slice(0, 128 - shown.length)}' `;
  const name = args[0].latin1().slice(0, 128);
  return printable(`ERR unknown command '${name}', with args beginning with: ${shown}`);
}

/** Commands that a queueing client runs at once. */
const NOT_QUEUED = new Set(['exec', 'discard', 'multi', 'watch', 'quit', 'reset']);
/** Commands of a RESP2 client that is subscribed. */
const WHILE_SUBSCRIBED = new Set([
  'ping',
  'subscribe',
  'ssubscribe',
  'unsubscribe',
  'sunsubscribe',
  'psubscribe',
  'punsubscribe',
  'quit',
  'reset',
]);

function dispatchCarefully(
  server: Server,
  context: Context,
  client: Client,
  found: CommandEntry | undefined,
): void {
  let entry: CommandEntry;
  try {
    entry = resolve(context, found);
    admit(server, context, client, entry);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    reject(server, context, client, found, error.message);
    return;
  }
  if (client.transaction !== null && !NOT_QUEUED.has(entry.fullName)) {
    client.transaction.requests.push(storeRequest(context, entry));
    client.transaction.flags |= entry.flags;
    context.reply.simple('QUEUED');
    return;
  }
  call(server, context, client, entry);
}

function reject(
  server: Server,
  context: Context,
  client: Client,
  entry: CommandEntry | undefined,
  message: string,
): void {
  if (entry !== undefined) entry.rejected++;
  const mark = context.reply.pos;
  if (client.transaction !== null) {
    if (entry?.fullName === 'exec') {
      server.discardTransaction(client);
      message = `EXECABORT Transaction discarded because of: ${message.replace(/^ERR /, '')}`;
    } else client.transaction.failed = true;
  }
  context.reply.error(message);
  server.countError(context.reply.u8, mark, context.reply.pos);
}

/** Throws when a gate is closed to the command. */
function admit(server: Server, context: Context, client: Client, entry: CommandEntry): void {
  const gates = client.gates | server.gates;
  if (gates === 0) return;
  let flags = entry.flags;
  if (client.transaction !== null && entry.fullName === 'exec') flags |= client.transaction.flags;
  if ((gates & Gate.Auth) !== 0 && (flags & Flag.NoAuth) === 0) throw new CommandError(NO_AUTH);
  if (client.transaction !== null && (entry.flags & Flag.NoMulti) !== 0)
    throw new CommandError('ERR Command not allowed inside a transaction');
  if ((gates & Gate.Full) !== 0 && (flags & Flag.DenyOom) !== 0) throw new CommandError(OUT_OF_MEMORY);
  if ((gates & Gate.Misconf) !== 0) {
    if ((flags & Flag.Write) !== 0 || entry.fullName === 'ping') throw new CommandError(server.misconf());
    if ((flags & Flag.ReadOnly) !== 0) client.sawUnlogged = true;
  }
  if ((gates & Gate.Subscribed) !== 0 && !WHILE_SUBSCRIBED.has(entry.fullName))
    throw new CommandError(
      `ERR Can't execute '${entry.fullName}': only (P|S)SUBSCRIBE / ` +
        '(P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context',
    );
  if ((gates & Gate.Loading) !== 0 && (flags & Flag.Loading) === 0)
    throw new CommandError('LOADING Redis is loading the dataset in memory');
  void context;
}

export type { Command };
