/** Every engine opens, keeps and finds rows with its caches as small as they can be set. */
import { afterAll, expect, test } from 'vitest';
import { smallCacheOptions } from '../../src/bench/engine-cache.ts';
import { ENGINE_NAMES } from '../../src/engines/engine.ts';
import { openEngine } from '../../src/engines/open.ts';
import { fill, get, numbered, Scratch } from './fixture.ts';

const scratch = new Scratch();
afterAll(() => scratch.dispose());

test.each(ENGINE_NAMES)('%s', async (name) => {
  const directory = scratch.next();
  const options = smallCacheOptions(name, 0);
  let engine = await openEngine(name, directory, options);
  await fill(engine, 20_000, 100);
  await engine.close();
  engine = await openEngine(name, directory, options);
  expect(await get(engine, [numbered(0).toString(), numbered(19_999).toString(), 'absent'])).toEqual([
    ...['v'.repeat(100), 'v'.repeat(100), null],
  ]);
  await engine.close();
});
