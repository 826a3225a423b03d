/** What COMMAND INFO tells of list, set, hash, sorted set and stream commands, beside a real Redis. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hashCommands } from '../../src/server/commands/hashes.ts';
import { listCommands } from '../../src/server/commands/lists.ts';
import { setCommands } from '../../src/server/commands/sets.ts';
import { streamCommands } from '../../src/server/commands/streams.ts';
import { zsetCommands } from '../../src/server/commands/zsets.ts';
import { startPair, type Pair } from './harness.ts';
import { parseReply, type ReplyTree } from './replies.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startPair();
});
afterAll(() => pair.stop());

/** Flags, categories and tips are sets; RESP2 shows them in some order. Notes about keys are not given here. */
function sorted(tree: ReplyTree): ReplyTree {
  if (typeof tree === 'string') return tree;
  const elements = tree.elements.slice(tree.elements[0] === '$notes' ? 2 : 0).map(sorted);
  if (elements.every((each) => typeof each === 'string')) elements.sort();
  return { type: tree.type, elements };
}

const commands = [listCommands, setCommands, hashCommands, zsetCommands, streamCommands]
  .flat()
  .filter(({ subcommands }) => subcommands === undefined);

test.each(commands.map(({ name }) => name))('%s', async (name) => {
  const [ours, theirs] = await Promise.all([
    pair.ours.send('COMMAND', 'INFO', name),
    pair.theirs.send('COMMAND', 'INFO', name),
  ]);
  expect(sorted(parseReply(ours))).toEqual(sorted(parseReply(theirs)));
});

test.each(commands.map(({ name, since, group }) => [name, since, group]))(
  '%s: since %s, group %s',
  async (name, since, group) => {
    const docs = await pair.theirs.send('COMMAND', 'DOCS', name);
    expect(docs).toContain(`$5\r\nsince\r\n$${since.length}\r\n${since}\r\n`);
    expect(docs).toContain(`$5\r\ngroup\r\n$${group.length}\r\n${group}\r\n`);
  },
);
