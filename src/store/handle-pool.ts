import type { ValueHandle } from './record.ts';

/** Handles of one kind, lent until `reset` and then used again. */
export class HandlePool<T extends ValueHandle> {
  private readonly make: () => T;
  private readonly handles: T[] = [];
  private lent = 0;

  constructor(make: () => T) {
    this.make = make;
  }

  take(): T {
    if (this.lent === this.handles.length) this.handles.push(this.make());
    return this.handles[this.lent++];
  }

  reset(): void {
    this.lent = 0;
  }
}
