/** DUMP and RESTORE, beside a real Redis: each takes what the other gives. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Config } from '../../src/server/config.ts';
import { connect, startPair, startServer, type Pair, type RawClient } from './harness.ts';
import { Slice } from '../../src/bytes/slice.ts';
import { Tier } from '../../src/store/tier.ts';
import { MemoryLog } from './memory-log.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startPair({ store: new Tier(), config: new Config({ 'enable-debug-command': 'yes' }) });
});
beforeEach(() => pair.flush());
afterAll(() => pair.stop());

const big = Array.from({ length: 700 }, (_, i) => `member:${i}`);
const values: Record<string, readonly string[]> = {
  string: ['SET', 'k', 'some text'],
  'an empty string': ['SET', 'k', ''],
  integer: ['SET', 'k', '-12345'],
  'a long string': ['SET', 'k', 'ab'.repeat(50_000)],
  list: ['RPUSH', 'k', 'a', '', '1234', 'a'],
  'a long list': ['RPUSH', 'k', ...big],
  intset: ['SADD', 'k', '3', '-70000', '12345678901'],
  set: ['SADD', 'k', ...big],
  hash: ['HSET', 'k', 'f', 'v', 'g', '1'],
  'a large hash': ['HSET', 'k', ...big],
  'a sorted set': ['ZADD', 'k', '1', 'a', '-inf', 'b', '0.1', 'c', '3e300', 'd'],
  'a large sorted set': ['ZADD', 'k', ...big.flatMap((member, i) => [String(i / 3), member])],
};

/** The payload that DUMP replies with. */
async function dumped(client: RawClient): Promise<Buffer> {
  const reply = Buffer.from(await client.send('DUMP', 'k'), 'latin1');
  return reply.subarray(reply.indexOf('\r\n') + 2, -2);
}

test.each(Object.keys(values))('%s goes both ways', async (name) => {
  await pair.compare([values[name]]);
  for (const from of [pair.ours, pair.theirs]) {
    const payload = await dumped(from);
    await pair.compare([
      ['RESTORE', 'copy', '0', payload, 'REPLACE'],
      'DEBUG DIGEST-VALUE copy k',
      'OBJECT ENCODING copy',
      'TTL copy',
    ]);
  }
});

test('options, and what is refused', async () => {
  await pair.compare(['SET k v', 'DUMP none']);
  const payload = await dumped(pair.theirs);
  const damaged = Buffer.from(payload);
  damaged[1] ^= 1;
  await pair.compare([
    ['RESTORE', 'k', '0', payload],
    ['RESTORE', 'k', '-1', payload, 'REPLACE'],
    ['RESTORE', 'k', 'x', payload, 'REPLACE'],
    ['RESTORE', 'n', '0', damaged],
    ['RESTORE', 'n', '0', ''],
    ['RESTORE', 'n', '0', payload, 'IDLETIME', '-1'],
    ['RESTORE', 'n', '0', payload, 'FREQ', '256'],
    ['RESTORE', 'n', '0', payload, 'FREQ', '1', 'IDLETIME', '1'],
    ['RESTORE', 'n', '0', payload, 'NX'],
    'EXISTS n',
    ['RESTORE', 'n', '4102444800000', payload, 'ABSTTL', 'IDLETIME', '5'],
    'PEXPIRETIME n',
    ['RESTORE', 'idle', '0', payload, 'IDLETIME', '100000'],
    'OBJECT IDLETIME idle',
    ['RESTORE', 'idle', '0', payload, 'REPLACE', 'FREQ', '100'],
    'OBJECT FREQ idle',
    ['RESTORE', 'n', '1', payload, 'ABSTTL', 'REPLACE'],
    'EXISTS n',
    ['RESTORE', 'n', '100000', payload, 'REPLACE'],
    'TTL n',
    'GET n',
    'DBSIZE',
  ]);
});

test('a value that is no sound one leaves what is there', async () => {
  // An empty list, a set with a member twice, a string that is none, each with a right checksum.
  await pair.compare(['SET k v']);
  for (const payload of ['0100', '020201610161', '0a'].map((hex) => sealed(Buffer.from(hex, 'hex'))))
    await pair.compare([['RESTORE', 'k', '0', payload, 'REPLACE'], 'GET k', 'DBSIZE']);
});

function sealed(value: Buffer): Buffer {
  const footer = Buffer.alloc(10);
  footer.writeUInt16LE(10);
  const body = Buffer.concat([value, footer.subarray(0, 2)]);
  footer.writeBigUInt64LE(crc64(body), 2);
  return Buffer.concat([value, footer]);
}

/** CRC-64/Jones, bit by bit. */
function crc64(bytes: Buffer): bigint {
  let crc = 0n;
  for (const byte of bytes) {
    crc ^= BigInt(byte);
    for (let i = 0; i < 8; i++) crc = (crc & 1n) !== 0n ? (crc >> 1n) ^ 0x95ac9329ac4bc9b5n : crc >> 1n;
  }
  return crc;
}

test('the log holds the value and an absolute deadline', async () => {
  await pair.compare(['SET k v']);
  const payload = await dumped(pair.ours);
  const log = new MemoryLog();
  const running = await startServer({ log });
  const client = await connect(running.port);
  expect(await client.send('RESTORE', 'n', '5000', payload)).toBe('+OK\r\n');
  const replayed = await startServer();
  for (const frame of log.frames) await replayed.server.replay(Slice.from(frame));
  const other = await connect(replayed.port);
  expect(await other.send('PEXPIRETIME', 'n')).toBe(await client.send('PEXPIRETIME', 'n'));
  for (const each of [client, other]) each.close();
  await running.stop();
  await replayed.stop();
});
