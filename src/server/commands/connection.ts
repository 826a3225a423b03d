/** Connection commands. */
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { DB_OUT_OF_RANGE, wrongArgumentCount } from '../errors.ts';

function ping({ argc, args, client, reply }: Context): void {
  if (argc > 2) throw new CommandError(wrongArgumentCount('ping'));
  void client;
  if (argc === 1) reply.simple('PONG');
  else reply.bulk(args[1]);
}

function echo({ args, reply }: Context): void {
  reply.bulk(args[1]);
}

function select(context: Context): void {
  const index = context.integer(1);
  if (index < 0 || index >= context.store.databaseCount) throw new CommandError(DB_OUT_OF_RANGE);
  context.db = context.client.db = context.store.database(index);
  context.reply.ok();
}

const FAST_ANYTIME = ['loading', 'stale', 'fast'] as const;

export const connectionCommands: readonly Command[] = [
  {
    name: 'ping',
    arity: -1,
    flags: ['fast'],
    categories: ['connection'],
    group: 'connection',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Answers, to tell that the server is there',
    run: ping,
  },
  {
    name: 'echo',
    arity: 2,
    flags: [...FAST_ANYTIME],
    categories: ['connection'],
    group: 'connection',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Answers with the given text',
    run: echo,
  },
  {
    name: 'select',
    arity: 2,
    flags: [...FAST_ANYTIME],
    categories: ['connection'],
    group: 'connection',
    since: '1.0.0',
    complexity: 'O(1)',
    summary: 'Chooses the database for the commands that follow',
    run: select,
  },
];
