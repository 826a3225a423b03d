/** `tier-memory`: how many bytes the tier may hold, and from when on commands that need more are refused. */
import os from 'node:os';
import { Gate } from './client.ts';
import type { Server } from './server.ts';

/** Of the memory tier, kept free for commands that have begun: an eighth, within these bounds. */
const RESERVE_SHARE = 8;
const RESERVE_MIN = 1024 * 1024;
const RESERVE_MAX = 64 * 1024 * 1024;

export class TierLimit {
  private readonly server: Server;
  /** Bytes in the tier above which commands that may need more are refused. */
  private fullAt = Infinity;

  constructor(server: Server) {
    this.server = server;
    server.config.onChange('tier-memory', () => this.apply());
  }

  /** Bytes that the tier may hold, as configured. */
  get bytes(): number {
    return this.server.config.number('tier-memory') || Math.floor(os.totalmem() / 2);
  }

  /**
   * What was acknowledged must come back whatever the limit is: it holds once the data is complete, and
   * leaves data that exceed it room for the commands that make them less.
   */
  apply(): void {
    const { server } = this;
    const { memory } = server.store;
    const limit = server.loading === null ? this.bytes : Infinity;
    // Commands are refused early, so that one that was let in need not stop half-way.
    const share = Math.min(RESERVE_MAX, Math.max(RESERVE_MIN, limit / RESERVE_SHARE));
    const reserve = Math.min(share, limit / 2);
    this.fullAt = limit - reserve;
    memory.limit = Math.max(limit, memory.used + reserve);
  }

  get isFull(): boolean {
    return this.server.store.memory.used > this.fullAt;
  }

  /** After a command that may take memory: the next one of the turn must not begin without. */
  closeWhenFull(): void {
    if (this.isFull) this.server.setGate(Gate.Full, true);
  }
}
