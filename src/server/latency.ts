/** LATENCY: spikes of named events by second, and the longest slice of each kind of background work. */

/** Samples kept for an event. */
const SAMPLES_MAX = 160;

export interface LatencySample {
  /** Unix seconds. */
  time: number;
  milliseconds: number;
}

export class Latency {
  /** Milliseconds from which an event is recorded; 0: never. */
  threshold = 0;
  readonly events = new Map<string, { samples: LatencySample[]; max: number }>();
  /** Longest slice of background work, milliseconds, for each kind. */
  readonly longestSlices = new Map<string, number>();

  /** Records an event that took long enough. */
  add(event: string, milliseconds: number, nowMs: number): void {
    if (this.threshold === 0 || milliseconds < this.threshold) return;
    const time = Math.floor(nowMs / 1000);
    const whole = Math.floor(milliseconds);
    let series = this.events.get(event);
    if (series === undefined) this.events.set(event, (series = { samples: [], max: 0 }));
    series.max = Math.max(series.max, whole);
    const last = series.samples.at(-1);
    // One sample a second: the worst.
    if (last !== undefined && last.time === time) last.milliseconds = Math.max(last.milliseconds, whole);
    else series.samples.push({ time, milliseconds: whole });
    if (series.samples.length > SAMPLES_MAX) series.samples.shift();
  }

  /** Runs a slice of background work and records how long it took. */
  slice<T>(kind: string, nowMs: number, work: () => T): T {
    const begin = performance.now();
    const result = work();
    this.record(kind, performance.now() - begin, nowMs);
    return result;
  }

  /** Records a slice of background work. */
  record(kind: string, milliseconds: number, nowMs: number): void {
    if (milliseconds > (this.longestSlices.get(kind) ?? 0)) this.longestSlices.set(kind, milliseconds);
    this.add(kind, milliseconds, nowMs);
  }

  reset(event: string): boolean {
    return this.events.delete(event);
  }
}
