import { existsSync, readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { SliceClock } from '../../src/store/slice-clock.ts';

test('work is a part of the time by the clock', () => {
  const clock = new SliceClock();
  for (let slice = 0; slice < 20; slice++) {
    clock.start();
    const until = performance.now() + 2;
    while (performance.now() < until);
    clock.stop();
    expect(clock.elapsedMs).toBeGreaterThanOrEqual(2);
    expect(clock.workMs).toBeGreaterThanOrEqual(0);
    expect(clock.workMs).toBeLessThanOrEqual(clock.elapsedMs);
  }
});

test.skipIf(!existsSync('/proc/thread-self/schedstat'))('sleep is no work', () => {
  const clock = new SliceClock();
  clock.start();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  clock.stop();
  expect(clock.elapsedMs).toBeGreaterThanOrEqual(99);
  expect(clock.workMs).toBeLessThan(20);
});

test.skipIf(!existsSync('/proc/self/fd'))('clocks that are made and forgotten leave no files open', () => {
  new SliceClock();
  const before = readdirSync('/proc/self/fd').length;
  const clocks = Array.from({ length: 50 }, () => new SliceClock());
  expect(readdirSync('/proc/self/fd').length).toBeLessThan(before + clocks.length);
});
