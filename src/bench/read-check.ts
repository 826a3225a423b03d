/** Compares values that were read with what must be there: values that depend on their key alone. */
import type { SizeSpec, ValuePool } from '../workloads/values.ts';
import type { OperationMix } from '../workloads/workload.ts';
import type { Recorder } from './recorder.ts';

const SHOWN_BYTES = 24;

export class ReadCheck {
  /** Operations whose reply is the value of their key. */
  private readonly checkable: boolean[];
  private readonly pool: ValuePool;
  private readonly sizes: SizeSpec;
  private readonly recorder: Recorder;

  constructor(mix: readonly OperationMix[], pool: ValuePool, sizes: SizeSpec, recorder: Recorder) {
    this.checkable = mix.map(({ line }) => /^get\s+\S*(\{(key|index)|__rand_int__)[^;]*$/i.test(line));
    this.pool = pool;
    this.sizes = sizes;
    this.recorder = recorder;
  }

  reply(operation: number, key: number, reply: Buffer): void {
    if (!this.checkable[operation]) return;
    const value = reply.subarray(reply.indexOf(10) + 1, reply.length - 2);
    const expected = this.pool.valueOf(key, this.sizes);
    this.recorder.checked++;
    if (value.equals(expected)) return;
    this.recorder.wrong++;
    this.recorder.firstWrong ??=
      `key number ${key}: ${value.length} bytes ${value.subarray(0, SHOWN_BYTES).toString('hex')}, ` +
      `expected ${expected.length} bytes ${expected.subarray(0, SHOWN_BYTES).toString('hex')}`;
  }
}
