/** The server: listeners, clients, the event-loop turn, and what all commands share. */
import net from 'node:net';
import { randomBytes } from 'node:crypto';
import { allocatePadded, viewOf } from '../bytes/slice.ts';
import { parseRequest, ProtocolError, RequestReader, type RequestLimits } from '../resp/request-parser.ts';
import type { Database, Store } from '../store/api.ts';
import { Blocking } from './blocking.ts';
import { Client, Gate } from './client.ts';
import { CommandLookup } from './command-entry.ts';
import { EffectBuffer, type CommandLog } from './command-log.ts';
import { commandTable } from './command-table.ts';
import { Context, type EventClass } from './context.ts';
import { Delivery } from './delivery.ts';
import { dispatch } from './dispatch.ts';
import { PubSub } from './pubsub.ts';
import type { Reply } from './reply.ts';
import { Turn } from './turn.ts';
import { Watches } from './transactions.ts';

export interface ServerOptions {
  store: Store;
  /** Absent: nothing is logged, and replies leave at the end of their turn. */
  log?: CommandLog;
}

/** Bytes read from a socket at a time; requests in them are parsed in place. */
const INPUT_MEMORY = 64 * 1024;
/** Milliseconds between two rounds of background work. */
const CRON_MS = 100;
/** Milliseconds of CPU that a slice of background work may take. */
const SLICE_MS = 5;

export class Server {
  readonly store: Store;
  readonly log: CommandLog | null;
  readonly lookup = new CommandLookup(commandTable);
  readonly clients = new Map<number, Client>();
  readonly requestLimits: RequestLimits = { bulkLengthMax: 512 * 1024 * 1024 };
  readonly turn = new Turn();
  /** This turn's effects; null while nothing is logged. */
  effects: EffectBuffer | null = null;
  readonly context: Context;
  readonly blocking: Blocking;
  readonly watches: Watches;
  readonly pubsub: PubSub;
  private readonly delivery = new Delivery();
  /** Gates that are closed to all clients. */
  gates = 0;
  /** Somebody watches keys, tracks reads or listens to keyspace events. */
  observed = false;
  /** Keys changed since the start (rdb_changes_since_last_save). */
  changes = 0;
  readonly errors = new Map<string, number>();

  private readonly listeners: net.Server[] = [];
  private nextClientId = 1;
  private turnScheduled = false;
  /** The client whose output is being written, from `outputFrom` on. */
  private current: Client | null = null;
  private outputFrom = 0;
  private resumed: Client[] = [];
  private cron: NodeJS.Timeout | null = null;
  private waitTimer: NodeJS.Timeout | null = null;
  private failure: string | null = null;

  constructor(options: ServerOptions) {
    this.store = options.store;
    this.log = options.log ?? null;
    if (this.log !== null) {
      this.effects = new EffectBuffer();
      this.log.onSynced = () => this.delivery.release(this.log!.syncedPosition);
    }
    this.blocking = new Blocking(this);
    this.watches = new Watches(this.store.databaseCount);
    this.pubsub = new PubSub(this);
    this.context = new Context(this, new Client(this, 0, null), randomBytes(4).readInt32LE());
    this.store.onExpired = (db, key) => this.context.expired(db, key);
  }

