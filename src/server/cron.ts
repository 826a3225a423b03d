/** What is done again and again without anybody's asking: `hz` times a second. */
import type { Server } from './server.ts';
import { Client } from './client.ts';

/** Milliseconds of CPU that a slice of background work may take. */
const SLICE_MS = 5;
/** Between two slices when there is more to do: background work takes at most about a quarter of the time. */
const SLICE_PAUSE_MS = 15;

export class Cron {
  private readonly server: Server;
  /** On whose behalf background work runs. */
  private readonly nobody: Client;
  private timer: NodeJS.Timeout | null = null;
  private moreSlices: NodeJS.Timeout | null = null;
  private runs = 0;
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
    return Math.min(500, Math.max(1, this.server.config.number('hz')));
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
    const { store, latency, context, pause, turns } = this.server;
    const { now } = store;
    let more = false;
    if (this.activeExpire && !pause.active) {
      const began = performance.now();
      latency.slice('expire-cycle', now, () => store.expireDue(SLICE_MS));
      more = performance.now() - began >= SLICE_MS;
      context.client = this.nobody;
      if (context.staging) context.announce(context.takeStaged());
    }
    more = latency.slice('background', now, () => store.backgroundSlice(SLICE_MS)) || more;
    if (!more || this.moreSlices !== null) return;
    this.moreSlices = setTimeout(() => {
      this.moreSlices = null;
      turns.begin();
      this.slices();
    }, SLICE_PAUSE_MS);
  }
}
