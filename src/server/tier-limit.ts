/** `tier-memory`: how many bytes the tier may hold. */
import os from 'node:os';
import type { Server } from './server.ts';

export class TierLimit {
  private readonly server: Server;

  constructor(server: Server) {
    this.server = server;
    server.config.onChange('tier-memory', () => this.apply());
  }

  /** Bytes that the tier may hold, as configured. */
  get bytes(): number {
    const configured = this.server.config.number('tier-memory');
    return configured < 0 ? Math.floor(os.totalmem() / 2) : configured;
  }

  /**
   * Rows leave a tier that has an engine behind it when it is full, and the limit always holds. Without
   * one, what was acknowledged must come back whatever the limit is: it holds once the data is complete.
   */
  apply(): void {
    const { loading, options, store } = this.server;
    store.memory.limit = loading === null || options.evicts === true ? this.bytes : Infinity;
  }

  /** More is in memory than may be, and nothing can leave: commands that may need more are refused. */
  get isFull(): boolean {
    const { options, store } = this.server;
    return options.evicts !== true && store.memory.used > store.memory.limit;
  }
}
