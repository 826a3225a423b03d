/** COMMAND DOCS: the arguments of every command and what replaces it, beside a real Redis. */
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

/** Its arguments, whether it is deprecated, since when, and the commands that replace it. */
async function docsOf(client: Pair['ours'], name: string): Promise<unknown> {
  const [, docs] = elements(parseReply(await client.send('COMMAND', 'DOCS', name)));
  if (docs === undefined) return 'unknown';
  const fields = record(docs);
  const list = elements(docs);
  const at = list.indexOf('$deprecated_since');
  return {
    arguments: fields.arguments,
    flags: fields.doc_flags,
    deprecated: at < 0 ? undefined : list[at + 1],
    successor: /`([A-Z ]*[A-Z])/.exec(String(fields.replaced_by))?.[1],
  };
}

test.each(names)('%s', async (name) => {
  const theirs = await docsOf(pair.theirs, name);
  if (theirs !== 'unknown') expect(await docsOf(pair.ours, name)).toEqual(theirs);
});
