/** What stream commands log: replayed, it gives the same data. */
import { expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { Tier } from '../../src/store/tier.ts';
import { connect, startServer, type CommandLine, type RawClient } from './harness.ts';
import { client, log, run, useLoggedServer } from './logged-server.ts';
import { withDice, type Dice } from './replies.ts';

useLoggedServer();

test('ids, trims and what groups hand out are logged as their outcome', async () => {
  expect(await run('XADD s * f v')).toEqual([expect.stringMatching(/^XADD s \d{13}-0 f v$/)]);
  await run('DEL s', 'XADD s 5-1 f v');
  expect(await run('XADD s 5-* f v', 'XADD s MAXLEN 2 6-* g w')).toEqual([
    'XADD s 5-2 f v',
    'XADD s MAXLEN 2 6-0 g w',
  ]);
  expect(await run('XADD s MAXLEN ~ 1 7-0 f v', 'XTRIM s MAXLEN ~ 0')).toEqual([
    'XADD s MAXLEN = 3 7-0 f v',
    'XTRIM s MAXLEN = 0',
  ]);
  await run('XADD s 8-0 f v', 'XADD s 9-0 f v', 'XGROUP CREATE s g 0 ENTRIESREAD 0');
  expect(await run('XREADGROUP GROUP g c COUNT 1 STREAMS s >')).toEqual([
    'XGROUP CREATECONSUMER s g c',
    expect.stringMatching(/^XCLAIM s g c 0 8-0 TIME \d{13} RETRYCOUNT 1 FORCE JUSTID$/),
    expect.stringMatching(/^XGROUP SETID s g 8-0 ENTRIESREAD \d+$/),
  ]);
  expect(await run('XREADGROUP GROUP g c NOACK STREAMS s >')).toEqual([
    expect.stringMatching(/^XGROUP SETID s g 9-0 ENTRIESREAD \d+$/),
  ]);
  expect(await run('XDEL s 8-0', 'XCLAIM s g d 0 8-0')).toEqual(['XDEL s 8-0', 'XACK s g 8-0']);
});

test('commands that change nothing are not logged', async () => {
  await run('XADD s 5-0 f v', 'XGROUP CREATE s g $');
  const nothing = [
    'XADD s 4-0 f v',
    'XADD none NOMKSTREAM * f v',
    'XDEL s 9-9',
    'XTRIM s MAXLEN 5',
    'XREAD STREAMS s 0',
    'XREAD BLOCK 1 STREAMS s $',
    'XREADGROUP GROUP g c STREAMS s >',
    'XACK s g 5-0',
    'XCLAIM s g c 0 5-0',
    'XAUTOCLAIM s g c 0 0',
    'XGROUP DESTROY s none',
    'XGROUP CREATE s g $',
    'XINFO STREAM s FULL',
    'XPENDING s g',
  ];
  expect(await run(...nothing)).toEqual([]);
});

function randomCommand(dice: Dice): CommandLine {
  const key = dice.pick(['s', 't']);
  const group = dice.pick(['g', 'h']);
  const consumer = dice.pick(['a', 'b', 'c']);
  const id = (): string => `${dice.below(60)}`;
  return dice.pick<() => CommandLine>([
    () => ['XADD', key, `${dice.below(60)}-*`, 'field', 'v'.repeat(dice.below(100))],
    () => ['XADD', key, '100-*', 'field', 'v'.repeat(dice.below(100))],
    () => ['XADD', key, 'MAXLEN', dice.pick(['~', '=']), dice.below(300), '100-*', 'field', 'value'],
    () => ['XDEL', key, id(), id(), `100-${dice.below(40)}`],
    () => ['XTRIM', key, 'MAXLEN', '~', dice.below(300)],
    () => ['XGROUP', 'CREATE', key, group, id(), 'MKSTREAM'],
    () => ['XGROUP', 'SETID', key, group, id()],
    () => ['XGROUP', dice.below(9) === 0 ? 'DESTROY' : 'CREATE', key, group, '$'],
    () => ['XREADGROUP', 'GROUP', group, consumer, 'COUNT', dice.below(9), 'STREAMS', key, '>'],
    () => ['XREADGROUP', 'GROUP', group, consumer, 'NOACK', 'COUNT', 2, 'STREAMS', key, '>'],
    () => ['XREADGROUP', 'GROUP', group, consumer, 'COUNT', 3, 'STREAMS', key, id()],
    () => ['XACK', key, group, id(), id(), `100-${dice.below(40)}`],
    () => ['XCLAIM', key, group, consumer, 0, id(), `100-${dice.below(40)}`, 'FORCE', 'LASTID', id()],
    () => ['XAUTOCLAIM', key, group, consumer, 0, id(), 'COUNT', 1 + dice.below(5)],
    () => ['XGROUP', 'DELCONSUMER', key, group, dice.below(9) === 0 ? consumer : 'none'],
    () => ['XSETID', key, `100-${1000 + dice.below(50)}`],
  ])();
}

/** Without what a reader is not told: when consumers were last seen. */
async function contentOf(from: RawClient, key: string): Promise<string> {
  const content = await from.send('XINFO', 'STREAM', key, 'FULL', 'COUNT', '0');
  return content.replace(/(seen-time\r\n):\d+/g, '$1:?');
}

test('the log of random commands, replayed, gives the same data', () =>
  withDice(async (dice) => {
    for (let i = 0; i < 1500; i++) await client.send(...randomCommand(dice));
    const replayed = await startServer({ store: new Tier() });
    const other = await connect(replayed.port);
    for (const frame of log.frames) await replayed.server.replay(Slice.from(frame));
    for (const key of ['s', 't']) expect(await contentOf(other, key)).toBe(await contentOf(client, key));
    other.close();
    await replayed.stop();
  }));
