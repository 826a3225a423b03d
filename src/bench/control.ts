/** Shared between the main thread and its load workers: start, stop and live progress. */

const READY = 0;
const GO = 1;
const STOP = 2;
const FLAG_BYTES = 16;

/** What is known of a load while it goes on. */
export interface LiveLoad {
  /** Of the measured part, so far. */
  readonly requests: number;
  /** Latest p99 in microseconds. */
  readonly p99Us: number;
}

export class LoadControl implements LiveLoad {
  readonly memory: SharedArrayBuffer;
  private readonly flags: Int32Array;
  private readonly progress: Float64Array;

  /** @param memory of the other side; absent: new, for `workers` workers */
  constructor(memory: SharedArrayBuffer | null, workers = 1) {
    this.memory = memory ?? new SharedArrayBuffer(FLAG_BYTES + workers * 16);
    this.flags = new Int32Array(this.memory, 0, 3);
    this.progress = new Float64Array(this.memory, FLAG_BYTES);
  }

  ready(): void {
    Atomics.add(this.flags, READY, 1);
  }

  get readyCount(): number {
    return Atomics.load(this.flags, READY);
  }

  go(): void {
    Atomics.store(this.flags, GO, 1);
  }

  get started(): boolean {
    return Atomics.load(this.flags, GO) === 1;
  }

  stop(): void {
    Atomics.store(this.flags, STOP, 1);
  }

  get stopped(): boolean {
    return Atomics.load(this.flags, STOP) === 1;
  }

  /** Requests of the measured part so far, and the latest p99 in microseconds, of one worker. */
  report(worker: number, requests: number, p99Us: number): void {
    this.progress[worker * 2] = requests;
    this.progress[worker * 2 + 1] = p99Us;
  }

  get requests(): number {
    let sum = 0;
    for (let i = 0; i < this.progress.length; i += 2) sum += this.progress[i];
    return sum;
  }

  /** Of the slowest worker. */
  get p99Us(): number {
    let most = 0;
    for (let i = 1; i < this.progress.length; i += 2) most = Math.max(most, this.progress[i]);
    return most;
  }
}
