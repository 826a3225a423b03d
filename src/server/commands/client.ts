/** CLIENT: who is connected, and how this connection is to be treated. */
import { parseInt64 } from '../../bytes/number.ts';
import { CommandError, type Command } from '../command.ts';
import { Gate, type Client } from '../client.ts';
import type { Context } from '../context.ts';
import { syntaxError, TIMEOUT_NEGATIVE } from '../errors.ts';
import type { OutputClass } from '../parameters.ts';
import { clampedInteger } from './arguments.ts';
import { setName } from './connection.ts';
import { helpCommand } from './help.ts';

/** A connection as CLIENT LIST shows it, without the line feed. */
function describeClient(client: Client, { client: self, requestStart, requestEnd, now }: Context): string {
  const { subscriptions, transaction, reader, tracking } = client;
  let flags = '';
  if (client.monitor) flags += 'O';
  if (client.subscribed) flags += 'P';
  if (transaction !== null) flags += 'x';
  if (client.wait !== null || client.postponed !== null) flags += 'b';
  if (tracking !== null) flags += 't';
  if (tracking?.brokenRedirect === true) flags += 'R';
  if (tracking?.broadcast === true) flags += 'B';
  if (client.watchBroken) flags += 'd';
  if (client.closing) flags += 'c';
  if (client.unblocked) flags += 'u';
  if (client.closed) flags += 'A';
  if (client.unix) flags += 'U';
  if (client.noEvict) flags += 'e';
  const output = client.outputBytes;
  // The request that asks is still in the buffer.
  const pending = reader.pending + (client === self && requestStart >= 0 ? requestEnd - requestStart : 0);
  const fields: Record<string, string | number> = {
    id: client.id,
    addr: client.address,
    laddr: client.localAddress,
    // Node does not tell the descriptor.
    fd: -1,
    name: client.name,
    age: Math.floor((now - client.createdAt) / 1000),
    idle: Math.floor((now - client.lastInteraction) / 1000),
    flags: flags || 'N',
    db: client.db.index,
    sub: subscriptions.channel.size,
    psub: subscriptions.pattern.size,
    ssub: subscriptions.shard.size,
    multi: transaction?.requests.length ?? -1,
    qbuf: pending,
    'qbuf-free': Math.max(0, reader.capacity - pending),
    'argv-mem': 0,
    'multi-mem': transaction?.bytes ?? 0,
    rbs: 0,
    rbp: 0,
    obl: 0,
    oll: 0,
    omem: output,
    'tot-mem': output + reader.capacity + (transaction?.bytes ?? 0),
    events: output > 0 ? 'rw' : 'r',
    cmd: client.lastCommand?.fullName ?? 'NULL',
    user: 'default',
    redir: tracking?.redirect ?? -1,
    resp: client.protocol,
  };
  return Object.entries(fields)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}

const TYPES: Record<string, OutputClass | 'master'> = {
  normal: 'normal',
  slave: 'slave',
  replica: 'slave',
  pubsub: 'pubsub',
  master: 'master',
};

function clientType(context: Context, i: number): OutputClass | 'master' {
  const type = TYPES[context.word(i)];
  if (type === undefined) throw new CommandError(`ERR Unknown client type '${context.args[i].latin1()}'`);
  return type;
}

/** Monitors have the output limits of replicas, but are normal clients to those who look for them. */
function isOfType({ server }: Context, client: Client, type: OutputClass | 'master'): boolean {
  return type === (client.monitor ? 'normal' : server.outputLimits.classOf(client));
}

/** args[i] as the id of a client, which need not exist; undefined when it is none. */
function clientId({ args }: Context, i: number): number | undefined {
  const id = parseInt64(args[i]);
  return id === undefined ? undefined : Number(id);
}

