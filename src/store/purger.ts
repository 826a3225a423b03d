/** Deletes from the engine what dropped databases and collections have left there, after each checkpoint. */
import type { Engine, Range } from '../engines/engine.ts';
import { faultPoint } from './fault-point.ts';
import type { PurgeRange, RowSource } from './row-source.ts';

/** Of the key rows of a dropped database, read at a time. */
const CHUNK_BYTES = 256 * 1024;
/** Ranges of its collections after which they are deleted, and the rows that named them. */
const OWNED_RANGES_MAX = 1024;

export interface PurgerOptions {
  source: RowSource;
  engine: Pick<Engine, 'scan' | 'deleteRange'>;
  /** Nothing more is to be deleted. */
  stopped: () => boolean;
  onError: (error: Error) => void;
}

export class Purger {
  private readonly options: PurgerOptions;
  private running: Promise<void> | null = null;

  constructor(options: PurgerOptions) {
    this.options = options;
  }

  get busy(): boolean {
    return this.running !== null;
  }

  /** Begins, unless it is at it. */
  wake(): void {
    if (this.running !== null || this.options.stopped()) return;
    this.running = this.run()
      .catch((error: unknown) => {
        if (!this.options.stopped())
          this.options.onError(error instanceof Error ? error : new Error(String(error)));
      })
      .finally(() => {
        this.running = null;
      });
  }

  /** A range that fails stays on the list. */
  private async run(): Promise<void> {
    const { source, stopped } = this.options;
    for (;;) {
      const ranges = source.purgeRanges();
      if (ranges.length === 0) return;
      for (const range of ranges) {
        await this.purge(range);
        if (stopped()) return;
        source.purged(range);
      }
    }
  }

  /** Deletes a range, and before each part of it what its rows name, so that all of it can be done again after a crash. */
  private async purge(range: PurgeRange): Promise<void> {
    const { engine, stopped } = this.options;
    let { start } = range;
    for (let complete = range.owned === undefined; !complete;) {
      complete = true;
      const owned: Range[] = [];
      let read = start;
      for await (const chunk of engine.scan({ start, end: range.end, chunkBytes: CHUNK_BYTES })) {
        const part = range.owned!(chunk);
        owned.push(...part.ranges);
        read = part.end;
        complete = owned.length < OWNED_RANGES_MAX;
        if (!complete || stopped()) break;
      }
      for (const part of owned) await this.delete(part);
      if (complete) break;
      await this.delete({ start, end: read });
      start = read;
    }
    await this.delete({ start, end: range.end });
  }

  private async delete(range: Range): Promise<void> {
    if (this.options.stopped()) return;
    faultPoint('purge');
    await this.options.engine.deleteRange(range);
  }
}
