/** Connections: greeting, authentication, database, state. */
import { CommandError, type Command } from '../command.ts';
import { Gate, type Client } from '../client.ts';
import type { Context } from '../context.ts';
import { SYNTAX, wrongArgumentCount } from '../errors.ts';
import { sliceInteger } from '../../bytes/number.ts';
import type { Slice } from '../../bytes/slice.ts';
import { REDIS_VERSION } from '../version.ts';
import { databaseArgument } from './arguments.ts';

const WRONG_PASSWORD = 'WRONGPASS invalid username-password pair or user is disabled.';
const NO_PASSWORD_SET =
  'ERR AUTH <password> called without any password configured for the default user. ' +
  'Are you sure your configuration is correct?';
const HELLO_UNAUTHENTICATED =
  'NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> ' +
  'option can be used to authenticate the client and select the RESP protocol version at the same time';

function ping({ argc, args, client, reply }: Context): void {
  if (argc > 2) throw new CommandError(wrongArgumentCount('ping'));
  if (client.subscribed && client.protocol === 2) {
    reply.array(2);
    reply.bulkString('pong');
    if (argc === 1) reply.bulkString('');
    else reply.bulk(args[1]);
  } else if (argc === 1) {
    reply.simple('PONG');
  } else {
    reply.bulk(args[1]);
  }
}

function echo({ args, reply }: Context): void {
  reply.bulk(args[1]);
}

function select(context: Context): void {
  context.db = context.client.db = databaseArgument(context, 1);
  context.reply.ok();
}

/** The only user is `default`. */
function login(context: Context, user: Slice | null, password: Slice): void {
  const { server, client } = context;
  const known = user === null || user.latin1() === 'default';
  if (!known || !server.authenticate(client, password.toBuffer())) throw new CommandError(WRONG_PASSWORD);
}

function auth(context: Context): void {
  const { args, argc, server, reply } = context;
  if (argc > 3) throw new CommandError(SYNTAX);
  if (argc === 2 && !server.password.isSet) throw new CommandError(NO_PASSWORD_SET);
  login(context, argc === 3 ? args[1] : null, args[argc - 1]);
  reply.ok();
}

/** Names must be printable and hold no blank. */
export function setName(client: Client, name: Slice): void {
  const text = name.latin1();
  if (!/^[!-~]*$/.test(text))
    throw new CommandError('ERR Client names cannot contain spaces, newlines or special characters.');
  client.name = text;
}

function hello(context: Context): void {
  const { args, argc, client, server, reply } = context;
  let version: number = client.protocol;
  if (argc > 1) {
    version = sliceInteger(args[1]);
    if (Number.isNaN(version))
      throw new CommandError('ERR Protocol version is not an integer or out of range');
    if (version < 2 || version > 3) throw new CommandError('NOPROTO unsupported protocol version');
  }
  for (let i = 2; i < argc; i++) {
    if (context.is(i, 'auth') && i + 2 < argc) {
      login(context, args[i + 1], args[i + 2]);
      i += 2;
    } else if (context.is(i, 'setname') && i + 1 < argc) {
      setName(client, args[++i]);
    } else {
      throw new CommandError(`ERR Syntax error in HELLO option '${args[i].latin1()}'`);
    }
  }
  if ((client.gates & Gate.Auth) !== 0) throw new CommandError(HELLO_UNAUTHENTICATED);
  client.protocol = version === 3 ? 3 : 2;
  reply.protocol = client.protocol;
  server.pubsub.updateGate(client);
  reply.map(7);
  reply.bulkString('server');
  reply.bulkString('redis');
  reply.bulkString('version');
  reply.bulkString(REDIS_VERSION);
  reply.bulkString('proto');
  reply.integer(client.protocol);
  reply.bulkString('id');
  reply.integer(client.id);
  reply.bulkString('mode');
  reply.bulkString('standalone');
  reply.bulkString('role');
  reply.bulkString('master');
  reply.bulkString('modules');
  reply.array(0);
}

function reset(context: Context): void {
  const { client, server, reply } = context;
  client.monitor = false;
  server.monitors.delete(client);
  server.setGate(Gate.Monitored, server.monitors.size > 0);
  server.tracking.disable(client);
  context.db = client.db = context.store.database(0);
  client.protocol = 2;
  reply.protocol = 2;
  server.discardTransaction(client);
  server.pubsub.forget(client);
  client.name = '';
  client.noEvict = false;
  client.replyMode = 'on';
  client.setGate(Gate.Muted, false);
  client.setGate(Gate.Auth, server.password.isSet);
  client.reader.authenticated = !server.password.isSet;
  reply.simple('RESET');
}

function quit({ client, server, reply }: Context): void {
  reply.ok();
  server.connections.closeAfterReply(client);
}

const connection = { categories: ['connection'], group: 'connection', complexity: 'O(1)' } as const;

export const connectionCommands: readonly Command[] = [
  {
    ...connection,
    name: 'ping',
    arity: -1,
    syntax: '[message]',
    flags: ['fast'],
    since: '1.0.0',
    tips: ['request_policy:all_shards', 'response_policy:all_succeeded'],
    summary: 'Answers, to tell that the server is there',
    run: ping,
  },
  {
    ...connection,
    name: 'echo',
    arity: 2,
    syntax: 'message',
    flags: ['loading', 'stale', 'fast'],
    since: '1.0.0',
    summary: 'Answers with the given text',
    run: echo,
  },
  {
    ...connection,
    name: 'select',
    arity: 2,
    syntax: 'index',
    flags: ['loading', 'stale', 'fast'],
    since: '1.0.0',
    summary: 'Chooses the database for the commands that follow',
    run: select,
  },
  {
    ...connection,
    name: 'auth',
    arity: -2,
    syntax: '[username] password',
    flags: ['noscript', 'loading', 'stale', 'fast', 'no_auth', 'allow_busy'],
    since: '1.0.0',
    summary: 'Authenticates the connection',
    secrets: (_args, argc) => (argc === 3 ? [1, 2] : [1]),
    run: auth,
  },
  {
    ...connection,
    name: 'hello',
    arity: -1,
    syntax: '[arguments(protover [AUTH username_password(username password)] [SETNAME clientname])]',
    flags: ['noscript', 'loading', 'stale', 'fast', 'no_auth', 'allow_busy'],
    since: '6.0.0',
    summary: 'Greets the server and chooses the protocol version',
    secrets: (args, argc) => {
      for (let i = 2; i + 2 < argc; i++) if (args[i].latin1().toLowerCase() === 'auth') return [i + 1, i + 2];
      return [];
    },
    run: hello,
  },
  {
    ...connection,
    name: 'reset',
    arity: 1,
    flags: ['noscript', 'loading', 'stale', 'fast', 'no_auth', 'allow_busy'],
    since: '6.2.0',
    summary: 'Brings the connection back to the state of a new one',
    run: reset,
  },
  {
    ...connection,
    name: 'quit',
    arity: -1,
    flags: ['noscript', 'loading', 'stale', 'fast', 'no_auth', 'allow_busy'],
    since: '1.0.0',
    summary: 'Closes the connection',
    run: quit,
  },
];
