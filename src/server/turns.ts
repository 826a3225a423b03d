/** The event-loop turn: what begins it, and what is done at its end. */
import { Gate, type Client } from './client.ts';
import type { Server } from './server.ts';

export class Turns {
  private readonly server: Server;
  private begun = false;
  private resumed: Client[] = [];
  private closings: Client[] = [];
  private waitTimer: NodeJS.Timeout | null = null;

  constructor(server: Server) {
    this.server = server;
  }

  /** Something has come up: the turn's time is read, and its end will come. */
  begin(): void {
    if (this.begun) return;
    this.begun = true;
    const { server } = this;
    server.store.now = Date.now();
    server.store.keepsDue = server.pause.active;
    server.setGate(Gate.Full, server.tierLimit.isFull);
    setImmediate(this.endBound);
  }

  /** The client's input is looked at again at the end of the turn. */
  resume(client: Client): void {
    this.resumed.push(client);
    this.begin();
  }

  resumes(client: Client): boolean {
    return this.resumed.includes(client);
  }

  /** The client is done for once it has been sent what is due. */
  closeAtEnd(client: Client): void {
    this.closings.push(client);
    this.begin();
  }

  end(): void {
    const { server, resumed } = this;
    if (resumed.length > 0) {
      this.resumed = [];
      for (const client of resumed) {
        client.unblocked = false;
        server.input.proceed(client);
      }
    }
    server.tracking.flushBroadcasts();
    this.begun = false;
    if (this.resumed.length > 0) this.begin();
    server.logWriter.send();
    for (const client of this.closings) if (client.heldBytes === 0) server.connections.finish(client);
    this.closings.length = 0;
    if (server.blocking.anyone || this.waitTimer !== null) this.scheduleWaits();
  }

  private readonly endBound = (): void => this.end();

  private scheduleWaits(): void {
    this.stop();
    const { store, blocking } = this.server;
    const next = blocking.nextDeadline();
    if (next === Infinity) return;
    const delay = Math.min(Math.max(1, next - Date.now()), 0x7fffffff);
    this.waitTimer = setTimeout(() => {
      this.waitTimer = null;
      this.begin();
      blocking.expire(store.now);
    }, delay);
  }

  /** No turn begins any more because a wait is over. */
  stop(): void {
    if (this.waitTimer !== null) clearTimeout(this.waitTimer);
    this.waitTimer = null;
  }
}
