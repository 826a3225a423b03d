/** Dumps: RDB files of the data as they are at one moment. */
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { describe, syntaxError } from '../errors.ts';
import { IN_PROGRESS } from '../persistence.ts';

/** Writes the dump and replies when it is on the disk; other clients are served meanwhile. */
export function save({ server, client, reply }: Context): void {
  if (server.persistence.inProgress) throw new CommandError(IN_PROGRESS);
  if (server.durability?.dumps === undefined) {
    void server.persistence.save(false);
    reply.ok();
    return;
  }
  server.suspend(client);
  server.persistence.save(false).then(
    () => server.proceed(client, (output) => output.ok()),
    (error: unknown) => server.proceed(client, (output) => output.error(`ERR ${describe(error)}`)),
  );
}

function backgroundSave(context: Context): void {
  const { argc, server, reply } = context;
  const scheduled = argc === 2 && context.is(1, 'schedule');
  if (argc > 2 || (argc === 2 && !scheduled)) throw syntaxError();
  if (server.persistence.inProgress) {
    if (!scheduled) throw new CommandError(IN_PROGRESS);
    server.persistence.schedule();
    reply.simple('Background saving scheduled');
    return;
  }
  server.persistence.begin();
  reply.simple('Background saving started');
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
    arity: 1,
    flags: ['admin', 'noscript', 'no_async_loading', 'no_multi'],
    complexity: 'O(N) with N bytes of data',
    summary: 'Writes an RDB file of the data and waits for it',
    run: save,
  },
  {
    ...saving,
    name: 'bgsave',
    arity: -1,
    syntax: '[SCHEDULE]',
    complexity: 'O(1)',
    summary: 'Begins to write an RDB file of the data as they are now',
    run: backgroundSave,
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
