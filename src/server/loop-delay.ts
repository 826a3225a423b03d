/** How late the event loop is: by how much a timer that is due every 10 ms is late. */
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** One wake-up in so many milliseconds costs some 0.01% of a core. */
const RESOLUTION_MS = 10;

export class LoopDelay {
  private readonly histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });

  start(): void {
    this.histogram.enable();
  }

  stop(): void {
    this.histogram.disable();
  }

  reset(): void {
    this.histogram.reset();
  }

  /** Microseconds since the start or the last reset; nothing before the first sample. */
  percentiles(): Record<string, number> {
    const { histogram } = this;
    if (histogram.count === 0) return {};
    const late = (nanoseconds: number): number =>
      Math.max(0, Math.round(nanoseconds / 1000 - RESOLUTION_MS * 1000));
    return {
      p50: late(histogram.percentile(50)),
      p99: late(histogram.percentile(99)),
      'p99.9': late(histogram.percentile(99.9)),
      max: late(histogram.max),
    };
  }
}
