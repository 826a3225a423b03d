/** ACL, as far as one user goes: `default`, who may do everything. */
import { randomBytes } from 'node:crypto';
import { CommandError, type Command } from '../command.ts';
import { CATEGORIES, commandCategories } from '../categories.ts';
import type { Context } from '../context.ts';
import { helpCommand, wrongSubcommand } from './help.ts';

function cat(context: Context): void {
  const { argc, args, server, reply } = context;
  if (argc > 3) throw wrongSubcommand(context);
  if (argc === 2) {
    reply.array(CATEGORIES.length);
    for (const category of CATEGORIES) reply.bulkString(category);
    return;
  }
  const category = context.word(2);
  if (!CATEGORIES.includes(category)) throw new CommandError(`ERR Unknown category '${args[2].latin1()}'`);
  const members = [...server.lookup.all()].filter((entry) => commandCategories(entry).includes(category));
  reply.array(members.length);
  for (const { fullName } of members) reply.bulkString(fullName);
}

function list({ server, reply }: Context): void {
  reply.array(1);
  reply.bulkString(`user default on ${server.password.rule} ~* &* +@all`);
}

function genPass(context: Context): void {
  const { argc, reply } = context;
  const bits = argc > 2 ? context.integer(2) : 256;
  if (!(bits >= 1 && bits <= 4096))
    throw new CommandError(
      'ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096',
    );
  const digits = Math.ceil(bits / 4);
  reply.bulkString(
    randomBytes(Math.ceil(digits / 2))
      .toString('hex')
      .slice(0, digits),
  );
}

const acl = { categories: [], group: 'server', since: '6.0.0', complexity: 'O(1)' } as const;

export const aclCommands: readonly Command[] = [
  {
    name: 'acl',
    arity: -2,
    flags: [],
    categories: [],
    group: 'server',
    since: '6.0.0',
    complexity: 'Depends on the subcommand',
    summary: 'Users and what they may do',
    subcommands: [
      {
        ...acl,
        name: 'whoami',
        arity: 2,
        flags: ['noscript', 'loading', 'stale'],
        summary: 'The user of this connection',
        run: ({ reply }) => reply.bulkString('default'),
      },
      {
        ...acl,
        name: 'users',
        arity: 2,
        flags: ['admin', 'noscript', 'loading', 'stale'],
        summary: 'Names of all users',
        run: ({ reply }) => {
          reply.array(1);
          reply.bulkString('default');
        },
      },
      {
        ...acl,
        name: 'list',
        arity: 2,
        flags: ['admin', 'noscript', 'loading', 'stale'],
        summary: 'All users with their rules',
        run: list,
      },
      {
        ...acl,
        name: 'cat',
        arity: -2,
        syntax: '[categoryname]',
        flags: ['noscript', 'loading', 'stale'],
        complexity: 'O(N) with N commands',
        summary: 'Categories of commands',
        run: cat,
      },
      {
        ...acl,
        name: 'genpass',
        arity: -2,
        syntax: '[bits]',
        flags: ['noscript', 'loading', 'stale'],
        summary: 'A random password',
        run: genPass,
      },
      helpCommand('server', '6.0.0', [
        'CAT [<category>]',
        '    List all commands that belong to <category>, or all command categories',
        '    when no category is specified.',
        'GENPASS [<bits>]',
        '    Generate a secure 256-bit user password. The optional `bits` argument can',
        '    be used to specify a different size.',
        'LIST',
        '    Show users details in config file format.',
        'USERS',
        '    List all the registered usernames.',
        'WHOAMI',
        '    Return the current connection username.',
      ]),
    ],
  },
];
