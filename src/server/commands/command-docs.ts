/** COMMAND: what the command table says of itself. */
import { matchGlob } from '../../bytes/glob.ts';
import { Slice } from '../../bytes/slice.ts';
import { commandCategories } from '../categories.ts';
import { CommandError, type Command, type KeySpec } from '../command.ts';
import type { CommandEntry } from '../command-entry.ts';
import type { Context } from '../context.ts';
import { syntaxError } from '../errors.ts';
import { keyPositions } from '../key-positions.ts';
import type { Reply } from '../reply.ts';
import { parseSyntax, type Argument } from '../syntax.ts';
import { helpCommand } from './help.ts';

/** First key, last key and step of the oldest form, where they can be told. */
function keyRange(keys: readonly KeySpec[] = []): [first: number, last: number, step: number] {
  const fixed = keys.filter((spec) => 'index' in spec.begin && 'last' in spec.find);
  if (fixed.length === 0) return [0, 0, 0];
  let first = Infinity;
  let last = -Infinity;
  let step = 1;
  for (const { begin, find } of fixed) {
    if (!('index' in begin) || !('last' in find)) continue;
    first = Math.min(first, begin.index);
    const end = find.last >= 0 ? begin.index + find.last : find.last;
    // A range from the end reaches farther than any fixed one.
    last = last < 0 && last !== -Infinity ? last : end < 0 ? end : Math.max(last, end);
    step = find.step;
  }
  return [first, last, step];
}

function writeWords(reply: Reply, words: readonly string[]): void {
  reply.set(words.length);
  for (const word of words) reply.simple(word);
}

function writeKeySpec(reply: Reply, { access, begin, find }: KeySpec): void {
  reply.map(3);
  reply.bulkString('flags');
  writeWords(reply, access);
  reply.bulkString('begin_search');
  reply.map(2);
  reply.bulkString('type');
  reply.bulkString('index' in begin ? 'index' : 'keyword' in begin ? 'keyword' : 'unknown');
  reply.bulkString('spec');
  if ('index' in begin) {
    reply.map(1);
    reply.bulkString('index');
    reply.integer(begin.index);
  } else if ('keyword' in begin) {
    reply.map(2);
    reply.bulkString('keyword');
    reply.bulkString(begin.keyword);
    reply.bulkString('startfrom');
    reply.integer(begin.startFrom);
  } else {
    reply.map(0);
  }
  reply.bulkString('find_keys');
  reply.map(2);
  reply.bulkString('type');
  reply.bulkString('last' in find ? 'range' : 'keynum' in find ? 'keynum' : 'unknown');
  reply.bulkString('spec');
  const fields =
    'last' in find
      ? { lastkey: find.last, keystep: find.step, limit: find.limit ?? 0 }
      : 'keynum' in find
        ? { keynumidx: find.keynum, firstkey: find.first, keystep: find.step }
        : {};
  reply.map(Object.keys(fields).length);
  for (const [name, value] of Object.entries(fields)) {
    reply.bulkString(name);
    reply.integer(value);
  }
}

/** Flags that Redis keeps to itself. */
const HIDDEN_FLAGS: readonly string[] = ['may_replicate'];

function writeInfo(reply: Reply, entry: CommandEntry | undefined): void {
  if (entry === undefined) {
    reply.null();
    return;
  }
  const { command, fullName, arity, subcommands } = entry;
  const [first, last, step] = keyRange(command.keys);
  const keys = command.keys ?? [];
  reply.array(10);
  reply.bulkString(fullName);
  reply.integer(arity);
  writeWords(
    reply,
    command.flags.filter((flag) => !HIDDEN_FLAGS.includes(flag)),
  );
  reply.integer(first);
  reply.integer(last);
  reply.integer(step);
  writeWords(
    reply,
    commandCategories(entry).map((category) => `@${category}`),
  );
  const tips = command.tips ?? [];
  reply.set(tips.length);
  for (const tip of tips) reply.bulkString(tip);
  reply.set(keys.length);
  for (const spec of keys) writeKeySpec(reply, spec);
  reply.set(subcommands?.size ?? 0);
  for (const sub of subcommands?.values() ?? []) writeInfo(reply, sub);
}

