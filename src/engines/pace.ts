import { performance } from 'node:perf_hooks';

/** Longest run of work, in milliseconds, before a thread looks at its messages. */
const SLICE_MS = 4;

/** Lets messages be served between two slices of a long piece of work. */
export class Pace {
  private until = performance.now() + SLICE_MS;

  get spent(): boolean {
    return performance.now() >= this.until;
  }

  async turn(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.until = performance.now() + SLICE_MS;
  }
}

/** Runs asynchronous pieces of work one after the other, in the order they came. */
export class Lane {
  private tail: Promise<unknown> = Promise.resolve();
  private ended: Error | undefined;

  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.tail.then(() => {
      if (this.ended !== undefined) throw this.ended;
      return work();
    });
    // Whoever asked for the work gets its failure; the next in line only waits for its end.
    this.tail = result.then(ignore, ignore);
    return result;
  }

  /** Lets nothing more begin: it fails with `reason`. Resolves when what is under way has ended. */
  async end(reason: Error): Promise<void> {
    this.ended = reason;
    await this.tail;
  }
}

function ignore(): void {}
