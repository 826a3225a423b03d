/** LATENCY: spikes of named events by second, and the longest slice of each kind of background work. */

import { SliceClock } from '../store/slice-clock.ts';

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
  /** Longest slice of background work for each kind: milliseconds by the clock, and on a processor at most. */
  readonly longestSlices = new Map<string, number>();
  readonly longestWork = new Map<string, number>();
  private readonly clock = new SliceClock();

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
    const { clock } = this;
    clock.start();
    const result = work();
    clock.stop();
    this.record(kind, clock.elapsedMs, clock.workMs, nowMs);
    return result;
  }

  /** Records a slice of background work. */
  record(kind: string, milliseconds: number, workMs: number, nowMs: number): void {
    if (milliseconds > (this.longestSlices.get(kind) ?? 0)) this.longestSlices.set(kind, milliseconds);
    if (workMs > (this.longestWork.get(kind) ?? 0)) this.longestWork.set(kind, workMs);
    this.add(kind, milliseconds, nowMs);
  }

  reset(event: string): boolean {
    return this.events.delete(event);
  }
}