function list(context: Context): void {
  const { argc, args, server, reply } = context;
  let clients = [...server.clients.values()];
  if (argc === 4 && context.is(2, 'type')) {
    const type = clientType(context, 3);
    clients = clients.filter((client) => isOfType(context, client, type));
  } else if (argc > 3 && context.is(2, 'id')) {
    clients = args.slice(3, argc).flatMap((_, i) => {
      const id = clientId(context, 3 + i);
      if (id === undefined) throw new CommandError('ERR Invalid client ID');
      return server.clients.get(id) ?? [];
    });
  } else if (argc !== 2) {
    throw syntaxError();
  }
  reply.verbatim(clients.map((client) => `${describeClient(client, context)}\n`).join(''));
}

function reply(context: Context): void {
  const { client } = context;
  if (context.is(2, 'on')) {
    client.replyMode = 'on';
    client.setGate(Gate.Muted, false);
    context.reply.ok();
  } else if (context.is(2, 'off')) {
    client.replyMode = 'off';
    client.setGate(Gate.Muted, true);
  } else if (context.is(2, 'skip')) {
    if (client.replyMode !== 'off') {
      client.replyMode = 'skip-next';
      client.setGate(Gate.Muted, true);
    }
  } else {
    throw syntaxError();
  }
}

function noEvict(context: Context): void {
  if (context.is(2, 'on')) context.client.noEvict = true;
  else if (context.is(2, 'off')) context.client.noEvict = false;
  else throw syntaxError();
  context.reply.ok();
}

function kill(context: Context): void {
  const { argc, args, server, client: self, reply } = context;
  const conditions: ((client: Client) => boolean)[] = [];
  let skipSelf = true;
  if (argc === 3) {
    const address = args[2].latin1();
    conditions.push((client) => client.address === address);
    skipSelf = false;
  } else {
    for (let i = 2; i < argc; i += 2) {
      if (i + 1 >= argc) throw syntaxError();
      const value = args[i + 1].latin1();
      switch (context.word(i)) {
        case 'id': {
          const id = clientId(context, i + 1);
          if (id === undefined || id < 1) throw new CommandError('ERR client-id should be greater than 0');
          conditions.push((client) => client.id === id);
          break;
        }
        case 'type': {
          const type = clientType(context, i + 1);
          conditions.push((client) => isOfType(context, client, type));
          break;
        }
        case 'addr':
          conditions.push((client) => client.address === value);
          break;
        case 'laddr':
          conditions.push((client) => client.localAddress === value);
          break;
        case 'user':
          if (value !== 'default') throw new CommandError(`ERR No such user '${value}'`);
          break;
        case 'skipme':
          if (context.is(i + 1, 'yes')) skipSelf = true;
          else if (context.is(i + 1, 'no')) skipSelf = false;
          else throw syntaxError();
          break;
        default:
          throw syntaxError();
      }
    }
  }
  const killed = [...server.clients.values()].filter(
    (client) => !(skipSelf && client === self) && conditions.every((condition) => condition(client)),
  );
  for (const client of killed) {
    if (client === self) server.connections.closeAfterReply(client);
    else server.connections.kill(client);
  }
  if (argc > 3) reply.integer(killed.length);
  else if (killed.length > 0) reply.ok();
  else reply.error('ERR No such client');
}

function unblock(context: Context): void {
  const { argc, server, reply } = context;
  if (argc > 4) throw syntaxError();
  let withError = false;
  if (argc === 4) {
    if (context.is(3, 'error')) withError = true;
    else if (!context.is(3, 'timeout'))
      throw new CommandError('ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR');
  }
  const target = server.clients.get(Number(context.bigInteger(2)));
  const wait = target?.wait ?? null;
  if (target === undefined || wait === null) {
    reply.integer(0);
    return;
  }
  if (withError) wait.request.entry.failed++;
  server.blocking.finish(
    target,
    withError
      ? (output) => output.error('UNBLOCKED client unblocked via CLIENT UNBLOCK')
      : (output) => wait.onTimeout(output),
  );
  reply.integer(1);
}