function writeArguments(reply: Reply, list: readonly Argument[]): void {
  reply.array(list.length);
  for (const argument of list) {
    const { name, type, token, keySpec, optional, multiple, multipleToken } = argument;
    const flags: string[] = [];
    if (optional) flags.push('optional');
    if (multiple) flags.push('multiple');
    if (multipleToken) flags.push('multiple_token');
    reply.map(
      2 +
        Number(keySpec !== undefined) +
        Number(token !== undefined) +
        Number(flags.length > 0) +
        Number(argument.arguments !== undefined),
    );
    reply.bulkString('name');
    reply.bulkString(name);
    reply.bulkString('type');
    reply.bulkString(type);
    if (keySpec !== undefined) {
      reply.bulkString('key_spec_index');
      reply.integer(keySpec);
    }
    if (token !== undefined) {
      reply.bulkString('token');
      reply.bulkString(token);
    }
    if (flags.length > 0) {
      reply.bulkString('flags');
      writeWords(reply, flags);
    }
    if (argument.arguments !== undefined) {
      reply.bulkString('arguments');
      writeArguments(reply, argument.arguments);
    }
  }
}

function writeDocs(reply: Reply, { command, subcommands }: CommandEntry): void {
  const { complexity, deprecated, syntax } = command;
  const flags: string[] = [];
  if (deprecated !== undefined) flags.push('deprecated');
  if (command.internal === true) flags.push('syscmd');
  const optional = [complexity, syntax, subcommands ?? undefined, deprecated, deprecated].filter(
    (each) => each !== undefined,
  );
  reply.map(3 + optional.length + Number(flags.length > 0));
  reply.bulkString('summary');
  reply.bulkString(command.summary);
  reply.bulkString('since');
  reply.bulkString(command.since);
  reply.bulkString('group');
  reply.bulkString(command.group);
  if (complexity !== undefined) {
    reply.bulkString('complexity');
    reply.bulkString(complexity);
  }
  if (flags.length > 0) {
    reply.bulkString('doc_flags');
    writeWords(reply, flags);
  }
  if (deprecated !== undefined) {
    reply.bulkString('deprecated_since');
    reply.bulkString(deprecated.since);
    reply.bulkString('replaced_by');
    reply.bulkString(deprecated.use);
  }
  if (syntax !== undefined) {
    reply.bulkString('arguments');
    writeArguments(reply, parseSyntax(syntax));
  }
  if (subcommands !== null) {
    reply.bulkString('subcommands');
    reply.map(subcommands.size);
    for (const sub of subcommands.values()) {
      reply.bulkString(sub.fullName);
      writeDocs(reply, sub);
    }
  }
}

function all({ server, reply }: Context): void {
  const { entries } = server.lookup;
  reply.array(entries.length);
  for (const entry of entries) writeInfo(reply, entry);
}

function info(context: Context): void {
  const { argc, args, server, reply } = context;
  if (argc === 2) {
    all(context);
    return;
  }
  reply.array(argc - 2);
  for (let i = 2; i < argc; i++) writeInfo(reply, server.lookup.get(args[i].latin1()));
}

function docs({ argc, args, server, reply }: Context): void {
  const entries =
    argc === 2
      ? server.lookup.entries
      : args.slice(2, argc).flatMap((name) => server.lookup.get(name.latin1()) ?? []);
  reply.map(entries.length);
  for (const entry of entries) {
    reply.bulkString(entry.fullName);
    writeDocs(reply, entry);
  }
}

function list(context: Context): void {
  const { argc, args, server, reply } = context;
  const everything = [...server.lookup.all()];
  let entries: readonly CommandEntry[] = everything;
  if (argc !== 2) {
    if (argc !== 5 || !context.is(2, 'filterby')) throw syntaxError();
    const value = context.word(4);
    switch (context.word(3)) {
      case 'module':
        entries = [];
        break;
      case 'aclcat':
        entries = everything.filter((entry) => commandCategories(entry).includes(value));
        break;
      case 'pattern':
        entries = everything.filter((entry) => matchGlob(args[4], Slice.from(entry.fullName), true));
        break;
      default:
        throw syntaxError();
    }
  }
  reply.array(entries.length);
  for (const { fullName } of entries) reply.bulkString(fullName);
}

