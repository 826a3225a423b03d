/** From a socket's bytes to the requests that are run. */
import { allocatePadded, viewOf } from '../bytes/slice.ts';
import { parseRequest, ProtocolError } from '../resp/request-parser.ts';
import type { Client } from './client.ts';
import type { Context } from './context.ts';
import { dispatch, giveUp } from './dispatch.ts';
import { Pipeline } from './pipeline.ts';
import type { Server } from './server.ts';
import { loadRequest, type StoredRequest } from './stored-request.ts';

/** Bytes read from a socket at a time; requests in them are parsed in place. */
const INPUT_MEMORY = 64 * 1024;
/** A turn with so much output is sent before the next connection is read: its memory stays in the caches. */
const TURN_OUTPUT_SENT = 128 * 1024;
/** A connection's further requests wait for the next turn once it has written so much in this one. */
const TURN_OUTPUT_MAX = 8 * 1024 * 1024;

export class Input {
  /** What a socket has just sent lies here. */
  readonly memory = allocatePadded(INPUT_MEMORY);
  private readonly view = viewOf(this.memory.buffer);
  private readonly pipeline = new Pipeline();
  /** End of the bytes in which requests are parsed in place at the moment; 0 while that is not done. */
  end = 0;
  private readonly server: Server;

  constructor(server: Server) {
    this.server = server;
  }

  /** `length` bytes of the client's are in `memory`. */
  receive(client: Client, length: number): void {
    const { server } = this;
    server.turns.begin();
    server.statistics.inputBytes += length;
    client.lastInteraction = server.store.now;
    if (client.closing) return;
    if (client.reader.pending > 0 || client.stopped) {
      client.reader.push(this.memory, 0, length);
      if (client.stopped) this.checkLength(client);
      else this.drain(client);
      return;
    }
    server.output.open(client);
    server.clock.start();
    const rest = this.runFrom(client, this.memory, this.view, 0, length);
    if (rest < length && !client.closing) {
      client.reader.push(this.memory, rest, length);
      this.runReader(client);
    }
    if (server.clock.pending) server.clock.settle();
    server.output.close();
    if (server.output.turn.writer.pos > TURN_OUTPUT_SENT) server.logWriter.send();
  }

  /** Runs what the client had to wait with. */
  proceed(client: Client): void {
    const { postponed } = client;
    if (postponed !== null && !client.closed) {
      client.postponed = null;
      this.runStored(client, postponed);
    }
    if (client.stopped) return;
    this.drain(client);
    if (client.ended && !client.stopped) this.server.connections.closeAfterReply(client);
  }

  /** Runs a request that could not run when it came. */
  runStored(client: Client, request: StoredRequest): void {
    const { server } = this;
    server.output.open(client);
    server.clock.start();
    loadRequest(server.context, request);
    dispatch(server, server.context, client);
    if (server.clock.pending) server.clock.settle();
    server.output.close();
  }

  /** Replies with an error to a request that could not run when it came. */
  refuseStored(client: Client, request: StoredRequest, message: string): void {
    const { server } = this;
    server.output.open(client);
    loadRequest(server.context, request);
    giveUp(server, server.context, client, request.entry, message);
    server.output.close();
  }

  /** Runs whole requests of [pos, end) until one is not plain; returns the position of the rest. */
  private runFrom(client: Client, memory: Buffer, view: DataView, pos: number, end: number): number {
    const { server } = this;
    const { context } = server;
    if (!client.reader.authenticated) return pos;
    this.end = end;
    while (pos < end) {
      const next = parseRequest(context, memory, view, pos, end);
      if (next < 0) break;
      pos = next;
      dispatch(server, context, client);
      if (client.stopped || this.overfull(client)) break;
      if (pos < end) {
        const stop = this.runPipeline(client, memory, view, pos, end);
        if (stop < 0) {
          pos = ~stop;
          break;
        }
        pos = stop;
      }
    }
    this.end = 0;
    return pos;
  }

  /** The same for requests that are parsed and read ahead together; the complement of the position when nothing more may be run. */
  private runPipeline(client: Client, memory: Buffer, view: DataView, pos: number, end: number): number {
    const { server, pipeline } = this;
    const { context } = server;
    for (;;) {
      const count = pipeline.parse(memory, view, pos, end);
      if (count === 0) return pos;
      pipeline.prefetch(context, count);
      for (let i = 0; i < count; i++) {
        pos = pipeline.load(i, context);
        dispatch(server, context, client);
        if (client.stopped || this.overfull(client)) {
          server.store.prefetched();
          return ~pos;
        }
      }
      server.store.prefetched();
    }
  }

  /** The turn's output has grown so long that the rest of the client's requests wait for the next turn. */
  private overfull(client: Client): boolean {
    if (this.server.output.length < TURN_OUTPUT_MAX) return false;
    if (!this.server.turns.resumes(client)) this.server.turns.resume(client);
    return true;
  }

  /** Runs what waits in the client's reader. */
  private drain(client: Client): void {
    const { output, clock } = this.server;
    output.open(client);
    clock.start();
    this.runReader(client);
    if (clock.pending) clock.settle();
    output.close();
  }

  private runReader(client: Client): void {
    const { server } = this;
    const { context } = server;
    const { reader } = client;
    try {
      while (!client.stopped && !this.overfull(client)) {
        if (reader.between) {
          reader.at = this.runFrom(client, reader.memory, reader.view, reader.at, reader.end);
          if (client.stopped) break;
        }
        if (!reader.next(context)) break;
        if (context.argc > 0) dispatch(server, context, client);
      }
      if (client.closing) reader.clear();
      else reader.release();
      this.checkLength(client);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      const mark = context.reply.pos;
      context.reply.error(`ERR Protocol error: ${error.message}`);
      server.statistics.countError(context.reply.u8, mark, context.reply.pos);
      reader.clear();
      server.connections.closeAfterReply(client);
    }
  }

  private checkLength(client: Client): void {
    const { server } = this;
    if (client.reader.pending <= server.config.number('client-query-buffer-limit')) return;
    server.statistics.clientsClosedByQueryLimit++;
    server.logger.warn(`client ${client.id} (${client.address}) closed: its request is too long`);
    server.connections.kill(client);
  }

  /** A browser that was led to speak to us: the connection is closed. True when it was one. */
  refuseHttp(context: Context, client: Client): boolean {
    const name = context.word(0);
    if (name !== 'post' && name !== 'host:') return false;
    const { server } = this;
    server.logger.warn(`client ${client.id} (${client.address}) sent an HTTP request; connection closed`);
    server.connections.kill(client);
    return true;
  }
}
