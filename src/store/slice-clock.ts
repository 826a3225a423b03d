/**
 * Measures slices of work on the thread that made it: how long they took by the clock, and how much processor
 * time that was at most. On a busy machine the two differ: by the time the thread waited for a processor, and by
 * the time it slept, say until the threads that help it to collect garbage had got a processor themselves.
 */
import { openSync, readSync } from 'node:fs';

/** Time on a processor, time waiting for one (both ns), and slices of it: see the kernel's sched-stats. */
const SCHEDSTAT = '/proc/thread-self/schedstat';
const SPACE = 32;
/** The kernel brings the time on a processor up to date once a tick, of 4 ms by default. */
const TICK_MS = 4;

/** Does a slice of background work of some kind, and has it measured. */
export type SliceOf = <T>(kind: string, work: () => T) => T;

export class SliceClock {
  /** Of the last slice: milliseconds by the clock, and on a processor at most. */
  elapsedMs = 0;
  workMs = 0;

  private readonly file = schedstat();
  private readonly text = Buffer.alloc(64);
  private startedAt = 0;
  private ranNs = 0;
  private waitedNs = 0;

  start(): void {
    this.read();
    this.startedAt = performance.now();
  }

  stop(): void {
    this.elapsedMs = performance.now() - this.startedAt;
    const { ranNs, waitedNs } = this;
    this.read();
    const awakeMs = this.elapsedMs - (this.waitedNs - waitedNs) / 1e6;
    const ranMs = (this.ranNs - ranNs) / 1e6 + TICK_MS;
    this.workMs = this.file === null ? this.elapsedMs : Math.max(0, Math.min(awakeMs, ranMs));
  }

  private read(): void {
    if (this.file === null) return;
    const { text } = this;
    const length = readSync(this.file, text, 0, text.length, 0);
    let at = 0;
    let number = 0;
    for (; at < length && text[at] !== SPACE; at++) number = number * 10 + text[at] - 48;
    this.ranNs = number;
    number = 0;
    for (at++; at < length && text[at] !== SPACE; at++) number = number * 10 + text[at] - 48;
    this.waitedNs = number;
  }
}

/** Of this thread; undefined: no clock has asked yet. */
let opened: number | null | undefined;

/** A descriptor that all clocks of a thread share, so that they need not be closed. */
function schedstat(): number | null {
  if (opened !== undefined) return opened;
  try {
    opened = openSync(SCHEDSTAT, 'r');
  } catch {
    opened = null; // another system, or a kernel without it
  }
  return opened;
}
