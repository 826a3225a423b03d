/** What clients are written in a turn: replies of their own commands, and pushes from those of others. */
import type { Client } from './client.ts';
import type { Reply } from './reply.ts';
import type { Server } from './server.ts';
import { Turn } from './turn.ts';

export class Output {
  readonly turn = new Turn();
  private readonly server: Server;
  /** The client whose output is being written, from `from` on. */
  private current: Client | null = null;
  private from = 0;
  private audience: 'all' | 'self' | 'others' = 'all';

  constructor(server: Server) {
    this.server = server;
  }

  /** Bytes that the current client has been written since `open`. */
  get length(): number {
    return this.turn.writer.pos - this.from;
  }

  /** What is written to the reply from here on is for `client`. */
  open(client: Client): void {
    if (this.current !== null) this.close();
    const { writer } = this.turn;
    this.current = client;
    this.from = writer.pos;
    writer.protocol = client.protocol;
    const { context } = this.server;
    context.client = client;
    context.db = client.db;
    context.reply = writer;
  }

  /** Ends the client's output; what its requests lie in may change from here on. */
  close(): void {
    this.server.effects?.settle();
    if (this.current !== null) this.turn.add(this.current, this.from, this.turn.writer.pos);
    this.current = null;
  }

  /** Writes the reply of a command that the client has waited for, unless CLIENT REPLY keeps it from it. */
  answer(client: Client, write: (reply: Reply) => void): void {
    if (!client.unanswered) this.push(client, write);
    client.unanswered = false;
  }

  /** Writes something for a client outside of its own commands. */
  push(client: Client, write: (reply: Reply) => void): void {
    this.pushToAll([client], write);
  }

  /**
   * Writes the same to several clients, once for each protocol version. What the client gets whose
   * command runs stands before the command's reply.
   */
  pushToAll(clients: Iterable<Client>, write: (reply: Reply) => void): void {
    this.server.turns.begin();
    const { current, turn, audience } = this;
    const { writer } = turn;
    const starts = [0, 0];
    const ends = [0, 0];
    let closed = current === null;
    for (const client of clients) {
      if (client.closed) continue;
      if (client === current && audience !== 'all') {
        if (audience === 'self') this.insertBeforeReply(write);
        continue;
      }
      if (audience === 'self') continue;
      if (!closed) {
        turn.add(current!, this.from, writer.pos);
        closed = true;
      }
      const version = client.protocol - 2;
      if (ends[version] === 0) {
        starts[version] = writer.pos;
        writer.protocol = client.protocol;
        write(writer);
        ends[version] = writer.pos;
      }
      turn.add(client, starts[version], ends[version]);
    }
    if (current !== null && closed) {
      this.from = writer.pos;
      writer.protocol = current.protocol;
    }
  }

  private insertBeforeReply(write: (reply: Reply) => void): void {
    const { context } = this.server;
    const { writer } = this.turn;
    const end = writer.pos;
    write(writer);
    const inserted = Buffer.from(writer.u8.subarray(end, writer.pos));
    const at = Math.max(context.replyFrom, this.from);
    writer.u8.copyWithin(at + inserted.length, at, end);
    inserted.copy(writer.u8, at);
    context.replyFrom = at + inserted.length;
  }

  /** Hands out what `client`'s command has staged, and lets waiting commands go on. */
  publish(client: Client): void {
    const { context, tracking, blocking } = this.server;
    const staged = context.takeStaged();
    this.audience = 'self';
    if (client.subscribed) context.announce(staged);
    this.audience = 'others';
    context.announce(staged);
    this.audience = 'all';
    tracking.flushPending(client);
    context.signalReady();
    if (!blocking.pending) return;
    const from = context.replyFrom;
    const served = blocking.serve();
    this.close();
    if (!served && client.socket !== null) blocking.hold(client, this.turn.withhold(client, from));
    this.open(client);
  }
}
