/** What string, bit and key commands log: replayed, it gives the same data, whatever the time. */
import { expect, test } from 'vitest';
import { Tier } from '../../src/store/tier.ts';
import { connect, encodeCommand, startServer, type CommandLine } from './harness.ts';
import { client, log, run, useLoggedServer } from './logged-server.ts';
import { pick, seeded } from './random-commands.ts';

useLoggedServer();

test('commands that change nothing are not logged', async () => {
  await run('SET k v', 'RPUSH l a', 'SETBIT b 0 1');
  const nothing = [
    'GET k',
    'SET k w NX',
    'SET absent w XX',
    'SETNX k w',
    'GETEX k',
    'GETEX k PERSIST',
    'GETDEL absent',
    'MSETNX k 1 absent 2',
    'INCR k',
    'INCRBYFLOAT k 1',
    'SETBIT b 0 1',
    'BITFIELD b GET u8 0',
    'BITFIELD b SET u1 0 1',
    'BITOP AND absent absent',
    'DEL absent',
    'EXPIRE absent 10',
    'EXPIRE k 10 XX',
    'PERSIST k',
    'RENAMENX k l',
    'RENAME k k',
    'COPY k l',
    'MOVE absent 1',
    'SORT l ALPHA',
    'SORT absent STORE none',
    'OBJECT ENCODING k',
  ];
  expect(await run(...nothing)).toEqual([]);
});

test('relative times are logged as the moment they mean', async () => {
  const at = String(Date.now() + 100_000).slice(0, -5); // the same for the next seconds
  const moment = (line: string): unknown => expect.stringMatching(`^${line} ${at}\\d{5}$`);
  expect(await run('SET k v EX 100', 'SETEX k 100 v', 'PSETEX k 100000 v NX')).toEqual([
    moment('SET k v PXAT'),
    moment('SET k v PXAT'),
  ]);
  expect(await run('SET k w PX 100000 GET')).toEqual([moment('SET k w PXAT')]);
  expect(await run('EXPIRE k 100 XX', 'PEXPIRE k 100000', 'GETEX k EX 100')).toEqual([
    moment('PEXPIREAT k'),
    moment('PEXPIREAT k'),
    moment('PEXPIREAT k'),
  ]);
  expect(await run('EXPIREAT k 99999999999', 'GETEX k PXAT 99999999999000', 'GETEX k PERSIST')).toEqual([
    'PEXPIREAT k 99999999999000',
    'PEXPIREAT k 99999999999000',
    'PERSIST k',
  ]);
  expect(await run('EXPIRE k -1', 'SET k v', 'GETEX k EXAT 1', 'SET k v', 'PEXPIREAT k 1')).toEqual([
    'DEL k',
    'SET k v',
    'DEL k',
    'SET k v',
    'DEL k',
  ]);
});

test('what depends on the value before, or on arithmetic, is logged as its outcome', async () => {
  expect(await run('SET f 10.5', 'INCRBYFLOAT f 0.1', 'GETSET f 1', 'GETDEL f')).toEqual([
    'SET f 10.5',
    'SET f 10.6 KEEPTTL',
    'SET f 1',
    'DEL f',
  ]);
});

test('an expired key is logged as deleted before it is used', async () => {
  await run('SET k 5 PX 1');
  await new Promise((resolve) => setTimeout(resolve, 10));
  await client.send('INCR', 'k');
  // By INCR itself, or before it in the background.
  expect(log.lines()).toEqual([expect.stringMatching(/^SET k 5 PXAT/), 'DEL k', 'INCR k']);
});

function randomCommand(random: () => number): CommandLine {
  const key = (): string => pick(random, ['a', 'b', 'c', 'd', 'list']);
  const text = (): string => pick(random, ['', '7', '-3', '1.5', 'text', 'x'.repeat(20_000)]);
  const number = (max: number): string => String(Math.floor(random() * max));
  const time = (): string => pick(random, ['1000', '99999', '-1']);
  return pick<() => CommandLine>(random, [
    () => ['SET', key(), text()],
    () => [
      'SET',
      key(),
      text(),
      ...pick(random, [['GET'], ['NX'], ['XX', 'GET'], ['KEEPTTL'], ['EX', time()]]),
    ],
    () => ['GETEX', key(), ...pick(random, [['PERSIST'], ['EX', time()], ['PXAT', '1']])],
    () => ['GETDEL', key()],
    () => ['MSET', key(), text(), key(), text()],
    () => ['APPEND', key(), text()],
    () => ['SETRANGE', key(), number(30_000), text()],
    () => ['INCRBY', key(), number(100)],
    () => ['INCRBYFLOAT', key(), String(random())],
    () => ['SETBIT', key(), number(100_000), '1'],
    () => ['BITOP', pick(random, ['AND', 'OR', 'XOR']), key(), key(), key()],
    () => ['BITFIELD', key(), 'INCRBY', 'u5', number(1000), number(40)],
    () => ['EXPIRE', key(), time(), ...pick(random, [[], ['NX'], ['GT'], ['LT']])],
    () => ['PERSIST', key()],
    () => ['RENAME', key(), key()],
    () => ['COPY', key(), key(), 'REPLACE'],
    () => ['COPY', key(), key(), 'DB', '1'],
    () => ['MOVE', key(), '1'],
    () => ['SELECT', pick(random, ['0', '1'])],
    () => ['RPUSH', 'list', number(50), number(50)],
    () => ['SORT', 'list', 'STORE', pick(random, ['list', 'a'])],
    () => ['DEL', key()],
  ])();
}

test('the log of random commands, replayed, gives the same data', async () => {
  const random = seeded('replay');
  log.frames.length = 0;
  await client.send('FLUSHALL');
  for (let i = 0; i < 2000; i++) await client.send(...randomCommand(random));
  const replayed = await startServer({ store: new Tier() });
  const other = await connect(replayed.port);
  // Each frame begins in database 0.
  other.write(Buffer.concat(log.frames.flatMap((frame) => [encodeCommand(['SELECT', 0]), frame])));
  const replies = (await other.read(log.frames.length + log.lines().length)).toString('latin1');
  expect(replies.match(/^-[A-Z]+ .*/gm) ?? []).toEqual([]);
  for (const database of ['0', '1']) {
    for (const each of [client, other]) await each.send('SELECT', database);
    expect(await other.send('DBSIZE')).toBe(await client.send('DBSIZE'));
    for (const key of ['a', 'b', 'c', 'd', 'list']) {
      const type = await client.send('TYPE', key);
      const read = type === '+list\r\n' ? ['LRANGE', key, '0', '-1'] : ['GET', key];
      expect(await other.send(...read)).toBe(await client.send(...read));
      expect(await other.send('PEXPIRETIME', key)).toBe(await client.send('PEXPIRETIME', key));
    }
  }
  other.close();
  await replayed.stop();
});
