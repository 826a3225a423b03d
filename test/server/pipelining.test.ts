/**
 * Requests that arrive together: their keys are read ahead and they are logged together, and yet they
 * answer, and are logged, as if each had come alone.
 */
import { afterEach, expect, test } from 'vitest';
import { Tier } from '../../src/store/tier.ts';
import { ModelStore } from '../model/store.ts';
import { SEED } from '../seed.ts';
import { Random } from '../store/random.ts';
import { connect, encodeCommand, startServer, type RawClient, type RunningServer } from './harness.ts';
import { MemoryLog } from './memory-log.ts';

interface Side {
  running: RunningServer;
  client: RawClient;
  log: MemoryLog;
}

const sides: Side[] = [];

async function start(store: Tier | ModelStore): Promise<Side> {
  const log = new MemoryLog();
  const running = await startServer({ store, log });
  const side = { running, log, client: await connect(running.port) };
  sides.push(side);
  return side;
}

afterEach(async () => {
  for (const { client, running } of sides.splice(0)) {
    client.close();
    await running.stop();
  }
});

/** Keys, and requests, of a few lengths only: those of one input lie where those of the one before lay. */
function command(random: Random): (string | number)[] {
  const key = (): string => `k${100 + random.below(300)}`;
  const number = random.below(10);
  switch (random.below(14)) {
    case 0:
    case 1:
    case 2:
      return ['SET', key(), `v${number}`];
    case 3:
    case 4:
      return ['GET', key()];
    case 5:
      return ['DEL', key()];
    case 6:
      return ['INCRBY', `n${random.below(9)}`, number];
    case 7:
      return ['MGET', ...Array.from({ length: 1 + random.below(80) }, key)];
    case 8:
      return ['MSET', ...Array.from({ length: 1 + random.below(70) }, () => [key(), `m${number}`]).flat()];
    case 9:
      return ['HSET', 'hash', key(), number];
    case 10:
      return ['HGET', 'hash', key()];
    case 11:
      return ['RPUSH', 'list', 'x'.repeat(random.below(200))];
    case 12:
      return ['LPOP', 'list'];
    default:
      return ['SPOP', key()];
  }
}

test(`pipelined requests answer, and are logged, one by one: SEED=${SEED}`, async () => {
  const random = new Random(SEED);
  const tier = await start(new Tier());
  const model = await start(new ModelStore());
  for (let round = 0; round < 300; round++) {
    const commands = Array.from({ length: 1 + random.below(70) }, () => command(random));
    if (random.below(5) === 0) {
      commands.splice(random.below(commands.length), 0, ['MULTI']);
      commands.push(['EXEC']);
    }
    const bytes = Buffer.concat(commands.map(encodeCommand));
    const cut = random.below(3) === 0 ? random.below(bytes.length) : 0;
    const replies = [tier, model].map(async ({ client }) => {
      client.write(bytes.subarray(0, cut));
      if (cut > 0) await new Promise((resolve) => setTimeout(resolve, 1));
      client.write(bytes.subarray(cut));
      return (await client.read(commands.length)).toString('latin1');
    });
    const [ours, theirs] = await Promise.all(replies);
    expect(ours, `round ${round}`).toBe(theirs);
  }
  expect(tier.log.lines()).toEqual(model.log.lines());
});

/** Members that come again and again, of large collections whose trees grow, shrink and are made anew. */
function memberCommand(random: Random, members: number): string[] {
  const member = (): string => `m${10000 + random.below(members)}`;
  const value = (): string => 'v'.repeat(random.below(150));
  switch (random.below(24)) {
    case 0:
      return ['HDEL', 'hash', member(), member()];
    case 1:
      return ['SREM', 'set', member()];
    case 2:
      return ['HGET', 'hash', member()];
    case 3:
      return ['SISMEMBER', 'set', member()];
    case 4:
      return ['HSET', 'hash', member(), value(), member(), value()];
    case 5:
      return ['HLEN', 'hash'];
    default:
      return random.below(2) === 0 ? ['HSET', 'hash', member(), value()] : ['SADD', 'set', member()];
  }
}

test(`members of large collections that are found ahead: SEED=${SEED}`, async () => {
  const random = new Random(SEED);
  const tier = await start(new Tier());
  const model = await start(new ModelStore());
  for (let round = 0; round < 1200; round++) {
    // Mostly one key an input, as found ahead; both collections shrink for a while, and now and then go.
    const key = random.below(2) === 0 ? 'hash' : 'set';
    const shrinks = Math.floor(round / 200) % 3 === 2;
    const commands: string[][] = Array.from({ length: 40 }, () => {
      for (;;) {
        const command = memberCommand(random, 20000);
        if (command[1] !== key && random.below(20) > 0) continue;
        if (!shrinks || random.below(4) === 0) return command;
        return [key === 'hash' ? 'HDEL' : 'SREM', key, `m${10000 + random.below(20000)}`];
      }
    });
    if (random.below(400) === 0) commands.splice(random.below(40), 0, ['DEL', key]);
    const bytes = Buffer.concat(commands.map(encodeCommand));
    const replies = [tier, model].map(async ({ client }) => {
      client.write(bytes);
      return (await client.read(commands.length)).toString('latin1');
    });
    const [ours, theirs] = await Promise.all(replies);
    expect(ours, `round ${round}`).toBe(theirs);
  }
  expect(tier.log.lines()).toEqual(model.log.lines());
});

test('the inputs of many connections in one turn are logged whole', async () => {
  const { running, log } = await start(new Tier());
  const clients = await Promise.all(Array.from({ length: 20 }, () => connect(running.port)));
  const sent: string[] = [];
  for (let round = 0; round < 20; round++) {
    for (const [index, client] of clients.entries()) {
      const names = Array.from({ length: 10 }, (_, i) => `c${10 + index}r${10 + round}n${i}`);
      for (const name of names) sent.push(`SET ${name} ${name}`);
      client.write(Buffer.concat(names.map((name) => encodeCommand(['SET', name, name]))));
    }
    await Promise.all(clients.map((client) => client.read(10)));
  }
  expect(log.lines().sort()).toEqual(sent.sort());
  for (const client of clients) client.close();
});

test('requests behind one that waits stay until it has its answer', async () => {
  const { running, client, log } = await start(new Tier());
  const other = await connect(running.port);
  client.write(
    Buffer.concat([
      encodeCommand(['SET', 'a', 1]),
      encodeCommand(['GET', 'a']),
      encodeCommand(['BLPOP', 'list', 0]),
      encodeCommand(['GET', 'b']),
    ]),
  );
  await client.read(2);
  await other.send('SET', 'b', 2);
  await other.send('RPUSH', 'list', 'x');
  expect((await client.read(2)).toString()).toBe('*2\r\n$4\r\nlist\r\n$1\r\nx\r\n$1\r\n2\r\n');
  expect(log.lines()).toEqual(['SET a 1', 'SET b 2', 'RPUSH list x', 'LPOP list']);
  other.close();
});
