/** Listening sockets, and which connections are let in. */
import { chmodSync, unlinkSync } from 'node:fs';
import net from 'node:net';
import type { Config } from './config.ts';

/** An address cannot be listened on; `message` says which and why. */
export class ListenError extends Error {
  readonly code = 'LISTEN';
}

/** Bytes of `sun_path` without the zero at its end. */
const SOCKET_PATH_MAX = process.platform === 'linux' ? 107 : 103;

const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/;

/** The peer is on this machine. */
export function isLocal(socket: net.Socket): boolean {
  return socket.remoteAddress === undefined || LOOPBACK.test(socket.remoteAddress);
}

export const PROTECTED_MODE =
  '-DENIED Ardent is in protected mode: no password is set for the default user, so only connections from ' +
  'this machine are accepted. Set a password with requirepass (CONFIG SET requirepass, or --requirepass), ' +
  "or switch protected mode off with 'CONFIG SET protected-mode no' from this machine.\r\n";
export const TOO_MANY_CLIENTS = '-ERR max number of clients reached\r\n';

export class Network {
  private readonly config: Config;
  private readonly accept: (socket: net.Socket, unix: string | null) => void;
  private tcp: net.Server[] = [];
  private unix: net.Server | null = null;
  /** Who has connected before `admit`; null after it. Nothing is read from them. */
  private early: { socket: net.Socket; unix: string | null }[] | null = [];

  constructor(config: Config, accept: (socket: net.Socket, unix: string | null) => void) {
    this.config = config;
    this.accept = accept;
  }

  /** Listens on all configured addresses; who connects waits for `admit`. Port 0 and no unix socket: nothing. */
  async open(): Promise<void> {
    await this.openTcp(this.config.number('port'));
    await this.openUnix();
  }

  /** Lets in who has connected, and from now on everybody. */
  admit(): void {
    const { early } = this;
    this.early = null;
    for (const { socket, unix } of early ?? []) this.accept(socket, unix);
  }

  /** Listens on a free port of the loopback interface. Resolves to the port. */
  async openFreePort(): Promise<number> {
    const listener = await this.listen({ host: '127.0.0.1', port: 0 });
    this.tcp.push(listener);
    return (listener.address() as net.AddressInfo).port;
  }

  /** Replaces the TCP listeners; the old ones stay when a new one fails. */
  async openTcp(port: number): Promise<void> {
    const opened: net.Server[] = [];
    if (port !== 0) {
      const addresses = this.config.text('bind').split(' ').filter(Boolean);
      try {
        for (const given of addresses) {
          const optional = given.startsWith('-');
          const address = optional ? given.slice(1) : given;
          try {
            opened.push(await this.listen(tcpOptions(address, port, this.config.number('tcp-backlog'))));
          } catch (error) {
            const code = (error as NodeJS.ErrnoException).code;
            if (optional && ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL'].includes(code ?? '')) continue;
            throw new ListenError(describe(address, port, error), { cause: error });
          }
        }
        if (opened.length === 0)
          throw new ListenError(`none of the addresses '${this.config.text('bind')}' can be listened on`);
      } catch (error) {
        await closeAll(opened);
        throw error;
      }
    }
    const old = this.tcp;
    this.tcp = opened;
    for (const listener of old) listener.close();
  }

  private async openUnix(): Promise<void> {
    const path = this.config.text('unixsocket');
    if (path === '') return;
    try {
      // The system would be given what fits, and the socket have another name.
      if (Buffer.byteLength(path) > SOCKET_PATH_MAX)
        throw new Error(`the path is longer than the ${SOCKET_PATH_MAX} bytes that the system takes`);
      await removeStale(path);
      this.unix = await this.listen({ path, backlog: this.config.number('tcp-backlog') });
      const permissions = this.config.number('unixsocketperm');
      if (permissions !== 0) chmodSync(path, permissions);
    } catch (error) {
      throw new ListenError(`unix socket ${path}: ${(error as Error).message}`, { cause: error });
    }
  }

  private listen(options: net.ListenOptions): Promise<net.Server> {
    const unix = options.path ?? null;
    // A peer that has sent its last request may still read: its replies leave before we close.
    const listener = net.createServer(
      { noDelay: true, allowHalfOpen: true, pauseOnConnect: true },
      (socket) => {
        if (this.early === null) this.accept(socket, unix);
        else this.early.push({ socket, unix });
      },
    );
    return new Promise((resolve, reject) => {
      listener.once('error', reject);
      listener.listen(options, () => {
        listener.removeListener('error', reject);
        resolve(listener);
      });
    });
  }

  /** Stops listening; connections stay. */
  close(): void {
    for (const listener of this.tcp) listener.close();
    this.unix?.close();
    this.tcp = [];
    this.unix = null;
  }
}

function tcpOptions(address: string, port: number, backlog: number): net.ListenOptions {
  if (address === '*') return { host: '0.0.0.0', port, backlog };
  if (address === '::*') return { host: '::', port, backlog, ipv6Only: true };
  return { host: address, port, backlog, ipv6Only: address.includes(':') };
}

function describe(address: string, port: number, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE')
    return `port ${port} on ${address} is in use; stop what listens there or choose another with --port`;
  if (code === 'EACCES') return `not allowed to listen on port ${port} (${address}); choose one above 1023`;
  return `cannot listen on ${address} port ${port}: ${message}`;
}

async function closeAll(listeners: readonly net.Server[]): Promise<void> {
  await Promise.all(listeners.map((listener) => new Promise((resolve) => listener.close(resolve))));
}

/** A socket file that nobody listens on any more is in the way; one that is in use is not touched. */
async function removeStale(path: string): Promise<void> {
  const inUse = await new Promise<boolean>((resolve) => {
    const probe = net.connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', () => resolve(false));
  });
  if (inUse) throw new Error('another server listens on it');
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}
