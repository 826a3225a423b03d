/** client-output-buffer-limit: a client that does not take what it is sent is closed. */
import { Gate, type Client } from './client.ts';
import { outputLimits, type OutputClass, type OutputLimit } from './parameters.ts';
import type { Server } from './server.ts';

/** Who has not said the password cannot make the server hold much for it. */
const STRANGER: OutputLimit = { hard: 1024, soft: 0, softSeconds: 0 };

export class OutputLimits {
  private readonly server: Server;
  private limits!: Record<OutputClass, OutputLimit>;

  constructor(server: Server) {
    this.server = server;
    server.config.onChange('client-output-buffer-limit', () => {
      this.limits = outputLimits(server.config.text('client-output-buffer-limit'));
    });
    const { delivery } = server.logWriter;
    delivery.mayTake = (client, bytes) => this.mayTake(client, bytes);
    delivery.onOutput = (client) => this.check(client);
  }

  /** What a connection is by its output limits. */
  classOf(client: Client): OutputClass {
    return client.monitor ? 'slave' : client.subscribed ? 'pubsub' : 'normal';
  }

  /** Closes the client if too much waits for it, or much for too long. */
  check(client: Client): void {
    const { hard, soft, softSeconds } =
      (client.gates & Gate.Auth) !== 0 ? STRANGER : this.limits[this.classOf(client)];
    const { now } = this.server.store;
    const waiting = client.outputBytes;
    let tooMuch = hard > 0 && waiting > hard;
    if (soft > 0 && waiting > soft) {
      if (client.overSoftLimitSince === 0) client.overSoftLimitSince = now;
      else if (now - client.overSoftLimitSince > softSeconds * 1000) tooMuch = true;
    } else {
      client.overSoftLimitSince = 0;
    }
    if (tooMuch) this.kill(client, waiting);
  }

  /**
   * Whether the client may be sent so much more; if not, it is closed. A reply above the hard limit is
   * refused as in Redis, even if the kernel had room for it.
   */
  mayTake(client: Client, bytes: number): boolean {
    const { hard } = this.limits[this.classOf(client)];
    if (hard === 0 || client.outputBytes + bytes <= hard) return true;
    this.kill(client, client.outputBytes + bytes);
    return false;
  }

  private kill(client: Client, waiting: number): void {
    const { server } = this;
    server.statistics.clientsClosedByOutputLimit++;
    server.logger.warn(
      `client ${client.id} (${client.address}) closed: ${waiting} bytes of output wait for it`,
    );
    server.connections.kill(client);
  }
}
