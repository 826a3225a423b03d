/**
 * Measures slices of work on the thread that made it: how long they took by the clock, and how much of that was
 * work. On a busy machine the two differ, by the time the thread waited for a processor.
 */
import { openSync, readSync } from 'node:fs';

/** Time on a processor, time waiting for one (both ns), and slices of it: see the kernel's sched-stats. */
const SCHEDSTAT = '/proc/thread-self/schedstat';
const SPACE = 32;

export class SliceClock {
  /** Of the last slice: milliseconds by the clock, and without waiting for a processor. */
  elapsedMs = 0;
  workMs = 0;

  private readonly file: number | null;
  private readonly text = Buffer.alloc(64);
  private startedAt = 0;
  private waitedAtStart = 0;

  constructor() {
    this.file = openSchedstat();
  }

  start(): void {
    this.waitedAtStart = this.waitedNs();
    this.startedAt = performance.now();
  }

  stop(): void {
    this.elapsedMs = performance.now() - this.startedAt;
    const waitedMs = (this.waitedNs() - this.waitedAtStart) / 1e6;
    this.workMs = Math.max(0, this.elapsedMs - waitedMs);
  }

  /** 0 where the system does not tell. */
  private waitedNs(): number {
    if (this.file === null) return 0;
    const { text } = this;
    const length = readSync(this.file, text, 0, text.length, 0);
    let at = text.indexOf(SPACE) + 1;
    let waited = 0;
    for (; at < length && text[at] !== SPACE; at++) waited = waited * 10 + text[at] - 48;
    return waited;
  }
}

function openSchedstat(): number | null {
  try {
    return openSync(SCHEDSTAT, 'r');
  } catch {
    return null; // another system, or a kernel without it
  }
}
