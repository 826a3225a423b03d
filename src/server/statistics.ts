/** What the server counts since its start or CONFIG RESETSTAT. */

import { LoopDelay } from './loop-delay.ts';

/** Samples of the momentary rates, one each 100 ms. */
const SAMPLES = 16;
/** Distinct error codes that are counted; more are left out, so that a client cannot fill the memory. */
const ERROR_CODES_MAX = 128;

/** A rate over the last samples. */
class Rate {
  private readonly samples = new Float64Array(SAMPLES);
  private next = 0;
  private lastValue = 0;
  private lastTime = performance.now();

  sample(value: number): void {
    const now = performance.now();
    const elapsed = now - this.lastTime;
    if (elapsed <= 0) return;
    // A counter that was reset has no rate this time.
    const difference = Math.max(0, value - this.lastValue);
    this.samples[this.next] = (difference * 1000) / elapsed;
    this.next = (this.next + 1) % SAMPLES;
    this.lastValue = value;
    this.lastTime = now;
  }

  /** Per second. */
  get value(): number {
    return this.samples.reduce((sum, sample) => sum + sample, 0) / SAMPLES;
  }
}

export class Statistics {
  readonly startedAt = Date.now();
  connectionsReceived = 0;
  connectionsRejected = 0;
  inputBytes = 0;
  outputBytes = 0;
  expiredKeys = 0;
  keyspaceHits = 0;
  keyspaceMisses = 0;
  clientsClosedByQueryLimit = 0;
  clientsClosedByOutputLimit = 0;
  unexpectedErrors = 0;
  peakMemory = 0;
  errorReplies = 0;
  readonly errors = new Map<string, number>();
  readonly commandRate = new Rate();
  readonly inputRate = new Rate();
  readonly outputRate = new Rate();
  readonly loopDelay = new LoopDelay();

  reset(): void {
    this.connectionsReceived = 0;
    this.connectionsRejected = 0;
    this.inputBytes = 0;
    this.outputBytes = 0;
    this.expiredKeys = 0;
    this.keyspaceHits = 0;
    this.keyspaceMisses = 0;
    this.clientsClosedByQueryLimit = 0;
    this.clientsClosedByOutputLimit = 0;
    this.errorReplies = 0;
    this.errors.clear();
    this.loopDelay.reset();
  }

  /** Counts the error reply at [start, end) by its code word. */
  countError(reply: Buffer, start: number, end: number): void {
    this.errorReplies++;
    const text = reply.latin1Slice(start + 1, Math.min(end, start + 65));
    const code = /^[^ \r]*/.exec(text)![0];
    const count = this.errors.get(code);
    if (count !== undefined) this.errors.set(code, count + 1);
    else if (this.errors.size < ERROR_CODES_MAX) this.errors.set(code, 1);
  }
}
