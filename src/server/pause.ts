/** CLIENT PAUSE, and the moments for which writers are held back so that the disk can follow. */
import { Gate, type Client } from './client.ts';
import type { Server } from './server.ts';

interface Interval {
  /** All commands, not only writes. */
  all: boolean;
  /** Unix ms. */
  until: number;
}

export class Pause {
  private readonly server: Server;
  private interval: Interval | null = null;
  /** Clients whose command is held back. */
  readonly postponed = new Set<Client>();

  constructor(server: Server) {
    this.server = server;
  }

  get active(): boolean {
    return this.interval !== null;
  }

  /** Reads are held back, too. */
  get all(): boolean {
    return this.interval !== null && this.interval.all;
  }

  /** A longer or stricter pause is not shortened. @param until Unix ms */
  begin(all: boolean, until: number): void {
    const before = this.interval;
    this.set({ all: all || this.all, until: Math.max(until, before?.until ?? 0) });
  }

  /** Holds writes back for a moment. */
  throttle(milliseconds: number): void {
    if (this.active) return;
    const interval = { all: false, until: this.server.store.now + milliseconds };
    this.set(interval);
    setTimeout(() => {
      if (this.interval === interval) this.end();
    }, milliseconds);
  }

  private set(interval: Interval): void {
    this.interval = interval;
    this.server.setGate(Gate.Paused, true);
  }

  /** Ends it when its time is over. */
  expire(now: number): void {
    if (this.interval !== null && this.interval.until <= now) this.end();
  }

  /** Commands that were held back run now. */
  end(): void {
    this.interval = null;
    this.server.store.keepsDue = false;
    this.server.setGate(Gate.Paused, false);
    const postponed = [...this.postponed];
    this.postponed.clear();
    for (const client of postponed) this.server.turns.resume(client);
  }
}
