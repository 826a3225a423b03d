/**
 * The way out: a turn's bytes go to their sockets as soon as the log has reached the turn's position,
 * in order per connection.
 */
import type { Client } from './client.ts';
import type { Statistics } from './statistics.ts';
import type { Turn } from './turn.ts';

interface Held {
  client: Client;
  bytes: Buffer;
  /** Log position at which the bytes may leave. */
  position: number;
}

export class Delivery {
  private held: Held[] = [];
  private heldFrom = 0;
  private readonly statistics: Statistics;
  /** Called before bytes go to a connection: whether it may be sent that much; if not, it is closed. */
  mayTake: (client: Client, bytes: number) => boolean = () => true;
  /** Called when a connection has more to take; its output limits are to be checked. */
  onOutput: (client: Client) => void = () => {};
  /** Called when a connection that is to be closed has got all that was held for it. */
  onDone: (client: Client) => void = () => {};

  constructor(statistics: Statistics) {
    this.statistics = statistics;
  }

  /**
   * Sends or holds all of a turn's output and makes the turn ready for reuse.
   * @param position what the log must reach for `mustWait` connections
   * @param reached how far the log is
   */
  deliver(turn: Turn, position: number, reached: number, mustWait: (client: Client) => boolean): void {
    let retained = false;
    for (let i = 0; i < turn.clientCount; i++) {
      const client = turn.clientAt(i);
      const socket = client.socket;
      if (socket === null || client.closed) continue;
      const output = turn.outputOf(i);
      if (client.heldBytes > 0 || (position > reached && mustWait(client))) {
        this.hold(client, Buffer.from(output), position);
      } else if (this.mayTake(client, output.length)) {
        this.statistics.outputBytes += output.length;
        socket.write(output);
        // Node hands small writes to the kernel at once; only what it could not take stays queued.
        if (socket.writableLength > 0) {
          retained = true;
          this.onOutput(client);
        }
      }
    }
    turn.reset(retained);
  }

  private hold(client: Client, bytes: Buffer, position: number): void {
    client.heldBytes += bytes.length;
    this.held.push({ client, bytes, position });
    this.onOutput(client);
  }

  /** Sends what waited for the log to reach `position`. */
  release(position: number): void {
    const held = this.held;
    while (this.heldFrom < held.length && held[this.heldFrom].position <= position) {
      const { client, bytes } = held[this.heldFrom++];
      client.heldBytes -= bytes.length;
      if (client.closed || client.socket === null) continue;
      this.statistics.outputBytes += bytes.length;
      client.socket.write(bytes);
      if (client.heldBytes === 0 && client.closing) this.onDone(client);
    }
    if (this.heldFrom === held.length) {
      held.length = 0;
      this.heldFrom = 0;
    } else if (this.heldFrom > 1024) {
      held.splice(0, this.heldFrom);
      this.heldFrom = 0;
    }
  }

  get waiting(): number {
    return this.held.length - this.heldFrom;
  }
}
