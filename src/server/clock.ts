/**
 * How long commands take. The clock is read once for a run of quick commands, whose time is shared
 * out among them, and around every command that may be slow.
 */
import type { CommandEntry } from './command-entry.ts';

/** Buckets of a histogram in each doubling of the duration: values are exact to 9%. */
const BUCKETS_PER_OCTAVE = 8;
/** Up to 2^40 ns, 18 minutes. */
const BUCKETS = 40 * BUCKETS_PER_OCTAVE;

/** Durations of a command, counted in buckets that widen with the duration. */
export class Histogram {
  readonly counts = new Float64Array(BUCKETS);
  total = 0;

  add(bucket: number, count: number): void {
    this.counts[bucket] += count;
    this.total += count;
  }

  /** Microseconds below which `percent` of the calls stay. */
  percentile(percent: number): number {
    const wanted = Math.max(1, Math.ceil((this.total * percent) / 100));
    let seen = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      seen += this.counts[bucket];
      if (seen >= wanted) return 2 ** ((bucket + 1) / BUCKETS_PER_OCTAVE) / 1000;
    }
    return 0;
  }

  /** Cumulative counts at each doubling of 1 microsecond, while they grow. */
  cumulative(): [microseconds: number, count: number][] {
    const steps: [number, number][] = [];
    let seen = 0;
    let bucket = 0;
    for (let microseconds = 1; bucket < BUCKETS; microseconds *= 2) {
      const before = seen;
      const end = Math.min(BUCKETS, Math.ceil(Math.log2(microseconds * 1024) * BUCKETS_PER_OCTAVE));
      for (; bucket < end; bucket++) seen += this.counts[bucket];
      if (seen > before) steps.push([microseconds, seen]);
    }
    return steps;
  }
}

export class CommandClock {
  /** Commands are recorded in histograms too. */
  histograms = true;
  private mark = 0;
  private entries: CommandEntry[] = [];
  private entryCount = 0;
  private commandCount = 0;
  /** Laps: commands of an EXEC that has not come to its end, and their microseconds. */
  private readonly lapEntries: CommandEntry[] = [];
  private readonly lapTimes: number[] = [];

  /** Begins a run of commands. */
  start(): void {
    this.mark = performance.now();
  }

  /** A command has run whose time is not attributed yet. */
  ran(entry: CommandEntry): void {
    if (entry.unattributed++ === 0) this.entries[this.entryCount++] = entry;
    this.commandCount++;
  }

  /** Shares out the time since the last reading; returns it, in milliseconds. */
  settle(): number {
    const now = performance.now();
    const elapsed = now - this.mark;
    this.mark = now;
    if (this.commandCount === 0) return elapsed;
    const microseconds = (elapsed * 1000) / this.commandCount;
    for (let i = 0; i < this.entryCount; i++) {
      const entry = this.entries[i];
      this.record(entry, microseconds, entry.unattributed);
      entry.unattributed = 0;
    }
    this.entryCount = 0;
    this.commandCount = 0;
    return elapsed;
  }

  private record(entry: CommandEntry, microseconds: number, calls: number): void {
    entry.microseconds += microseconds * calls;
    if (!this.histograms) return;
    const bucket = Math.min(
      BUCKETS - 1,
      Math.floor(Math.log2(Math.max(1, microseconds * 1000)) * BUCKETS_PER_OCTAVE),
    );
    (entry.histogram ??= new Histogram()).add(bucket, calls);
  }

  /** A command of an EXEC has run since the last reading; its time, in milliseconds, counts when `endLaps` says so. */
  lap(entry: CommandEntry): number {
    const now = performance.now();
    const elapsed = now - this.mark;
    this.mark = now;
    this.lapEntries.push(entry);
    this.lapTimes.push(elapsed * 1000);
    return elapsed;
  }

  /** The EXEC has come to its end, or was rolled back. */
  endLaps(count: boolean): void {
    const { lapEntries, lapTimes } = this;
    if (count) for (let i = 0; i < lapTimes.length; i++) this.record(lapEntries[i], lapTimes[i], 1);
    lapEntries.length = 0;
    lapTimes.length = 0;
  }

  /** Time before a command that is measured on its own belongs to those that ran before it. */
  get pending(): boolean {
    return this.commandCount > 0;
  }
}