function getKeys(context: Context, withFlags: boolean): void {
  const { argc, args, server, reply } = context;
  let entry = server.lookup.find(args[2]);
  if (entry?.subcommands !== undefined && entry.subcommands !== null && argc > 3)
    entry = entry.subcommands.get(context.word(3));
  if (entry === undefined) throw new CommandError('ERR Invalid command specified');
  const { command, arity } = entry;
  if (command.getKeys === undefined && (command.keys ?? []).every(({ access }) => access.includes('not_key')))
    throw new CommandError('ERR The command has no key arguments');
  const given = args.slice(2, argc);
  if (arity > 0 ? arity !== given.length : given.length < -arity)
    throw new CommandError('ERR Invalid number of arguments specified for command');
  const positions = keyPositions(command, given, given.length);
  if (positions === undefined || positions.length === 0)
    throw new CommandError('ERR Invalid arguments specified for command');
  reply.array(positions.length);
  for (const { index, access } of positions) {
    if (withFlags) reply.array(2);
    reply.bulk(given[index]);
    if (withFlags) writeWords(reply, access);
  }
}

const introspection = {
  flags: ['loading', 'stale'],
  categories: ['connection'],
  group: 'server',
  since: '2.8.13',
} as const;

export const commandCommands: readonly Command[] = [
  {
    ...introspection,
    name: 'command',
    arity: -1,
    complexity: 'O(N) with N commands',
    tips: ['nondeterministic_output_order'],
    summary: 'Tells of all commands',
    run: all,
    subcommands: [
      {
        ...introspection,
        name: 'count',
        arity: 2,
        complexity: 'O(1)',
        summary: 'Counts the commands',
        run: ({ server, reply }) => reply.integer(server.lookup.entries.length),
      },
      {
        ...introspection,
        name: 'info',
        arity: -2,
        syntax: '[command-name...]',
        complexity: 'O(N) with N commands asked for',
        tips: ['nondeterministic_output_order'],
        summary: 'Arity, flags and keys of commands',
        run: info,
      },
      {
        ...introspection,
        name: 'docs',
        arity: -2,
        syntax: '[command-name...]',
        since: '7.0.0',
        complexity: 'O(N) with N commands asked for',
        tips: ['nondeterministic_output_order'],
        summary: 'Documentation of commands',
        run: docs,
      },
      {
        ...introspection,
        name: 'list',
        arity: -2,
        syntax: '[FILTERBY filterby(MODULE module-name|ACLCAT category|PATTERN pattern)]',
        since: '7.0.0',
        complexity: 'O(N) with N commands',
        tips: ['nondeterministic_output_order'],
        summary: 'Names of commands',
        run: list,
      },
      {
        ...introspection,
        name: 'getkeys',
        arity: -4,
        complexity: 'O(N) with N arguments',
        summary: 'The keys of a whole command',
        run: (context) => getKeys(context, false),
      },
      {
        ...introspection,
        name: 'getkeysandflags',
        arity: -4,
        since: '7.0.0',
        complexity: 'O(N) with N arguments',
        summary: 'The keys of a whole command and what it does with them',
        run: (context) => getKeys(context, true),
      },
      {
        ...helpCommand('server', '5.0.0', [
          '(no subcommand)',
          '    Return details about all Redis commands.',
          'COUNT',
          '    Return the total number of commands in this Redis server.',
          'LIST',
          '    Return a list of all commands in this Redis server.',
          'INFO [<command-name> ...]',
          '    Return details about multiple Redis commands.',
          '    If no command names are given, documentation details for all',
          '    commands are returned.',
          'DOCS [<command-name> ...]',
          '    Return documentation details about multiple Redis commands.',
          '    If no command names are given, documentation details for all',
          '    commands are returned.',
          'GETKEYS <full-command>',
          '    Return the keys from a full Redis command.',
          'GETKEYSANDFLAGS <full-command>',
          '    Return the keys and the access flags from a full Redis command.',
        ]),
        categories: ['connection'],
      },
    ],
  },
];
