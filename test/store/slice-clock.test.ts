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
