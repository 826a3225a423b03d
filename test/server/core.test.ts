import { afterAll, beforeAll, test } from 'vitest';
import { startPair, type Pair } from './harness.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startPair();
});
afterAll(() => pair.stop());

test('PING, ECHO, SELECT and unknown commands answer as Redis does', async () => {
  await pair.compare([
    'PING',
    'ping hello',
    'PING a b',
    'ECHO x',
    'ECHO',
    'SELECT 3',
    'SELECT 16',
    'SELECT x',
    'SELECT 0',
    'nosuch a b c',
    ['nosuch\r\n', 'x'.repeat(300), 'y'],
  ]);
});
