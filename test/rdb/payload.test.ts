/** DUMP and RESTORE: what a real Redis dumps is read, and what we make it restores. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ByteSink } from '../../src/bytes/sink.ts';
import { Slice } from '../../src/bytes/slice.ts';
import { RdbError } from '../../src/rdb/error.ts';
import { payloadIsSound, readPayload, writePayload } from '../../src/rdb/payload.ts';
import { RdbVisitor } from '../../src/rdb/visitor.ts';
import { fill } from './content.ts';
import { RedisWithFile } from './files.ts';

let redis: RedisWithFile;

beforeAll(async () => {
  redis = await RedisWithFile.start();
  await fill(redis.client);
});
afterAll(() => redis?.stop());

/** The bulk string of a reply. */
function bulk(reply: string): Buffer {
  const bytes = Buffer.from(reply, 'latin1');
  return bytes.subarray(bytes.indexOf('\n') + 1, bytes.length - 2);
}

test('every value of a real Redis, dumped by it and written by us, is the same there', async () => {
  // Not those with bytes that a line of the reply cannot have.
  const reply = await redis.client.send('KEYS', '[shlz]*');
  const keys = reply.split('\r\n').filter((_, i) => i > 0 && i % 2 === 0);
  expect(keys.length).toBeGreaterThan(200);
  for (const key of keys) {
    const payload = Slice.from(bulk(await redis.client.send('DUMP', key)));
    expect(payloadIsSound(payload)).toBe(true);
    const ours = new ByteSink(16);
    ours.ascii('before');
    writePayload(ours, (writer) => readPayload(payload, Slice.from('key'), writer));
    const bytes = Buffer.from(ours.written(6));
    expect(payloadIsSound(Slice.from(bytes))).toBe(true);
    const digest = await redis.client.send('DEBUG', 'DIGEST-VALUE', key);
    expect(await redis.client.send('RESTORE', 'copy of a value', 0, bytes, 'REPLACE')).toBe('+OK\r\n');
    expect(await redis.client.send('DEBUG', 'DIGEST-VALUE', 'copy of a value')).toBe(digest);
  }
  await redis.client.send('DEL', 'copy of a value');
});

test('a payload that was changed, or is of a later version, is not sound', async () => {
  const payload = bulk(await redis.client.send('DUMP', 'string:0'));
  for (let at = 0; at < payload.length; at++) {
    const changed = Buffer.from(payload);
    changed[at] ^= 1;
    expect(payloadIsSound(Slice.from(changed))).toBe(false);
  }
  expect(payloadIsSound(Slice.from(payload.subarray(0, 9)))).toBe(false);
  expect(payloadIsSound(Slice.from(''))).toBe(false);
});

test('a value that is damaged behind a right checksum is an RdbError', () => {
  const key = Slice.from('key');
  for (const value of ['', '\x00', '\x00\x05ab', '\x00\x01ab', '\x63', '\x10\x03abc']) {
    const payload = Slice.from(Buffer.concat([Buffer.from(value, 'latin1'), Buffer.alloc(10)]));
    expect(() => readPayload(payload, key, new RdbVisitor())).toThrow(RdbError);
  }
});