function pause(context: Context): void {
  const { argc, server, reply, now } = context;
  let all = true;
  if (argc > 4) throw syntaxError();
  if (argc === 4) {
    if (context.is(3, 'write')) all = false;
    else if (!context.is(3, 'all')) throw new CommandError('ERR CLIENT PAUSE mode must be WRITE or ALL');
  }
  const timeout = clampedInteger(context, 2, 'ERR timeout is not an integer or out of range');
  if (timeout < 0) throw new CommandError(TIMEOUT_NEGATIVE);
  server.pause.begin(all, now + timeout);
  reply.ok();
}

interface TrackingOptions {
  redirect: number;
  broadcast: boolean;
  optIn: boolean;
  optOut: boolean;
  noLoop: boolean;
  prefixes: string[];
}

function trackingOptions(context: Context): TrackingOptions {
  const { argc, args, server } = context;
  const options: TrackingOptions = {
    redirect: 0,
    broadcast: false,
    optIn: false,
    optOut: false,
    noLoop: false,
    prefixes: [],
  };
  for (let i = 3; i < argc; i++) {
    const word = context.word(i);
    if (word === 'redirect' && i + 1 < argc) {
      if (options.redirect !== 0)
        throw new CommandError('ERR A client can only redirect to a single other client');
      options.redirect = Number(context.bigInteger(++i));
      if (!server.clients.has(options.redirect))
        throw new CommandError('ERR The client ID you want redirect to does not exist');
    } else if (word === 'prefix' && i + 1 < argc) {
      options.prefixes.push(args[++i].latin1());
    } else if (word === 'bcast') options.broadcast = true;
    else if (word === 'optin') options.optIn = true;
    else if (word === 'optout') options.optOut = true;
    else if (word === 'noloop') options.noLoop = true;
    else throw syntaxError();
  }
  return options;
}

/** Prefixes of one client must not contain each other: a change would be announced twice. */
function checkPrefixes(existing: ReadonlySet<string>, added: readonly string[]): void {
  const overlap = (a: string, b: string): boolean => a.startsWith(b) || b.startsWith(a);
  added.forEach((prefix, i) => {
    for (const other of existing)
      if (overlap(prefix, other))
        throw new CommandError(
          `ERR Prefix '${prefix}' overlaps with an existing prefix '${other}'. Prefixes for a single client must not overlap.`,
        );
    for (const other of added.slice(i + 1))
      if (overlap(prefix, other))
        throw new CommandError(
          `ERR Prefix '${prefix}' overlaps with another provided prefix '${other}'. Prefixes for a single client must not overlap.`,
        );
  });
}

function tracking(context: Context): void {
  const { client, server, reply } = context;
  const options = trackingOptions(context);
  const before = client.tracking;
  if (context.is(2, 'off')) {
    server.tracking.disable(client);
    reply.ok();
    return;
  }
  if (!context.is(2, 'on')) throw syntaxError();
  if (!options.broadcast && options.prefixes.length > 0)
    throw new CommandError('ERR PREFIX option requires BCAST mode to be enabled');
  if (before !== null && before.broadcast !== options.broadcast)
    throw new CommandError(
      "ERR You can't switch BCAST mode on/off before disabling tracking for this client, " +
        'and then re-enabling it with a different mode.',
    );
  if (options.broadcast && (options.optIn || options.optOut))
    throw new CommandError('ERR OPTIN and OPTOUT are not compatible with BCAST');
  if (options.optIn && options.optOut)
    throw new CommandError("ERR You can't specify both OPTIN mode and OPTOUT mode");
  if (before !== null && ((options.optIn && before.optOut) || (options.optOut && before.optIn)))
    throw new CommandError(
      "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, " +
        'and then re-enabling it with a different mode.',
    );
  if (options.broadcast) checkPrefixes(before?.prefixes ?? new Set(), options.prefixes);
  const prefixes = new Set([...(before?.prefixes ?? []), ...options.prefixes]);
  if (options.broadcast && options.prefixes.length === 0) prefixes.add('');
  server.tracking.enable(client, {
    ...options,
    prefixes,
    brokenRedirect: false,
    caching: before?.caching ?? false,
  });
  reply.ok();
}

