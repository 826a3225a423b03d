/**
 * Every command of Redis's that we have, with arguments made from Redis's own documentation, beside a real one.
 * `npm run compare:redis` makes a hundred times as many, from a seed of its own.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Tier } from '../../src/store/tier.ts';
import { ALL_KEYS, CommandMaker, START } from './command-grammar.ts';
import { startPair, type Pair } from './harness.ts';
import { parseReply, unordered, withDice } from './replies.ts';

const ROUNDS = Number(process.env['COMMAND_ROUNDS'] ?? 20);
const COMMANDS_A_ROUND = 100;

let pair: Pair;
beforeAll(async () => {
  pair = await startPair({ store: new Tier({ hashKey: [1, 2] }) });
});
afterAll(() => pair.stop());

const bytes = (command: readonly string[]): Buffer[] => command.map((word) => Buffer.from(word, 'latin1'));

/** In the order of their hashes here, and of others there. */
const UNORDERED = /^(smembers|sdiff|sinter|sunion|hkeys|hvals|hgetall|keys)$/i;
const SCAN = /^[shz]?scan$/i;
/** Remaining time, and what no two servers measure alike. */
const MEASURED = /^(p?ttl|p?expiretime|xpending|xclaim|xautoclaim)$/i;

/** A reply as far as two servers must agree in it. */
function comparable([name]: readonly string[], given: string): unknown {
  if (given.startsWith('-')) return given;
  // A score of -0 is kept as 0 here: the two are one place in the order.
  const reply = /^b?z/i.test(name)
    ? given.replace(/\$2\r\n-0\r\n/g, '$$1\r\n0\r\n').replace(/,-0\r/g, ',0\r')
    : given;
  if (SCAN.test(name)) {
    const tree = parseReply(reply);
    return typeof tree === 'string' ? tree : tree.type;
  }
  if (MEASURED.test(name)) return reply.startsWith(':') ? reply[0] : reply.replace(/:\d+\r\n/g, ':\r\n');
  if (!UNORDERED.test(name)) return reply;
  if (/^hgetall$/i.test(name)) return unordered(reply, 2);
  return unordered(reply);
}

/** What a key holds, whatever it is. */
async function contents(key: string): Promise<[string, string, unknown, unknown]> {
  const ask = async (...command: string[]): Promise<[unknown, unknown]> => {
    const sent = bytes(command);
    const [ours, theirs] = await Promise.all([pair.ours.send(...sent), pair.theirs.send(...sent)]);
    return [comparable(command, ours), comparable(command, theirs)];
  };
  const [ours, theirs] = await ask('TYPE', key);
  const looks: Record<string, string[]> = {
    '+string\r\n': ['GET', key],
    '+list\r\n': ['LRANGE', key, '0', '-1'],
    '+set\r\n': ['SMEMBERS', key],
    '+hash\r\n': ['HGETALL', key],
    '+zset\r\n': ['ZRANGE', key, '0', '-1', 'WITHSCORES'],
    '+stream\r\n': ['XRANGE', key, '-', '+'],
  };
  const look = looks[theirs as string] ?? ['EXISTS', key];
  return [String(ours), String(theirs), ...(await ask(...look))];
}

test.each([2, 3])('replies and what keys hold are the same, RESP%i', (protocol) =>
  withDice(async (dice) => {
    await Promise.all([pair.ours.send('HELLO', protocol), pair.theirs.send('HELLO', protocol)]);
    const docs = await pair.theirs.send('COMMAND', 'DOCS');
    const ours = new Set((await pair.ours.send('COMMAND', 'LIST')).split('\r\n'));
    const maker = new CommandMaker(docs, (command) => ours.has(command), dice);
    expect(maker.count).toBeGreaterThan(150);
    for (let round = 0; round < ROUNDS; round++) {
      await pair.flush();
      await pair.compare(START.map(bytes));
      const done: string[] = [];
      for (let i = 0; i < COMMANDS_A_ROUND; i++) {
        const command = maker.next();
        const line = command.map((word) => JSON.stringify(word)).join(' ');
        done.push(line);
        const sent = bytes(command);
        const [here, there] = await Promise.all([pair.ours.send(...sent), pair.theirs.send(...sent)]);
        expect(comparable(command, here), line).toEqual(comparable(command, there));
      }
      for (const key of ALL_KEYS) {
        const [ourType, theirType, held, expected] = await contents(key);
        const since = done.filter((line) => line.includes(JSON.stringify(key))).join('\n');
        expect([key, ourType, held], since).toEqual([key, theirType, expected]);
      }
    }
  }),
);