  /** Listens on a TCP port; 0 takes a free one. Resolves to the port. */
  async listen(port: number, host = '127.0.0.1'): Promise<number> {
    const listener = net.createServer({ noDelay: true }, (socket) => this.accept(socket));
    this.listeners.push(listener);
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject);
      listener.listen({ port, host, backlog: 511 }, resolve);
    });
    this.cron ??= setInterval(() => this.background(), CRON_MS);
    const address = listener.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  async close(): Promise<void> {
    if (this.cron !== null) clearInterval(this.cron);
    if (this.waitTimer !== null) clearTimeout(this.waitTimer);
    this.endTurn();
    for (const client of this.clients.values()) client.socket?.destroy();
    await Promise.all(
      this.listeners.map((listener) => new Promise<void>((resolve) => listener.close(() => resolve()))),
    );
  }

  private accept(socket: net.Socket): void {
    const client = new Client(this, this.nextClientId++, socket);
    this.clients.set(client.id, client);
    socket.on('data', (chunk) => this.receive(client, chunk));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.disconnected(client));
  }

  private disconnected(client: Client): void {
    client.closed = true;
    this.clients.delete(client.id);
    this.blocking.end(client);
    this.watches.unwatch(client);
    this.observe();
    this.pubsub.unsubscribeAll(client);
    client.reader.clear();
  }

  /** Brings `observed` up to date. */
  observe(): void {
    this.observed = this.watches.anyone;
  }

  private readonly input = allocatePadded(INPUT_MEMORY);
  private readonly inputView = viewOf(this.input.buffer);

  private receive(client: Client, chunk: Buffer): void {
    this.beginTurn();
    if (client.reader.pending > 0 || client.stopped || chunk.length > INPUT_MEMORY) {
      client.reader.push(chunk, 0, chunk.length);
      this.drain(client);
      return;
    }
    chunk.copy(this.input, 0, 0, chunk.length);
    this.openOutput(client);
    const rest = this.runFrom(client, this.input, this.inputView, 0, chunk.length);
    if (rest < chunk.length) {
      client.reader.push(this.input, rest, chunk.length);
      this.runReader(client);
    }
    this.closeOutput();
  }

  /** Runs whole requests of [pos, end) until one is not plain; returns the position of the rest. */
  private runFrom(client: Client, memory: Buffer, view: DataView, pos: number, end: number): number {
    const context = this.context;
    while (pos < end) {
      const next = parseRequest(context, memory, view, pos, end);
      if (next < 0) break;
      pos = next;
      dispatch(this, context, client);
      if (client.stopped) break;
    }
    return pos;
  }

  private drain(client: Client): void {
    this.openOutput(client);
    this.runReader(client);
    this.closeOutput();
  }

  private runReader(client: Client): void {
    const reader = client.reader;
    const context = this.context;
    try {
      while (!client.stopped) {
        if (reader.between) {
          reader.at = this.runFrom(client, reader.memory, reader.view, reader.at, reader.end);
          if (client.stopped) break;
        }
        if (!reader.next(context)) break;
        if (context.argc > 0) dispatch(this, context, client);
      }
      reader.release();
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      context.reply.error(`ERR Protocol error: ${error.message}`);
      reader.clear();
      this.closeAfterReply(client);
    }
  }

  closeAfterReply(client: Client): void {
    client.closing = true;
    this.closings.push(client);
  }

  private closings: Client[] = [];

  /** What is written to the reply from here on is for `client`. */
  openOutput(client: Client): void {
    if (this.current !== null) this.closeOutput();
    this.current = client;
    this.outputFrom = this.turn.writer.pos;
    this.turn.writer.protocol = client.protocol;
    const context = this.context;
    context.client = client;
    context.db = client.db;
    context.reply = this.turn.writer;
  }

  closeOutput(): void {
    if (this.current !== null) this.turn.add(this.current, this.outputFrom, this.turn.writer.pos);
    this.current = null;
  }

  /** Writes something for a client outside of its own commands. */
  push(client: Client, write: (reply: Reply) => void): void {
    this.beginTurn();
    const { current } = this;
    this.closeOutput();
    const writer = this.turn.writer;
    const from = writer.pos;
    writer.protocol = client.protocol;
    write(writer);
    this.turn.add(client, from, writer.pos);
    if (current !== null) {
      this.current = current;
      this.outputFrom = writer.pos;
      writer.protocol = current.protocol;
    }
  }

  /** Lets waiting commands go on after `client`'s has made keys ready. */
  serveBlocked(client: Client): void {
    this.blocking.serve();
    this.openOutput(client);
  }

  /** The client's input is looked at again at the end of the turn. */
  resume(client: Client): void {
    this.resumed.push(client);
    this.beginTurn();
  }

  beginTurn(): void {
    if (this.turnScheduled) return;
    this.turnScheduled = true;
    this.store.now = Date.now();
    setImmediate(this.endTurnBound);
  }

  private readonly endTurnBound = (): void => this.endTurn();

  private endTurn(): void {
    while (this.resumed.length > 0) {
      const resumed = this.resumed;
      this.resumed = [];
      for (const client of resumed) if (!client.stopped) this.drain(client);
    }
    this.turnScheduled = false;
    let position = 0;
    let reached = 0;
    if (this.effects !== null && this.log !== null) {
      if (this.effects.pos > 0) this.append(this.effects, this.log);
      const failing = this.effects.pos > 0;
      position = failing ? this.log.position + 1 : this.log.position;
      reached = this.log.policy === 'always' ? this.log.syncedPosition : this.log.position;
    }
    const failing = position > (this.log?.position ?? 0);
    this.delivery.deliver(this.turn, position, reached, (client) => !failing || client.sawUnlogged);
    for (const client of this.closings) if (client.heldBytes === 0) client.socket?.end();
    this.closings.length = 0;
    this.scheduleWaits();
  }

  private append(effects: EffectBuffer, log: CommandLog): void {
    log.append(effects.written());
    effects.reset();
  }

  private scheduleWaits(): void {
    if (this.waitTimer !== null) {
      clearTimeout(this.waitTimer);
      this.waitTimer = null;
    }
    const next = this.blocking.nextDeadline();
    if (next === Infinity) return;
    this.waitTimer = setTimeout(
      () => {
        this.beginTurn();
        this.blocking.expire(this.store.now);
      },
      Math.max(1, next - Date.now()),
    );
  }

  private background(): void {
    this.beginTurn();
    this.store.expireDue(SLICE_MS);
    this.store.backgroundSlice(SLICE_MS);
    this.context.publish();
  }

  /** A key's value has changed: whoever watches it is told. */
  keyChanged(db: Database, key: Buffer): void {
    this.watches.changed(db, key.latin1Slice());
  }

  notify(_db: Database, _key: Buffer, _eventClass: EventClass, _event: string): void {}

  discardTransaction(client: Client): void {
    client.transaction = null;
    client.gates &= ~Gate.Multi;
    this.watches.unwatch(client);
    this.observe();
  }

  /** Counts the error reply at [start, end). */
  countError(reply: Buffer, start: number, end: number): void {
    const text = reply.latin1Slice(start + 1, Math.min(end, start + 65));
    const code = /^[^ \r]*/.exec(text)![0];
    this.errors.set(code, (this.errors.get(code) ?? 0) + 1);
  }

  /** Why writes are refused. */
  misconf(): string {
    return `MISCONF ${this.failure ?? this.log?.failure ?? ''}`;
  }

  /** An error that nobody foresaw: the state is in doubt. Returns the reply. */
  fail(error: unknown): string {
    this.failure ??= error instanceof Error ? error.message : String(error);
    this.gates |= Gate.Misconf;
    return this.misconf();
  }

  /** Stands for whoever sent what is replayed. */
  private logClient: Client | null = null;

  /** Runs the commands of a log frame: no replies, nothing is logged, no limits, no expiry by the clock. */
  replay(payload: Buffer): void {
    const { context, effects } = this;
    const client = (this.logClient ??= new Client(this, 0, null));
    const reader = new RequestReader({ bulkLengthMax: Number.MAX_SAFE_INTEGER });
    this.effects = null;
    context.mayBlock = false;
    client.db = this.store.database(0);
    this.openOutput(client);
    const mark = this.turn.writer.pos;
    try {
      reader.push(payload, 0, payload.length);
      while (reader.next(context)) {
        const entry = this.lookup.find(context.args[0]);
        if (entry === undefined) throw new Error(`unknown command in the log: ${context.args[0].latin1()}`);
        dispatch(this, context, client);
        if (context.reply.u8[mark] === 45)
          throw new Error(`log: ${context.args[0].latin1()}: ${context.reply.written(mark).latin1Slice()}`);
        context.reply.pos = mark;
      }
    } finally {
      this.effects = effects;
      context.mayBlock = true;
      this.current = null;
      context.reply.pos = mark;
    }
  }
}
