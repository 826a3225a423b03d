/** CLIENT PAUSE and keys that fall due meanwhile, beside a real Redis. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Tier } from '../../src/store/tier.ts';
import { startPair, type Pair } from './harness.ts';
import { ModelStore } from '../model/store.ts';

const stores = { tier: () => new Tier({ databases: 16 }), model: () => new ModelStore() };

/** Long enough for the pause to begin before the key is due, short enough to be waited for. */
const DUE_MS = 2000;
const untilDue = () => new Promise((resolve) => setTimeout(resolve, DUE_MS + 200));

describe.each(['tier', 'model'] as const)('over the %s', (name) => {
  let pair: Pair;
  beforeAll(async () => {
    pair = await startPair({ store: stores[name]() });
  });
  afterAll(() => pair.stop());

  test('a key that falls due is hidden until the pause ends, and stays as long', async () => {
    await pair.compare(['SET kept v', `SET due v PX ${DUE_MS}`, 'CLIENT PAUSE 100000 WRITE']);
    await untilDue();
    await pair.compare([
      'DBSIZE',
      'GET due',
      'EXISTS due kept',
      'TTL due',
      'KEYS *',
      'SCAN 0 COUNT 100',
      'MGET due kept',
      'DBSIZE',
      'CLIENT UNPAUSE',
      'GET due',
      'DBSIZE',
      'SET due again',
      'GET due',
    ]);
  });

  test('a write that waited for the end of the pause meets no due key', async () => {
    await pair.flush();
    await pair.compare([`SET due v PX ${DUE_MS}`, 'CLIENT PAUSE 100000 WRITE']);
    await untilDue();
    const other = await pair.another();
    const waiting = other.compare([['SET', 'due', 'w', 'NX'], 'GET due']);
    await pair.compare(['GET due', 'DBSIZE', 'CLIENT UNPAUSE']);
    await waiting;
    await pair.compare(['GET due', 'DBSIZE']);
    expect(await pair.ours.send('TTL', 'due')).toBe(':-1\r\n');
    other.ours.close();
    other.theirs.close();
  });
});
