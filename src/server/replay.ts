/** Recovery's side of the server: the commands of log frames, run again. */
import type { Slice } from '../bytes/slice.ts';
import { parseRequest, RequestReader } from '../resp/request-parser.ts';
import { Client } from './client.ts';
import type { CommandEntry } from './command-entry.ts';
import { dispatch } from './dispatch.ts';
import { DAMAGED } from './errors.ts';
import { keyPositions } from './key-positions.ts';
import type { Server } from './server.ts';

const MINUS = 45;

export class Replay {
  private readonly server: Server;
  /** Stands for whoever sent what is replayed. */
  private readonly client: Client;

  constructor(server: Server) {
    this.server = server;
    this.client = new Client(server, 0, null);
  }

  /** Runs the commands of a frame: no replies, nothing is logged, no limits, no expiry by the clock. */
  run(payload: Slice): void {
    const { server, client } = this;
    const { context, effects, gates, store } = server;
    const { now } = store;
    server.effects = null;
    server.gates = 0;
    // What was due was removed by a logged DEL: here time stands still.
    store.now = 0;
    context.mayBlock = false;
    client.db = store.database(0);
    server.output.open(client);
    const mark = context.reply.pos;
    const { u8, view, end } = payload;
    let pos = payload.start;
    try {
      while (pos < end) {
        const next = parseRequest(context, u8, view, pos, end);
        if (next < 0) break;
        pos = next;
        this.request(mark);
      }
      if (pos < end) this.carefully(payload, pos, mark);
    } finally {
      server.effects = effects;
      server.gates = gates;
      store.now = now;
      context.mayBlock = true;
      context.reply.pos = mark;
      server.output.close();
    }
  }

  /** Requests with very many arguments, which do not parse in place. */
  private carefully(payload: Slice, from: number, mark: number): void {
    const reader = new RequestReader({ bulkLengthMax: Number.MAX_SAFE_INTEGER });
    reader.push(payload.u8, from, payload.end);
    while (reader.next(this.server.context)) this.request(mark);
    if (reader.pending > 0) throw new Error(`log: ${reader.pending} bytes of a frame are no request`);
  }

  private request(mark: number): void {
    const { context } = this.server;
    // A frame is one step as a whole: the borders of transactions in it mean nothing here.
    if (context.is(0, 'multi') || context.is(0, 'exec')) return;
    dispatch(this.server, context, this.client);
    const { reply } = context;
    if (reply.u8[mark] === MINUS) {
      const error = reply.written(mark).latin1Slice(1).trim();
      if (!error.startsWith(DAMAGED)) throw new Error(`log: ${context.word(0)}: ${error}`);
      this.spreadDamage();
    }
    reply.pos = mark;
  }

  /** The effect needs a value that is damaged, so what it would have made of its keys is lost as well. */
  private spreadDamage(): void {
    const { client } = this;
    const { context } = this.server;
    const { args, argc } = context;
    const { command } = client.lastCommand as CommandEntry;
    for (const { index, access } of keyPositions(command, args, argc) ?? []) {
      if (command.getKeys !== undefined || !access.includes('RO')) client.db.damage(args[index]);
    }
  }
}
