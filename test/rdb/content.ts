/** Keys of every type and encoding, told to a server. */
import type { CommandLine, RawClient } from '../server/harness.ts';
import { encodeCommand } from '../server/harness.ts';
import { Random } from '../store/random.ts';

const REPEATED = Buffer.alloc(300, 'abcdefgh');
const INTEGERS = [
  '0',
  '1',
  '-1',
  '12',
  '13',
  '127',
  '128',
  '-128',
  '-129',
  '4095',
  '4096',
  '-4096',
  '-4097',
  '32767',
  '32768',
  '-32768',
  '-32769',
  '8388607',
  '8388608',
  '-8388608',
  '-8388609',
  '2147483647',
  '2147483648',
  '-2147483648',
  '-2147483649',
  '9007199254740991',
  '9007199254740993',
  '-9007199254740993',
  '9223372036854775807',
  '-9223372036854775808',
  '9223372036854775808',
  '007',
  '-0',
  '+1',
  ' 1',
  '1.5',
  '',
];

/** Strings that stand for every way to write one. */
export function specimens(random: Random): (string | Buffer)[] {
  return [
    ...INTEGERS,
    'x',
    'text',
    'a'.repeat(20),
    'a'.repeat(21),
    'a'.repeat(63),
    'a'.repeat(64),
    random.bytes(63),
    random.bytes(64),
    random.bytes(65),
    random.bytes(4095),
    random.bytes(4096),
    random.bytes(16383),
    random.bytes(16384),
    REPEATED,
    Buffer.concat([random.bytes(100), REPEATED, random.bytes(100)]),
    Buffer.from([0, 255, 10, 13, 0]),
  ];
}

const SCORES = [
  '0',
  '-0',
  '1',
  '-1',
  '1.5',
  '3.1',
  '-2.25e-7',
  '1e300',
  '17179869184',
  '9007199254740993',
  'inf',
  '-inf',
];

/** Sends the commands and waits for all replies. Throws at an error. */
export async function sendAll(client: RawClient, commands: readonly CommandLine[]): Promise<void> {
  for (let from = 0; from < commands.length; from += 1000) {
    const batch = commands.slice(from, from + 1000);
    client.write(Buffer.concat(batch.map(encodeCommand)));
    for (const command of batch) {
      const reply = (await client.read(1, 30_000)).toString('latin1');
      if (reply.startsWith('-')) throw new Error(`${command.slice(0, 3).join(' ')}: ${reply}`);
    }
  }
}

