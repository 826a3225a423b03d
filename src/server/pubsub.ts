import type { Client } from './client.ts';
import type { Server } from './server.ts';

export class PubSub {
  readonly server: Server;
  constructor(server: Server) {
    this.server = server;
  }
  publish(_channel: Buffer, _message: Buffer, _sharded: boolean): void {}
  unsubscribeAll(_client: Client): void {}
}
