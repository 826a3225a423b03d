/** COMMAND DOCS: the arguments of every command, beside a real Redis. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { commandTable } from '../../src/server/command-table.ts';
import { startPair, type Pair } from './harness.ts';
import { parseReply, type ReplyTree } from './replies.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startPair();
});
afterAll(() => pair.stop());

/** Since when an argument is there is not told here. */
const LEFT_OUT = ['since', 'summary', 'deprecated_since'];

function elements(tree: ReplyTree): readonly ReplyTree[] {
  return typeof tree === 'string' ? [] : tree.elements;
}

/** A map of a RESP2 reply as an object. */
function record(tree: ReplyTree): Record<string, unknown> {
  const list = elements(tree);
  const fields: Record<string, unknown> = {};
  for (let i = 0; i < list.length; i += 2) {
    const name = String(list[i]).replace(/^\$/, '');
    if (name === 'arguments') fields.arguments = elements(list[i + 1]).map(record);
    else if (name === 'flags')
      fields.flags = elements(list[i + 1])
        .map(String)
        .sort();
    else if (!LEFT_OUT.includes(name)) fields[name] = list[i + 1];
  }
  return fields;
}

const names = commandTable.flatMap(({ name, subcommands }) => [
  name,
  ...(subcommands ?? []).map((sub) => `${name}|${sub.name}`),
]);

async function argumentsOf(client: Pair['ours'], name: string): Promise<unknown> {
  const [, docs] = elements(parseReply(await client.send('COMMAND', 'DOCS', name)));
  return docs === undefined ? 'unknown' : record(docs).arguments;
}

test.each(names)('%s', async (name) => {
  const theirs = await argumentsOf(pair.theirs, name);
  if (theirs !== 'unknown') expect(await argumentsOf(pair.ours, name)).toEqual(theirs);
});
