/** Brings a turn's effects into the log, and says what of its output must wait for that. */
import type { Client } from './client.ts';
import { EffectBuffer, type CommandLog } from './command-log.ts';
import { Delivery } from './delivery.ts';
import { describe } from './errors.ts';
import type { Server } from './server.ts';

const everybody = (): boolean => true;
const sawUnlogged = (client: Client): boolean => {
  const saw = client.sawUnlogged;
  client.sawUnlogged = false;
  return saw;
};

export class LogWriter {
  readonly delivery: Delivery;
  private readonly server: Server;
  /** Null until `attach`; then nothing is logged, and replies leave at the end of their turn. */
  private log: CommandLog | null = null;
  /** The log could not be written in the last turn. */
  failing = false;
  /** Why it could not be written. */
  failure: string | null = null;

  constructor(server: Server) {
    this.server = server;
    this.delivery = new Delivery(server.statistics);
  }

  attach(log: CommandLog): void {
    this.log = log;
    this.server.effects = new EffectBuffer();
    log.onSynced = () => this.delivery.release(log.syncedPosition);
    this.followPolicy();
  }

  /** Takes over `appendfsync`. */
  followPolicy(): void {
    if (this.log !== null) this.log.policy = this.server.config.text('appendfsync') as CommandLog['policy'];
  }

  /** The log gets what has been done so far, then the connections what they are to be sent. */
  send(): void {
    const { log, delivery } = this;
    const { effects, output } = this.server;
    if (effects !== null && log !== null) {
      if (effects.length > 0) this.append(effects, log);
      const failing = effects.length > 0;
      // What is not in the log yet will end beyond where the log ends now.
      const position = failing ? log.position + 1 : log.position;
      const reached = log.policy === 'always' ? log.syncedPosition : log.position;
      delivery.deliver(output.turn, position, reached, failing && this.failing ? sawUnlogged : everybody);
      this.failing = failing;
    } else {
      delivery.deliver(output.turn, 0, 0, everybody);
    }
  }

  /** Brings all effects so far into the log; false when that is not possible now. */
  flush(): boolean {
    const { log } = this;
    const { effects } = this.server;
    if (effects === null || log === null) return true;
    if (effects.length > 0) this.append(effects, log);
    return effects.length === 0;
  }

  /** Appends the turn's effects as one frame. When that fails they stay, and are tried again. */
  private append(effects: EffectBuffer, log: CommandLog): void {
    const { server } = this;
    try {
      log.append(effects.written());
    } catch (error) {
      this.failure = describe(error);
      if (!this.failing)
        server.logger.error(`the log cannot be written, writes are refused until it can: ${this.failure}`);
      server.checkWritable();
      return;
    }
    effects.reset();
    const delay = server.durability?.writerDelayMs?.() ?? 0;
    if (delay >= 1) server.pause.throttle(delay);
    if (this.failing) {
      server.logger.warn('the log can be written again');
      this.failure = null;
      server.checkWritable();
      if (log.policy !== 'always') this.delivery.release(log.position);
    }
  }
}