function caching(context: Context): void {
  const { client, reply } = context;
  const state = client.tracking;
  if (state === null)
    throw new CommandError(
      'ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled',
    );
  if (context.is(2, 'yes')) {
    if (!state.optIn)
      throw new CommandError('ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.');
  } else if (context.is(2, 'no')) {
    if (!state.optOut)
      throw new CommandError('ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.');
  } else {
    throw syntaxError();
  }
  state.caching = true;
  reply.ok();
}

function trackingInfo({ client, reply }: Context): void {
  const state = client.tracking;
  const flags = [state === null ? 'off' : 'on'];
  if (state?.broadcast === true) flags.push('bcast');
  if (state?.optIn === true) flags.push('optin', ...(state.caching ? ['caching-yes'] : []));
  if (state?.optOut === true) flags.push('optout', ...(state.caching ? ['caching-no'] : []));
  if (state?.noLoop === true) flags.push('noloop');
  if (state?.brokenRedirect === true) flags.push('broken_redirect');
  reply.map(3);
  reply.bulkString('flags');
  reply.set(flags.length);
  for (const flag of flags) reply.bulkString(flag);
  reply.bulkString('redirect');
  reply.integer(state?.redirect ?? -1);
  reply.bulkString('prefixes');
  const prefixes = [...(state?.prefixes ?? [])].sort();
  reply.array(prefixes.length);
  for (const prefix of prefixes) reply.bulkBytes(Buffer.from(prefix, 'latin1'));
}

const own = {
  flags: ['noscript', 'loading', 'stale'],
  categories: ['connection'],
  group: 'connection',
  complexity: 'O(1)',
} as const;
const others = {
  ...own,
  flags: ['admin', 'noscript', 'loading', 'stale'],
} as const;

