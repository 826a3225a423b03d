import { expect, test } from 'vitest';
import { release } from '../../src/bytes/release.ts';

test('the memory of buffers goes at once, without a collection', async () => {
  const before = process.memoryUsage().arrayBuffers;
  const buffers = Array.from({ length: 4 }, () => new ArrayBuffer(16 << 20));
  const view = new Uint8Array(buffers[0]).fill(1);
  expect(process.memoryUsage().arrayBuffers - before).toBeGreaterThan(3 * (16 << 20));
  await new Promise<void>((resolve) => release(buffers, resolve));
  expect(buffers.map(({ byteLength }) => byteLength)).toEqual([0, 0, 0, 0]);
  expect(view.length).toBe(0);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 << 20);
});

test('what has no memory, or has been given away, is left alone', () => {
  const given = new ArrayBuffer(8);
  release([given]);
  let gone = false;
  release([new ArrayBuffer(0), given], () => (gone = true));
  expect(gone).toBe(true);
});
