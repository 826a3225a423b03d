/** DEBUG, as far as clients' tests need it. Allowed by `enable-debug-command`. */
import { Slice } from '../../bytes/slice.ts';
import { parseDouble, sliceInteger } from '../../bytes/number.ts';
import { Type } from '../../store/api.ts';
import type { Client } from '../client.ts';
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { encodingName } from '../encoding.ts';
import { NO_SUCH_KEY, NOT_INTEGER } from '../errors.ts';
import type { Server } from '../server.ts';
import { digestOfAll, digestOfValue, type DigestProgress } from './digest.ts';
import { helpCommand } from './help.ts';
import { reload } from './persistence.ts';

const FORBIDDEN =
  'ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", ' +
  'you can run it from a local connection, otherwise you need to set this option ' +
  'in the configuration file, and then restart the server.';

function guard(server: Server, client: Client): string | undefined {
  const allowed = server.config.text('enable-debug-command');
  return allowed === 'yes' || (allowed === 'local' && client.local) ? undefined : FORBIDDEN;
}

/** Stops the event loop, as a slow command would. */
function sleep({ args, reply }: Context): void {
  const seconds = parseDouble(args[2]);
  if (seconds > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, seconds * 1000);
  reply.ok();
}

function object({ args, db, reply }: Context): void {
  const key = args[2];
  if (db.type(key) === Type.None) throw new CommandError(NO_SUCH_KEY);
  const idle = db.idleSeconds(key);
  reply.simple(
    `Value at:0x0 refcount:1 encoding:${encodingName(db, key)} serializedlength:${db.memoryUsage(key)} ` +
      `lru:0 lru_seconds_idle:${idle}`,
  );
}

function protocol(context: Context): void {
  const { client, reply } = context;
  switch (context.word(2)) {
    case 'string':
      reply.bulkString('Hello World');
      break;
    case 'integer':
      reply.integer(12345);
      break;
    case 'double':
      // The digits that Redis prints of 3.141.
      reply.double('3.141');
      break;
    case 'bignum':
      reply.bigNumber('1234567999999999999999999999999999999');
      break;
    case 'null':
      reply.null();
      break;
    case 'array':
      reply.array(3);
      for (let i = 0; i < 3; i++) reply.integer(i);
      break;
    case 'set':
      reply.set(3);
      for (let i = 0; i < 3; i++) reply.integer(i);
      break;
    case 'map':
      reply.map(3);
      for (let i = 0; i < 3; i++) {
        reply.integer(i);
        reply.boolean(i === 1);
      }
      break;
    case 'attrib':
      if (client.protocol === 3) {
        reply.attribute(1);
        reply.bulkString('key-popularity');
        reply.array(2);
        reply.bulkString('key:123');
        reply.integer(90);
      }
      reply.bulkString('Some real reply following the attribute');
      break;
    case 'push':
      if (client.protocol === 2) throw new CommandError('ERR RESP2 is not supported by this command');
      reply.push(2);
      reply.bulkString('server-cpu-usage');
      reply.integer(42);
      reply.bulkString('Some real reply following the push reply');
      break;
    case 'true':
      reply.boolean(true);
      break;
    case 'false':
      reply.boolean(false);
      break;
    case 'verbatim':
      reply.verbatim('This is a verbatim\nstring');
      break;
    default:
      throw new CommandError(
        'ERR Wrong protocol type name. Please use one of the following: ' +
          'string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false',
      );
  }
}

/** Keys, and bytes of values, that DEBUG POPULATE writes as one unit of work. */
const POPULATE_KEYS = 1000;
const POPULATE_BYTES = 1024 * 1024;

/** Fills the database with strings; those that exist already stay. Not one unit: it may be more than the memory holds. */
function populate(context: Context): void {
  const { argc, args, db, reply } = context;
  const count = sliceInteger(args[2]);
  if (!(count >= 0)) throw new CommandError(NOT_INTEGER);
  const prefix = argc > 3 ? args[3].latin1() : 'key';
  const size = argc > 4 ? sliceInteger(args[4]) : 0;
  const keyAt = (i: number): Slice => Slice.from(Buffer.from(`${prefix}:${i}`, 'latin1'));
  const part = Math.max(1, Math.min(POPULATE_KEYS, Math.floor(POPULATE_BYTES / (size + 1))));
  let done = (context.progress ?? 0) as number;
  while (done < count) {
    const from = done;
    const end = Math.min(count, from + part);
    db.need(end - from, (index) => keyAt(from + index));
    for (let i = from; i < end; i++) {
      const key = keyAt(i);
      if (db.type(key) !== Type.None) continue;
      const text = Buffer.from(`value:${i}`);
      const value = size > 0 ? Buffer.alloc(size) : text;
      if (size > 0) text.copy(value);
      db.setString(key, Slice.from(value));
      context.effect('SET', key, value);
    }
    done = end;
    if (!context.nested) context.commitPart(done);
  }
  context.endParts();
  reply.ok();
}