export const clientCommands: readonly Command[] = [
  {
    name: 'client',
    arity: -2,
    flags: [],
    categories: [],
    group: 'connection',
    since: '2.4.0',
    complexity: 'Depends on the subcommand',
    summary: 'Tells of connections and changes how they are treated',
    subcommands: [
      {
        ...own,
        name: 'id',
        arity: 2,
        since: '5.0.0',
        summary: 'The id of this connection',
        run: ({ client, reply: output }) => output.integer(client.id),
      },
      {
        ...own,
        name: 'info',
        arity: 2,
        since: '6.2.0',
        tips: ['nondeterministic_output'],
        summary: 'Tells of this connection',
        run: (context) => context.reply.verbatim(`${describeClient(context.client, context)}\n`),
      },
      {
        ...others,
        name: 'list',
        arity: -2,
        syntax: '[TYPE normal_master_replica_pubsub(NORMAL|MASTER|REPLICA|PUBSUB)] [ID id(client-id...)]',
        since: '2.4.0',
        tips: ['nondeterministic_output'],
        complexity: 'O(N) with N connections',
        summary: 'Lists connections',
        run: list,
      },
      {
        ...own,
        name: 'reply',
        arity: 3,
        syntax: 'on_off_skip(ON|OFF|SKIP)',
        since: '3.2.0',
        summary: 'Switches replies off and on',
        run: reply,
      },
      {
        ...others,
        name: 'no-evict',
        arity: 3,
        syntax: 'enabled(ON|OFF)',
        since: '7.0.0',
        summary: 'Protects the connection from being closed for its memory',
        run: noEvict,
      },
      {
        ...others,
        name: 'kill',
        arity: -3,
        syntax:
          'filter(ip:port|new-format([ID client-id]|[TYPE normal_master_slave_pubsub(NORMAL|MASTER|SLAVE|REPLICA|PUBSUB)]|[USER username]|[ADDR ip:port]|[LADDR ip:port]|[SKIPME yes/no])...)',
        since: '2.4.0',
        complexity: 'O(N) with N connections',
        summary: 'Closes connections',
        run: kill,
      },
      {
        ...others,
        name: 'unblock',
        arity: -3,
        syntax: 'client-id [timeout_error(TIMEOUT|ERROR)]',
        since: '5.0.0',
        complexity: 'O(log N) with N connections',
        summary: 'Ends the wait of a blocked client',
        run: unblock,
      },
      {
        ...own,
        name: 'setname',
        arity: 3,
        syntax: 'connection-name',
        since: '2.6.9',
        summary: 'Names the connection',
        run: ({ args, client, reply: output }) => {
          setName(client, args[2]);
          output.ok();
        },
      },
      {
        ...own,
        name: 'getname',
        arity: 2,
        since: '2.6.9',
        summary: 'The name of the connection',
        run: ({ client, reply: output }) => {
          if (client.name === '') output.null();
          else output.bulkString(client.name);
        },
      },
      {
        ...others,
        name: 'pause',
        arity: -3,
        syntax: 'timeout:integer [mode(WRITE|ALL)]',
        since: '2.9.50',
        summary: 'Holds commands back for a while',
        run: pause,
      },
      {
        ...others,
        name: 'unpause',
        arity: 2,
        since: '6.2.0',
        complexity: 'O(N) with N paused connections',
        summary: 'Ends a pause',
        run: ({ server, reply: output }) => {
          server.pause.end();
          output.ok();
        },
      },
      {
        ...own,
        name: 'tracking',
        arity: -3,
        syntax: 'status(ON|OFF) [REDIRECT client-id] [PREFIX prefix]... [BCAST] [OPTIN] [OPTOUT] [NOLOOP]',
        since: '6.0.0',
        complexity: 'O(1), some options more',
        summary: 'Switches invalidations for client-side caching on and off',
        run: tracking,
      },
      {
        ...own,
        name: 'caching',
        arity: 3,
        syntax: 'mode(YES|NO)',
        since: '6.0.0',
        summary: 'Whether the next command’s keys are tracked',
        run: caching,
      },
      {
        ...own,
        name: 'getredir',
        arity: 2,
        since: '6.0.0',
        summary: 'The connection that gets the invalidations',
        run: ({ client, reply: output }) => output.integer(client.tracking?.redirect ?? -1),
      },
      {
        ...own,
        name: 'trackinginfo',
        arity: 2,
        since: '6.2.0',
        summary: 'Tells of the tracking of this connection',
        run: trackingInfo,
      },
      {
        ...helpCommand('connection', '5.0.0', [
          'CACHING (YES|NO)',
          '    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.',
          'GETREDIR',
          '    Return the client ID we are redirecting to when tracking is enabled.',
          'GETNAME',
          '    Return the name of the current connection.',
          'ID',
          '    Return the ID of the current connection.',
          'INFO',
          '    Return information about the current client connection.',
          'KILL <ip:port>',
          '    Kill connection made from <ip:port>.',
          'KILL <option> <value> [<option> <value> [...]]',
          '    Kill connections. Options are:',
          '    * ADDR (<ip:port>|<unixsocket>:0)',
          '      Kill connections made from the specified address',
          '    * LADDR (<ip:port>|<unixsocket>:0)',
          '      Kill connections made to specified local address',
          '    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)',
          '      Kill connections by type.',
          '    * USER <username>',
          '      Kill connections authenticated by <username>.',
          '    * SKIPME (YES|NO)',
          '      Skip killing current connection (default: yes).',
          'LIST [options ...]',
          '    Return information about client connections. Options:',
          '    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)',
          '      Return clients of specified type.',
          'UNPAUSE',
          '    Stop the current client pause, resuming traffic.',
          'PAUSE <timeout> [WRITE|ALL]',
          '    Suspend all, or just write, clients for <timeout> milliseconds.',
          'REPLY (ON|OFF|SKIP)',
          '    Control the replies sent to the current connection.',
          'SETNAME <name>',
          '    Assign the name <name> to the current connection.',
          'UNBLOCK <clientid> [TIMEOUT|ERROR]',
          '    Unblock the specified blocked client.',
          'TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]',
          '         [OPTIN] [OPTOUT] [NOLOOP]',
          '    Control server assisted client side caching.',
          'TRACKINGINFO',
          '    Report tracking status for the current connection.',
          'NO-EVICT (ON|OFF)',
          '    Protect current client connection from eviction.',
        ]),
        categories: ['connection'],
      },
    ],
  },
];