/** Fills a server with keys of all types that it knows, in several databases. */
export async function fill(client: RawClient, { streams = true, seed = 1 } = {}): Promise<void> {
  const random = new Random(seed);
  const commands: CommandLine[] = [];
  const strings = specimens(random);
  strings.forEach((value, i) => {
    commands.push(['SET', `string:${i}`, value]);
    commands.push(['SET', Buffer.concat([Buffer.from('key:'), Buffer.from(value)]), i]);
    commands.push(['RPUSH', 'list:specimens', value]);
    commands.push(['RPUSH', `list:${i}`, value, value]);
    commands.push(['SADD', 'set:specimens', value]);
    commands.push(['SADD', `set:${i}`, value]);
    commands.push(['HSET', 'hash:specimens', value, strings[strings.length - 1 - i]]);
    commands.push(['HSET', `hash:${i}`, value, value]);
    commands.push(['ZADD', 'zset:specimens', SCORES[i % SCORES.length], value]);
    commands.push(['ZADD', `zset:${i}`, SCORES[i % SCORES.length], value, 1, 'one']);
  });
  commands.push(['SET', 'string:long', random.bytes(300_000)]);
  commands.push(['SET', 'string:long compressible', Buffer.alloc(300_000, 'some text; ')]);
  for (const [name, limit] of [
    ['small', 10],
    ['limit', 128],
    ['above', 129],
    ['many', 1000],
  ] as const) {
    const numbers = Array.from({ length: limit }, () => random.below(2 ** 31) - 2 ** 30);
    for (const [kind, value] of [
      ['numbers', (i: number): string => String(numbers[i])],
      ['words', (i: number): string => `word:${numbers[i]}`],
    ] as const) {
      for (let i = 0; i < limit; i++) {
        commands.push(['RPUSH', `list:${kind}:${name}`, value(i)]);
        commands.push(['SADD', `set:${kind}:${name}`, value(i)]);
        commands.push(['HSET', `hash:${kind}:${name}`, value(i), `value ${i}`]);
        commands.push(['ZADD', `zset:${kind}:${name}`, random.below(20) / 4, value(i)]);
      }
    }
  }
  for (let i = 0; i < 513; i++) {
    commands.push(['SADD', 'set:16 bits', i - 256]);
    commands.push(['SADD', 'set:64 bits', String(BigInt(i) * 10_000_000_000n)]);
    if (i < 512) commands.push(['SADD', 'set:512', i * 100_000]);
  }
  for (let i = 0; i < 30; i++)
    commands.push(['RPUSH', 'list:long elements', random.bytes(1 + random.below(20_000))]);
  for (let i = 0; i < 20_000; i++)
    commands.push(['RPUSH', 'list:very long', `element ${i} ${random.word()}`]);
  for (let i = 0; i < 20_000; i++) commands.push(['HSET', 'hash:very long', `field ${i}`, random.word()]);
  commands.push(
    ['SELECT', 9],
    ['SET', 'in database 9', 'value'],
    ['SELECT', 1],
    ['SET', 'in database 1', 'value'],
  );
  commands.push(
    ['SET', 'expires', 'soon', 'PXAT', 4_000_000_000_123],
    ['EXPIRE', 'in database 1', 1_000_000],
  );
  for (let i = 0; i < 100; i++) commands.push(['SETEX', `expires:${i}`, 100_000 + i * 1000, i]);
  commands.push(['SELECT', 0]);
  commands.push([
    'FUNCTION',
    'LOAD',
    "#!lua name=mylib\nredis.register_function('f', function() return 1 end)",
  ]);
  if (streams) commands.push(...streamCommands(random));
  await sendAll(client, commands);
}

function streamCommands(random: Random): CommandLine[] {
  const commands: CommandLine[] = [];
  const add = (key: string, id: string, ...fields: (string | Buffer | number)[]): void =>
    void commands.push(['XADD', key, id, ...fields]);
  for (let i = 1; i <= 350; i++) {
    add('stream:same fields', `${1_700_000_000_000 + i * 7}-${i % 3}`, 'name', `n${i}`, 'age', i);
    add(
      'stream:other fields',
      `${i}-1`,
      `f${i % 5}`,
      random.bytes(random.below(100)),
      'number',
      random.word(),
    );
  }
  add('stream:ids', '1-18446744073709551615', 'a', '1');
  add('stream:ids', '9007199254740993-9007199254740993', 'a', '2');
  add('stream:ids', '18446744073709551614-0', 'b', '3');
  add('stream:ids', '18446744073709551615-18446744073709551614', 'b', '4');
  for (let i = 1; i <= 300; i += 2)
    commands.push(['XDEL', 'stream:same fields', `${1_700_000_000_000 + i * 7}-${i % 3}`]);
  add('stream:emptied', '5-5', 'a', 'b');
  commands.push(['XDEL', 'stream:emptied', '5-5']);
  commands.push(['XGROUP', 'CREATE', 'stream:no entries', 'group', '$', 'MKSTREAM']);
  commands.push(['XGROUP', 'CREATE', 'stream:other fields', 'group', '0']);
  commands.push(['XGROUP', 'CREATE', 'stream:other fields', 'other', '100-1', 'ENTRIESREAD', 100]);
  commands.push(['XGROUP', 'CREATE', 'stream:same fields', 'unknown position', '1700000000500-0']);
  commands.push([
    'XREADGROUP',
    'GROUP',
    'group',
    'alice',
    'COUNT',
    120,
    'STREAMS',
    'stream:other fields',
    '>',
  ]);
  commands.push(['XREADGROUP', 'GROUP', 'group', 'bob', 'COUNT', 30, 'STREAMS', 'stream:other fields', '>']);
  commands.push(['XACK', 'stream:other fields', 'group', '3-1', '4-1', '125-1']);
  commands.push(['XGROUP', 'CREATECONSUMER', 'stream:other fields', 'other', 'idle']);
  return commands;
}