/** Beginnings of a digest that changes have made vain, after which it is given up. */
const DIGESTS_MAX = 100;

interface Digesting {
  progress: DigestProgress | null;
  /** What had changed in all when that far was come. */
  changes: number;
  begun: number;
}

/** In parts where not everything is in memory. It is of one moment: what changes between two parts begins it anew. */
function digest(context: Context): void {
  const { store, reply, server } = context;
  const changes = (): number => server.changes + server.statistics.expiredKeys;
  const digesting = (context.progress ?? { progress: null, changes: changes(), begun: 1 }) as Digesting;
  let { progress, begun } = digesting;
  if (digesting.changes !== changes()) {
    progress = null;
    if (++begun > DIGESTS_MAX) throw new CommandError('ERR The data changed while their digest was made');
  }
  const databases = Array.from({ length: store.databaseCount }, (_, i) => store.database(i));
  const digest = digestOfAll(databases, progress, (progress) => {
    if (!context.nested) context.advance({ progress, changes: changes(), begun });
  });
  context.endParts();
  reply.simple(digest);
}

function digestValue({ argc, args, db, reply }: Context): void {
  reply.array(argc - 2);
  for (let i = 2; i < argc; i++) reply.simple(digestOfValue(db, args[i]));
}

function setActiveExpire(context: Context): void {
  const value = context.integer(2);
  context.server.cron.activeExpire = value !== 0;
  context.reply.ok();
}

/** Settings of Redis's internals that have no counterpart here. */
function accept({ reply }: Context): void {
  reply.ok();
}

const debug = {
  flags: ['admin', 'noscript', 'loading', 'stale'],
  categories: [],
  group: 'server',
  since: '1.0.0',
} as const;

const subcommands: readonly Command[] = [
  { ...debug, name: 'sleep', arity: 3, summary: 'Stops everything for some seconds', run: sleep },
  { ...debug, name: 'object', arity: 3, summary: 'Tells of a value', run: object },
  { ...debug, name: 'protocol', arity: 3, summary: 'A reply of the given type', run: protocol },
  { ...debug, name: 'populate', arity: -3, summary: 'Fills the database', run: populate },
  { ...debug, name: 'digest', arity: 2, summary: 'A digest of all data, as Redis makes it', run: digest },
  {
    ...debug,
    name: 'digest-value',
    arity: -2,
    summary: 'Digests of values, as Redis makes them',
    run: digestValue,
  },
  { ...debug, name: 'reload', arity: -2, summary: 'Writes an RDB file and loads it', run: reload },
  { ...debug, name: 'loadaof', arity: 2, summary: 'Writes an RDB file and loads it', run: reload },
  {
    ...debug,
    name: 'set-active-expire',
    arity: 3,
    summary: 'Whether due keys are removed in the background',
    run: setActiveExpire,
  },
  {
    ...debug,
    name: 'error',
    arity: 3,
    summary: 'Replies with an error',
    run: ({ args, reply }) => reply.error(args[2].latin1()),
  },
  {
    ...debug,
    name: 'log',
    arity: 3,
    summary: 'Writes to the server log',
    run: ({ args, server, reply }) => {
      server.logger.warn(`DEBUG LOG: ${args[2].latin1()}`);
      reply.ok();
    },
  },
  ...(
    [
      ['quicklist-packed-threshold', 3],
      ['set-skip-checksum-validation', 3],
      ['change-repl-id', 2],
      ['replybuffer', -3],
      ['pause-cron', 3],
      ['set-disable-deny-scripts', 3],
    ] as const
  ).map(([name, arity]): Command => ({ ...debug, name, arity, summary: 'Changes nothing', run: accept })),
];

export const debugCommands: readonly Command[] = [
  {
    ...debug,
    name: 'debug',
    arity: -2,
    complexity: 'Depends on the subcommand',
    internal: true,
    summary: 'For tests of clients',
    guard,
    subcommands: [
      ...subcommands,
      helpCommand('server', '1.0.0', [
        ...subcommands.flatMap(({ name, summary }) => [name.toUpperCase(), `    ${summary}.`]),
      ]),
    ],
  },
];
