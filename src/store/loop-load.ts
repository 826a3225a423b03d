/** How much of the event loop's time work other than one task's takes. */
export class LoopLoad {
  private last = performance.eventLoopUtilization();

  /** The part since the last call, of which `ownMs` were this task's. */
  othersSince(ownMs: number): number {
    const now = performance.eventLoopUtilization();
    const passed = performance.eventLoopUtilization(now, this.last);
    this.last = now;
    const total = passed.idle + passed.active;
    return total <= ownMs ? 0 : Math.max(0, passed.active - ownMs) / total;
  }
}
