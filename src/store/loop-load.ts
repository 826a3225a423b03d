/** With a busy loop, background work takes at most one part in this many of its time. */
const BUSY_SHARE = 4;
/** The loop counts as busy when others use more than this part of it. */
const BUSY_UTILIZATION = 0.5;

/** How much of the event loop's time work other than one task's takes. */
export class LoopLoad {
  private last = performance.eventLoopUtilization();

  /** The part since the last call, of which `ownMs` were this task's. */
  private othersSince(ownMs: number): number {
    const now = performance.eventLoopUtilization();
    const passed = performance.eventLoopUtilization(now, this.last);
    this.last = now;
    const total = passed.idle + passed.active;
    return total <= ownMs ? 0 : Math.max(0, passed.active - ownMs) / total;
  }

  /** Milliseconds for which a task should rest after a slice of so many; 0 while nobody else needs the loop. */
  restAfter(sliceMs: number): number {
    return this.othersSince(sliceMs) > BUSY_UTILIZATION ? sliceMs * (BUSY_SHARE - 1) : 0;
  }
}

/** Lets the event loop turn, and so much time pass. */
export function rest(ms: number): Promise<void> {
  return new Promise((resolve) => {
    if (ms < 1) setImmediate(resolve);
    else setTimeout(resolve, ms);
  });
}
