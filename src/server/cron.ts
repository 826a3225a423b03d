/** What is done again and again without anybody's asking: `hz` times a second. */
import type { WorkingSet } from '../store/api.ts';
import type { Server } from './server.ts';
import { Client } from './client.ts';

/** Milliseconds of CPU that a slice of background work may take. */
const SLICE_MS = 5;
/** The same for moving values together, which nobody waits for. */
const DEFRAGMENT_MS = 2;
/** Between two slices when there is more to do: background work takes at most about a quarter of the time. */
const SLICE_PAUSE_MS = 15;

export class Cron {
  private readonly server: Server;
  /** On whose behalf background work runs. */
  private readonly nobody: Client;
  private timer: NodeJS.Timeout | null = null;
  private moreSlices: NodeJS.Timeout | null = null;
  private runs = 0;
  /** Expiry waits for rows, those in `set`. */
  private fetching = false;
  private set: WorkingSet | null = null;
  /** DEBUG SET-ACTIVE-EXPIRE. */
  activeExpire = true;

  constructor(server: Server, nobody: Client) {
    this.server = server;
    this.nobody = nobody;
    server.config.onChange('hz', () => {
      if (this.timer === null) return;
      clearInterval(this.timer);
      this.timer = setInterval(() => this.run(), 1000 / this.hz);
    });
  }

  private get hz(): number {
    return this.server.config.number('hz');
  }

  start(): void {
    this.timer ??= setInterval(() => this.run(), 1000 / this.hz);
  }

  stop(): void {
    if (this.timer !== null) clearInterval(this.timer);
    if (this.moreSlices !== null) clearTimeout(this.moreSlices);
    this.timer = null;
    this.moreSlices = null;
  }

  private run(): void {
    const { server } = this;
    const { store, statistics } = server;
    server.turns.begin();
    const { now } = store;
    this.runs++;
    server.pause.expire(now);
    if (server.loading === null) this.slices();
    statistics.commandRate.sample(server.commandsProcessed());
    statistics.inputRate.sample(statistics.inputBytes);
    statistics.outputRate.sample(statistics.outputBytes);
    statistics.peakMemory = Math.max(statistics.peakMemory, store.memory.used);
    if (this.runs % Math.max(1, Math.round(this.hz)) === 0) {
      server.connections.visit(now);
      server.persistence.tick();
    }
  }

  /** Expires what is due and frees what is dropped; as long as there is more of it, again after a pause. */
  private slices(): void {
    const { store, latency, pause, turns } = this.server;
    const { now } = store;
    let more = false;
    if (this.activeExpire && !pause.active && !this.fetching) {
      const began = performance.now();
      const removed = latency.slice('expire-cycle', now, () => this.expire());
      more = removed > 0 && (!store.residency().complete || performance.now() - began >= SLICE_MS);
    }
    more = latency.slice('background', now, () => store.backgroundSlice(SLICE_MS)) || more;
    more = latency.slice('active-defrag-cycle', now, () => store.defragment(DEFRAGMENT_MS)) || more;
    if (!more || this.moreSlices !== null) return;
    this.moreSlices = setTimeout(() => {
      this.moreSlices = null;
      turns.begin();
      this.slices();
    }, SLICE_PAUSE_MS);
  }

  /** Removes keys that are due, as one unit of work. Returns how many. */
  private expire(): number {
    const { store, context, faults } = this.server;
    let removed = 0;
    context.client = this.nobody;
    context.set = this.set;
    const done = context.unit(() => (removed = store.expireDue(SLICE_MS)));
    const { set } = context;
    context.set = null;
    this.set = done ? null : set;
    if (!done) {
      this.fetching = true;
      faults.await(set!, (error) => {
        this.fetching = false;
        if (error !== null) this.giveUp(error);
        else this.slices();
      });
      return 0;
    }
    set?.release();
    if (context.staging) context.announce(context.takeStaged());
    return removed;
  }

  private giveUp(error: Error): void {
    this.set?.release();
    this.set = null;
    this.server.logger.warn(`expired keys could not be fetched: ${error.message}`);
  }
}
