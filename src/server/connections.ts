/** A connection's life: let in, idle, told to go, gone. */
import type net from 'node:net';
import { Client, Gate } from './client.ts';
import { isLocal, PROTECTED_MODE, TOO_MANY_CLIENTS } from './network.ts';
import type { Server } from './server.ts';
import { readInto } from './static-read.ts';

export class Connections {
  private readonly server: Server;
  private nextId = 1;

  constructor(server: Server) {
    this.server = server;
    server.logWriter.delivery.onDone = (client) => this.finish(client);
    server.config.onChange('tcp-keepalive', () => {
      for (const client of server.clients.values()) this.keepAlive(client);
    });
  }

  /** @param unix path of the unix socket on which it came, null for TCP */
  accept(accepted: net.Socket, unix: string | null): void {
    const { server } = this;
    const { config, input, password, statistics } = server;
    const socket = readInto(accepted, input.memory, (length) => input.receive(client, length));
    const client = new Client(server, this.nextId, socket, unix !== null);
    const local = unix !== null || isLocal(socket);
    const refused =
      server.clients.size >= config.number('maxclients')
        ? TOO_MANY_CLIENTS
        : !password.isSet && config.flag('protected-mode') && !local
          ? PROTECTED_MODE
          : null;
    socket.on('error', () => socket.destroy());
    if (refused !== null) {
      statistics.connectionsRejected++;
      client.closing = true;
      socket.end(refused, () => socket.destroy());
      return;
    }
    statistics.connectionsReceived++;
    this.nextId++;
    client.local = local;
    client.address = unix !== null ? `${unix}:0` : endpoint(socket.remoteAddress, socket.remotePort);
    client.localAddress = unix !== null ? `${unix}:0` : endpoint(socket.localAddress, socket.localPort);
    client.setGate(Gate.Auth, password.isSet);
    client.reader.authenticated = !password.isSet;
    server.clients.set(client.id, client);
    this.keepAlive(client);
    socket.on('end', () => this.peerEnded(client));
    socket.on('drain', () => {
      client.overSoftLimitSince = 0;
    });
    socket.on('close', () => this.disconnected(client));
  }

  private keepAlive(client: Client): void {
    const seconds = this.server.config.number('tcp-keepalive');
    if (!client.unix) client.socket?.setKeepAlive(seconds > 0, seconds * 1000);
  }

  /** The peer sends no more. A client that waits is gone; one that has replies coming gets them. */
  private peerEnded(client: Client): void {
    if (client.wait !== null) client.socket?.destroy();
    // What it has sent is still run.
    else if (client.rerun !== null || client.suspended) client.ended = true;
    else this.closeAfterReply(client);
  }

  private disconnected(client: Client): void {
    if (client.closed) return;
    const { server } = this;
    client.closed = true;
    server.clients.delete(client.id);
    server.monitors.delete(client);
    server.pause.postponed.delete(client);
    if (server.monitors.size === 0) server.setGate(Gate.Monitored, false);
    server.blocking.end(client);
    server.faults.forget(client);
    server.watches.unwatch(client);
    server.tracking.disable(client);
    server.pubsub.forget(client);
    server.keyspace.observe();
    client.transaction = null;
    client.reader.clear();
  }

  /** Closes the connection once it has been sent what is due. */
  closeAfterReply(client: Client): void {
    if (client.closing) return;
    client.closing = true;
    this.server.turns.closeAtEnd(client);
  }

  /** Closes the connection at once. */
  kill(client: Client): void {
    client.socket?.destroy();
    this.disconnected(client);
  }

  /** All that was due is sent: the client is gone for everybody else, its socket follows. */
  finish(client: Client): void {
    const { socket } = client;
    socket?.end(() => socket.destroy());
    this.disconnected(client);
  }

  /** Once a second: idle clients are closed, soft output limits watched. */
  visit(now: number): void {
    const { server } = this;
    const timeout = server.config.number('timeout') * 1000;
    for (const client of server.clients.values()) {
      if (client.socket !== null && client.outputBytes > 0) server.outputLimits.check(client);
      const exempt = client.wait !== null || client.rerun !== null || client.subscribed || client.monitor;
      if (timeout > 0 && !exempt && now - client.lastInteraction > timeout) this.kill(client);
    }
  }
}

function endpoint(address: string | undefined, port: number | undefined): string {
  const host = (address ?? '?').replace(/^::ffff:/, '');
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
