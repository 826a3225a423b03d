/** Dumps: RDB files and images of the data as they are at one moment. */
import path from 'node:path';
import type { ImportCounts } from '../../store/dump/imports.ts';
import type { DumpFormat } from '../../store/dump/dump-thread.ts';
import type { ImportMode } from '../../store/merge.ts';
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { DB_OUT_OF_RANGE, describe, syntaxError } from '../errors.ts';
import { IN_PROGRESS } from '../persistence.ts';
import type { Reply } from '../reply.ts';

/** Writes the dump and replies when it is on the disk; other clients are served meanwhile. */
export function save(context: Context): void {
  const { argc, server, client, reply } = context;
  const image = argc === 2 && context.is(1, 'image');
  if (argc > 2 || (argc === 2 && !image)) throw syntaxError();
  if (server.persistence.inProgress) throw new CommandError(IN_PROGRESS);
  if (server.durability?.dumps === undefined) {
    void server.persistence.save(false);
    reply.ok();
    return;
  }
  server.suspend(client);
  server.persistence.save(false, image ? 'image' : 'rdb').then(
    () => server.proceed(client, (output) => output.ok()),
    (error: unknown) => server.proceed(client, (output) => output.error(`ERR ${describe(error)}`)),
  );
}

function backgroundSave(context: Context): void {
  const { argc, server, reply } = context;
  let format: DumpFormat = 'rdb';
  let scheduled = false;
  for (let i = 1; i < argc; i++) {
    if (context.is(i, 'image') && format === 'rdb') format = 'image';
    else if (context.is(i, 'schedule') && !scheduled) scheduled = true;
    else throw syntaxError();
  }
  if (server.persistence.inProgress) {
    if (!scheduled) throw new CommandError(IN_PROGRESS);
    server.persistence.schedule(format);
    reply.simple('Background saving scheduled');
    return;
  }
  server.persistence.begin(format);
  reply.simple('Background saving started');
}

/** IMPORT file [REPLACE|SKIP] [DB n] */
function importFile(context: Context): void {
  const { argc, args, server, client, store } = context;
  let mode: ImportMode = 'new';
  let database = -1;
  for (let i = 2; i < argc; i++) {
    if (context.is(i, 'replace') && mode === 'new') mode = 'replace';
    else if (context.is(i, 'skip') && mode === 'new') mode = 'skip';
    else if (context.is(i, 'db') && database < 0 && i + 1 < argc) {
      database = context.integer(++i);
      if (database < 0 || database >= store.databaseCount) throw new CommandError(DB_OUT_OF_RANGE);
    } else throw syntaxError();
  }
  const file = path.resolve(server.config.text('dir'), args[1].utf8());
  server.suspend(client);
  server.importing.run({ path: file, mode, database }).then(
    (counts) => server.proceed(client, (output) => writeCounts(output, counts)),
    (error: unknown) =>
      server.proceed(client, (output) => output.error(`ERR ${describe(error)}; nothing was imported`)),
  );
}

function writeCounts(reply: Reply, counts: ImportCounts): void {
  const shown = Object.entries(counts);
  reply.map(shown.length);
  for (const [name, count] of shown) {
    reply.bulkString(name);
    reply.integer(count);
  }
}

/** BACKUP directory */
function backup({ args, server, client }: Context): void {
  const to = path.resolve(server.config.text('dir'), args[1].utf8());
  server.suspend(client);
  server.persistence.backup(to).then(
    ({ elapsedMs, pauseMs, position }) =>
      server.proceed(client, (output) => {
        output.map(3);
        output.bulkString('milliseconds');
        output.integer(Math.round(elapsedMs));
        output.bulkString('pause_microseconds');
        output.integer(Math.round(pauseMs * 1000));
        output.bulkString('log_position');
        output.integer(position);
      }),
    (error: unknown) => server.proceed(client, (output) => output.error(`ERR ${describe(error)}`)),
  );
}

/** Writes an RDB file and loads it in place of the data. */
export function reload({ server, client, reply }: Context): void {
  const { persistence, importing } = server;
  if (server.options.imports === undefined) {
    reply.ok();
    return;
  }
  server.suspend(client);
  persistence
    .save(false)
    .then(() => importing.run({ path: persistence.file('rdb'), mode: 'instead', database: -1 }))
    .then(
      () => server.proceed(client, (output) => output.ok()),
      (error: unknown) => server.proceed(client, (output) => output.error(`ERR ${describe(error)}`)),
    );
}

const saving = {
  flags: ['admin', 'noscript', 'no_async_loading'],
  categories: [],
  group: 'server',
  since: '1.0.0',
} as const;

export const persistenceCommands: readonly Command[] = [
  {
    name: 'lastsave',
    arity: 1,
    flags: ['loading', 'stale', 'fast'],
    categories: ['admin', 'dangerous'],
    group: 'server',
    since: '1.0.0',
    complexity: 'O(1)',
    tips: ['nondeterministic_output'],
    summary: 'When the last dump was written, Unix seconds',
    run: ({ server, reply }) => reply.integer(server.persistence.lastSave),
  },
  {
    ...saving,
    name: 'save',
    arity: -1,
    flags: ['admin', 'noscript', 'no_async_loading', 'no_multi'],
    complexity: 'O(N) with N bytes of data',
    summary: 'Writes an RDB file or an image of the data and waits for it',
    run: save,
  },
  {
    ...saving,
    name: 'bgsave',
    arity: -1,
    syntax: '[SCHEDULE]',
    complexity: 'O(1)',
    summary: 'Begins to write an RDB file or an image of the data as they are now',
    run: backgroundSave,
  },
  {
    ...saving,
    name: 'import',
    arity: -2,
    flags: ['write', 'admin', 'noscript', 'no_async_loading', 'no_multi', 'denyoom'],
    complexity: 'O(N) with N keys of the file',
    summary: 'Loads an RDB file or an image into the running server, all of it or nothing',
    run: importFile,
  },
  {
    ...saving,
    name: 'backup',
    arity: 2,
    flags: ['admin', 'noscript', 'no_async_loading', 'no_multi'],
    complexity: 'O(N) with N bytes of the engine’s files that cannot be linked',
    summary: 'Makes a copy of the data directory that a server can open',
    run: backup,
  },
  {
    ...saving,
    name: 'bgrewriteaof',
    arity: 1,
    complexity: 'O(1)',
    summary: 'Begins a checkpoint, after which older log segments are deleted',
    run({ server, reply }) {
      server.persistence.rewriteLog();
      reply.simple('Background append only file rewriting started');
    },
  },
];
