/** OBJECT: what the server knows of a value beyond its content. */
import { sliceInteger } from '../../bytes/number.ts';
import { Slice } from '../../bytes/slice.ts';
import { Type } from '../../store/api.ts';
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { encodingName } from '../encoding.ts';
import { helpCommand } from './help.ts';
import { keyAt } from './key-specs.ts';

const LFU_NOT_SELECTED =
  'ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when ' +
  'switching between policies at runtime LRU and LFU data will take some time to adjust.';

/** Redis keeps the integers below this one once for all keys, with a count of references that never changes. */
const SHARED_INTEGERS = 10_000;
const SHARED_REFERENCES = 2 ** 31 - 1;

const HELP = [
  'ENCODING <key>',
  '    Name the representation of the value at <key>.',
  'FREQ <key>',
  '    Tell how often <key> was used lately, on a logarithmic scale (LFU policies only).',
  'IDLETIME <key>',
  '    Tell for how many seconds <key> has not been used.',
  'REFCOUNT <key>',
  '    Tell how many references there are to the value at <key>.',
];

const shown = new Slice();

function references(context: Context): number {
  const key = context.args[2];
  if (encodingName(context.db, key) !== 'int' || !context.db.getString(key, shown)) return 1;
  const value = sliceInteger(shown);
  return value >= 0 && value < SHARED_INTEGERS ? SHARED_REFERENCES : 1;
}

/** A subcommand that replies about the key at args[2], or null when it does not exist. */
function aboutKey(name: string, since: string, summary: string, run: (context: Context) => void): Command {
  return {
    name,
    arity: 3,
    syntax: 'key',
    flags: ['readonly'],
    categories: ['keyspace'],
    keys: [keyAt(2, 'RO')],
    group: 'generic',
    since,
    complexity: 'O(1)',
    tips: ['nondeterministic_output'],
    summary,
    run: (context) => {
      if (context.db.type(context.args[2]) === Type.None) context.reply.null();
      else run(context);
    },
  };
}

export const objectCommand: Command = {
  name: 'object',
  arity: -2,
  flags: [],
  categories: [],
  group: 'generic',
  since: '2.2.3',
  complexity: 'depends on the subcommand',
  summary: 'Looks into the representation of values.',
  subcommands: [
    aboutKey('encoding', '2.2.3', 'Names the representation of a value.', (context) =>
      context.reply.bulkString(encodingName(context.db, context.args[2])!),
    ),
    aboutKey('freq', '4.0.0', 'Tells how often a key was used lately.', () => {
      throw new CommandError(LFU_NOT_SELECTED);
    }),
    aboutKey('idletime', '2.2.3', 'Tells for how long a key has not been used.', (context) =>
      context.reply.integer(context.db.idleSeconds(context.args[2])),
    ),
    aboutKey('refcount', '2.2.3', 'Tells how many references there are to a value.', (context) =>
      context.reply.integer(references(context)),
    ),
    { ...helpCommand('generic', '6.2.0', HELP), categories: ['keyspace'] },
  ],
};
