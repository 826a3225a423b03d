/** What COMMAND INFO tells of string, bit and key commands, beside a real Redis. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bitCommands } from '../../src/server/commands/bits.ts';
import { dumpCommands } from '../../src/server/commands/dump.ts';
import { keyCommands } from '../../src/server/commands/keys.ts';
import { stringCommands } from '../../src/server/commands/strings.ts';
import { startPair, type Pair } from './harness.ts';
import { parseReply, type ReplyTree } from './replies.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startPair();
});
afterAll(() => pair.stop());

/** Flags, categories and tips are sets, in some order; notes on key specs are words of each server's own. */
function normal(tree: ReplyTree): ReplyTree {
  if (typeof tree === 'string') return tree;
  const from = tree.elements[0] === '$notes' ? 2 : 0;
  const elements = tree.elements.slice(from).map(normal);
  if (elements.every((each) => typeof each === 'string')) elements.sort();
  return { type: tree.type, elements };
}

const commands = [...stringCommands, ...bitCommands, ...keyCommands, ...dumpCommands];

test.each(commands.map(({ name }) => name))('%s', async (name) => {
  const [ours, theirs] = await Promise.all([
    pair.ours.send('COMMAND', 'INFO', name),
    pair.theirs.send('COMMAND', 'INFO', name),
  ]);
  const [mine, redis] = [ours, theirs].map((reply) => normal(parseReply(reply)));
  if (name === 'object') expect(subcommands(mine)).toEqual(subcommands(redis));
  else expect(mine).toEqual(redis);
});

/** The container's subcommands by name: they come in some order too. */
function subcommands(info: ReplyTree): Record<string, ReplyTree> {
  const [container] = (info as { elements: { elements: ReplyTree[] }[] }).elements;
  const { elements } = container.elements[9] as { elements: { elements: ReplyTree[] }[] };
  return Object.fromEntries(elements.map((each) => [String(each.elements[0]), each as unknown as ReplyTree]));
}

test.each(commands.map(({ name, since, group }) => [name, since, group]))(
  '%s: since %s, group %s',
  async (name, since, group) => {
    const docs = await pair.theirs.send('COMMAND', 'DOCS', name);
    expect(docs).toContain(`$5\r\nsince\r\n$${since.length}\r\n${since}\r\n`);
    expect(docs).toContain(`$5\r\ngroup\r\n$${group.length}\r\n${group}\r\n`);
  },
);

/** The flags of a key come in some order. */
test.each([
  'SET k v',
  'SET k v NX GET',
  'SET k v EX 10',
  'BITFIELD k',
  'BITFIELD k GET u8 0 OVERFLOW SAT',
  'BITFIELD k GET u8 0 INCRBY u8 0 1',
  'BITFIELD k GET u8',
  'SORT a BY w_* STORE r',
  'COPY a b',
  'LMOVE a b LEFT RIGHT',
  'SSUBSCRIBE c',
])('COMMAND GETKEYSANDFLAGS %s', async (line) => {
  const command = ['COMMAND', 'GETKEYSANDFLAGS', ...line.split(' ')];
  const [ours, theirs] = await Promise.all([pair.ours.send(...command), pair.theirs.send(...command)]);
  expect(normal(parseReply(ours))).toEqual(normal(parseReply(theirs)));
});

test('COMMAND GETKEYS', () =>
  pair.compare([
    'COMMAND GETKEYS SET k v GET',
    'COMMAND GETKEYS MSET a 1 b 2',
    'COMMAND GETKEYS MGET a b c',
    'COMMAND GETKEYS BITOP AND r a b',
    'COMMAND GETKEYS COPY a b DB 1',
    'COMMAND GETKEYS SORT a BY w* LIMIT 0 1 GET store STORE r',
    'COMMAND GETKEYS SORT a STORE r STORE s',
    'COMMAND GETKEYS SORT_RO a',
    'COMMAND GETKEYS OBJECT ENCODING k',
    'COMMAND GETKEYS LCS a b LEN',
    'COMMAND GETKEYS KEYS *',
  ]));
