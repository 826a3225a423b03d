/** The server: clients, the event-loop turn, and what all commands share. */
import type net from 'node:net';
import os from 'node:os';
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { allocatePadded, viewOf, type Slice } from '../bytes/slice.ts';
import { parseRequest, ProtocolError, type RequestLimits } from '../resp/request-parser.ts';
import type { Database, Store } from '../store/api.ts';
import { Blocking } from './blocking.ts';
import { Client, Gate } from './client.ts';
import { CommandClock } from './clock.ts';
import { CommandLookup, Flag, type CommandEntry } from './command-entry.ts';
import { EffectBuffer, type CommandLog } from './command-log.ts';
import { commandTable } from './command-table.ts';
import { Config } from './config.ts';
import { Context, type EventClass } from './context.ts';
import { Delivery } from './delivery.ts';
import { dispatch } from './dispatch.ts';
import { Latency } from './latency.ts';
import { isLocal, Network, PROTECTED_MODE, TOO_MANY_CLIENTS } from './network.ts';
import { eventClasses, outputLimits, type OutputClass, type OutputLimit } from './parameters.ts';
import { Pause } from './pause.ts';
import { PubSub } from './pubsub.ts';
import { Replay } from './replay.ts';
import type { Reply } from './reply.ts';
import { abridge, Slowlog } from './slowlog.ts';
import { readInto } from './static-read.ts';
import { Statistics } from './statistics.ts';
import { loadRequest, type StoredRequest } from './stored-request.ts';
import { Tracking } from './tracking.ts';
import { Turn } from './turn.ts';
import { Watches } from './transactions.ts';

/** Lines of an INFO section. */
export type InfoFields = Record<string, string | number>;

export interface Logger {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

const SILENT: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** How SHUTDOWN was asked for. */
export interface ShutdownRequest {
  /** Skip the last checkpoint; the log still holds everything. */
  nosave: boolean;
  /** Why, for the server log. */
  reason: string;
}

/** What makes a store durable, given to the server once recovery is over. */
export interface Durability {
  log: CommandLog;
  /** INFO sections, by name: engine, tier, log, checkpoint. */
  sections?: Record<string, () => InfoFields>;
  /** Makes a checkpoint; resolves when it is on disk (SAVE, BGSAVE). */
  checkpoint?: () => Promise<void>;
  /** Milliseconds by which a turn that writes is to be held up, so that the disk can follow. */
  writerDelayMs?: () => number;
}

export interface ServerOptions {
  store: Store;
  /** As `attach` with a log alone. */
  log?: CommandLog;
  /** A durable store is attached later: until then clients are told that data is being loaded. */
  loading?: boolean;
  config?: Config;
  logger?: Logger;
  /** Ends the process; called once no more commands are taken. */
  shutdown?: (request: ShutdownRequest) => void;
  /** An error after which the state is in doubt: the process must end, with a non-zero code. */
  onFatal?: (error: unknown) => void;
}

/** Bytes read from a socket at a time; requests in them are parsed in place. */
const INPUT_MEMORY = 64 * 1024;
/** Of the memory tier, kept free for commands that have begun: an eighth, within these bounds. */
const TIER_RESERVE_SHARE = 8;
const TIER_RESERVE_MIN = 1024 * 1024;
const TIER_RESERVE_MAX = 64 * 1024 * 1024;
/** Milliseconds of CPU that a slice of background work may take. */
const SLICE_MS = 5;
/** Between two slices when there is more to do: background work takes at most about a quarter of the time. */
const SLICE_PAUSE_MS = 15;
/** A turn with so much output is sent before the next connection is read: its memory stays in the caches. */
const TURN_OUTPUT_SENT = 128 * 1024;
/** A connection's further requests wait for the next turn once it has written so much in this one. */
const TURN_OUTPUT_MAX = 8 * 1024 * 1024;
/** Commands slower than this are worth finding one by one; below it all are timed apart. */
const TIME_EACH_BELOW_MICROSECONDS = 1000;

export class Server {
  readonly store: Store;
  /** Null until `attach`; then nothing is logged, and replies leave at the end of their turn. */
  log: CommandLog | null = null;
  readonly config: Config;
  readonly logger: Logger;
  /** INFO sections that others fill. */
  sections: Record<string, () => InfoFields> = {};
  durability: Durability | null = null;
  readonly options: ServerOptions;
  readonly runId = randomBytes(20).toString('hex');
  readonly lookup = new CommandLookup(commandTable);
  readonly clients = new Map<number, Client>();
  readonly requestLimits: RequestLimits = { bulkLengthMax: 512 * 1024 * 1024 };
  readonly statistics = new Statistics();
  readonly latency = new Latency();
  readonly slowlog = new Slowlog();
  readonly clock = new CommandClock();
  readonly turn = new Turn();
  /** This turn's effects; null while nothing is logged. */
  effects: EffectBuffer | null = null;
  readonly context: Context;
  readonly blocking: Blocking;
  readonly watches: Watches;
  readonly pubsub: PubSub;
  readonly tracking: Tracking;
  readonly monitors = new Set<Client>();
  readonly network: Network;
  private readonly delivery = new Delivery(this.statistics);
  /** Gates that are closed to all clients. */
  gates = 0;
  /** Somebody watches keys, tracks reads or listens to keyspace events. */
  observed = false;
  /** Every command is timed by itself. */
  timeEach = false;
  /** Keys changed since the last checkpoint (rdb_changes_since_last_save). */
  changes = 0;
  /** Unix seconds of the last checkpoint, for LASTSAVE. */
  lastSave = Math.floor(Date.now() / 1000);
  /** DEBUG SET-ACTIVE-EXPIRE. */
  activeExpire = true;
  readonly pause = new Pause(this);
  /** How far recovery is; null when the data is complete. */
  loading: { startedAt: number; fraction: number } | null = null;

  private nextClientId = 1;
  private turnScheduled = false;
  /** The client whose output is being written, from `outputFrom` on. */
  private current: Client | null = null;
  private outputFrom = 0;
  private resumed: Client[] = [];
  private closings: Client[] = [];
  private audience: 'all' | 'self' | 'others' = 'all';
  private cron: NodeJS.Timeout | null = null;
  private waitTimer: NodeJS.Timeout | null = null;
  private failure: string | null = null;
  private ending = false;
  private password: Buffer | null = null;
  private eventClasses = new Set<string>();
  /** Bytes in the tier above which commands that may need more are refused. */
  private tierFullAt = Infinity;
  private outputLimits: Record<OutputClass, OutputLimit>;
  private cronCount = 0;

  constructor(options: ServerOptions) {
    this.options = options;
    this.store = options.store;
    this.config = options.config ?? new Config();
    this.logger = options.logger ?? SILENT;
    this.store.now = Date.now();
    if (options.loading === true) {
      this.loading = { startedAt: Date.now(), fraction: 0 };
      this.setGate(Gate.Loading, true);
    }
    this.nobody = new Client(this, 0, null);
    this.blocking = new Blocking(this);
    this.watches = new Watches(this.store.databaseCount);
    this.pubsub = new PubSub(this);
    this.tracking = new Tracking(this);
    this.network = new Network(this.config, (socket, unix) => this.accept(socket, unix));
    this.replayer = new Replay(this);
    this.context = new Context(this, this.nobody, randomBytes(4).readInt32LE());
    this.store.onExpired = (db, key) => {
      this.statistics.expiredKeys++;
      this.context.expired(db, key);
    };
    this.outputLimits = outputLimits(this.config.text('client-output-buffer-limit'));
    this.delivery.mayTake = (client, bytes) => this.mayTake(client, bytes);
    this.delivery.onOutput = (client) => this.checkOutput(client);
    this.delivery.onDone = (client) => this.finish(client);
    this.followConfig();
    if (options.log !== undefined) this.attach({ log: options.log });
  }

  /** From here on effects are logged, and replies wait for the log. */
  attach(durability: Durability): void {
    const { log } = durability;
    this.durability = durability;
    this.log = log;
    this.effects = new EffectBuffer();
    log.policy = this.config.text('appendfsync') as CommandLog['policy'];
    log.onSynced = () => this.delivery.release(log.syncedPosition);
    this.sections = durability.sections ?? {};
    this.loading = null;
    this.applyTierLimit();
    this.setGate(Gate.Loading, false);
  }

  /** What CONFIG SET changes at once. */
  private followConfig(): void {
    const { config } = this;
    config.onChange('requirepass', () => {
      const text = config.text('requirepass');
      this.password = text === '' ? null : digest(Buffer.from(text, 'latin1'));
    });
    config.onChange('notify-keyspace-events', () => {
      this.eventClasses = eventClasses(config.text('notify-keyspace-events'));
      this.observe();
    });
    config.onChange('client-output-buffer-limit', () => {
      this.outputLimits = outputLimits(config.text('client-output-buffer-limit'));
    });
    config.onChange('proto-max-bulk-len', () => {
      this.requestLimits.bulkLengthMax = config.number('proto-max-bulk-len');
    });
    config.onChange('slowlog-log-slower-than', () => this.chooseTiming());
    config.onChange('slowlog-max-len', () => this.slowlog.trim(config.number('slowlog-max-len')));
    config.onChange('latency-monitor-threshold', () => {
      this.latency.threshold = config.number('latency-monitor-threshold');
      this.chooseTiming();
    });
    config.onChange('latency-tracking', () => {
      this.clock.histograms = config.flag('latency-tracking');
    });
    config.onChange('tcp-keepalive', () => {
      for (const client of this.clients.values()) this.keepAlive(client);
    });
    config.onChange('hz', () => {
      if (this.cron === null) return;
      clearInterval(this.cron);
      this.cron = setInterval(() => this.background(), 1000 / this.hz);
    });
    config.onChange('appendfsync', () => {
      if (this.log !== null) this.log.policy = config.text('appendfsync') as CommandLog['policy'];
    });
    config.onChange('tier-memory', () => this.applyTierLimit());
  }

  /** Bytes that the tier may hold, as configured. */
  get tierLimit(): number {
    return this.config.number('tier-memory') || Math.floor(os.totalmem() / 2);
  }

  /**
   * What was acknowledged must come back whatever the limit is: it holds once the data is complete, and
   * leaves data that exceed it room for the commands that make them less.
   */
  private applyTierLimit(): void {
    const { memory } = this.store;
    const limit = this.loading === null ? this.tierLimit : Infinity;
    // Commands are refused early, so that one that was let in need not stop half-way.
    const share = Math.min(TIER_RESERVE_MAX, Math.max(TIER_RESERVE_MIN, limit / TIER_RESERVE_SHARE));
    const reserve = Math.min(share, limit / 2);
    this.tierFullAt = limit - reserve;
    memory.limit = Math.max(limit, memory.used + reserve);
  }

  private chooseTiming(): void {
    const slow = this.config.number('slowlog-log-slower-than');
    this.timeEach = this.latency.threshold > 0 || (slow >= 0 && slow < TIME_EACH_BELOW_MICROSECONDS);
  }

  private get hz(): number {
    return Math.min(500, Math.max(1, this.config.number('hz')));
  }

  /** Listens where the configuration says. */
  async listen(): Promise<void> {
    await this.network.open();
    this.startBackground();
  }

  /** Listens on a free port of the loopback interface. Resolves to the port. */
  async listenOnFreePort(): Promise<number> {
    const port = await this.network.openFreePort();
    this.startBackground();
    return port;
  }

  private startBackground(): void {
    this.cron ??= setInterval(() => this.background(), 1000 / this.hz);
  }

  /** Takes no more connections and no more writes, and does nothing in the background. */
  stop(): void {
    if (this.cron !== null) clearInterval(this.cron);
    if (this.waitTimer !== null) clearTimeout(this.waitTimer);
    if (this.moreSlices !== null) clearTimeout(this.moreSlices);
    this.moreSlices = null;
    this.cron = null;
    this.waitTimer = null;
    this.network.close();
    this.endTurn();
    this.ending = true;
    this.setGate(Gate.Misconf, true);
  }

  /** Stops, sends what is due and closes all connections. The store and the log stay open. */
  close(): void {
    if (!this.ending) this.stop();
    this.endTurn();
    for (const client of this.clients.values()) client.socket?.destroySoon();
  }

  // ---- Connections

  private accept(accepted: net.Socket, unix: string | null): void {
    const socket = readInto(accepted, this.input, (length) => this.receive(client, length));
    const client = new Client(this, this.nextClientId, socket, unix !== null);
    const local = unix !== null || isLocal(socket);
    const refused =
      this.clients.size >= this.config.number('maxclients')
        ? TOO_MANY_CLIENTS
        : this.password === null && this.config.flag('protected-mode') && !local
          ? PROTECTED_MODE
          : null;
    socket.on('error', () => socket.destroy());
    if (refused !== null) {
      this.statistics.connectionsRejected++;
      client.closing = true;
      socket.end(refused, () => socket.destroy());
      return;
    }
    this.statistics.connectionsReceived++;
    this.nextClientId++;
    client.local = local;
    client.address = unix !== null ? `${unix}:0` : endpoint(socket.remoteAddress, socket.remotePort);
    client.localAddress = unix !== null ? `${unix}:0` : endpoint(socket.localAddress, socket.localPort);
    client.setGate(Gate.Auth, this.password !== null);
    client.reader.authenticated = this.password === null;
    this.clients.set(client.id, client);
    this.keepAlive(client);
    socket.on('end', () => this.peerEnded(client));
    socket.on('drain', () => {
      client.overSoftLimitSince = 0;
    });
    socket.on('close', () => this.disconnected(client));
  }

  private keepAlive(client: Client): void {
    const seconds = this.config.number('tcp-keepalive');
    if (!client.unix) client.socket?.setKeepAlive(seconds > 0, seconds * 1000);
  }

  /** The peer sends no more. A client that waits is gone; one that has replies coming gets them. */
  private peerEnded(client: Client): void {
    if (client.wait !== null) client.socket?.destroy();
    else this.closeAfterReply(client);
  }

  private disconnected(client: Client): void {
    if (client.closed) return;
    client.closed = true;
    this.clients.delete(client.id);
    this.monitors.delete(client);
    this.pause.postponed.delete(client);
    if (this.monitors.size === 0) this.setGate(Gate.Monitored, false);
    this.blocking.end(client);
    this.watches.unwatch(client);
    this.tracking.disable(client);
    this.pubsub.forget(client);
    this.observe();
    client.transaction = null;
    client.reader.clear();
  }

  /** Closes the connection once it has been sent what is due. */
  closeAfterReply(client: Client): void {
    if (client.closing) return;
    client.closing = true;
    this.closings.push(client);
    this.beginTurn();
  }

  /** Closes the connection at once. */
  kill(client: Client): void {
    client.socket?.destroy();
    this.disconnected(client);
  }

  /** All that was due is sent: the client is gone for everybody else, its socket follows. */
  private finish(client: Client): void {
    const { socket } = client;
    socket?.end(() => socket.destroy());
    this.disconnected(client);
  }

  authenticate(client: Client, password: Buffer): boolean {
    const ok = this.password === null || timingSafeEqual(digest(password), this.password);
    if (ok) {
      client.setGate(Gate.Auth, false);
      client.reader.authenticated = true;
    }
    return ok;
  }

  /** The log could not be written in the last turn. */
  get logIsFailing(): boolean {
    return this.failing;
  }

  /** The default user's password as ACL LIST shows it. */
  get passwordRule(): string {
    return this.password === null ? 'nopass' : `#${this.password.toString('hex')}`;
  }

  get hasPassword(): boolean {
    return this.password !== null;
  }

  /** What a connection is by its output limits. */
  outputClass(client: Client): OutputClass {
    return client.monitor ? 'slave' : client.subscribed ? 'pubsub' : 'normal';
  }

  private checkOutput(client: Client): void {
    const { hard, soft, softSeconds } = this.outputLimits[this.outputClass(client)];
    const waiting = client.outputBytes;
    let tooMuch = hard > 0 && waiting > hard;
    if (soft > 0 && waiting > soft) {
      if (client.overSoftLimitSince === 0) client.overSoftLimitSince = this.store.now;
      else if (this.store.now - client.overSoftLimitSince > softSeconds * 1000) tooMuch = true;
    } else {
      client.overSoftLimitSince = 0;
    }
    if (tooMuch) this.killForOutput(client, waiting);
  }

  /** A reply above the hard limit is refused as in Redis, even if the kernel had room for it. */
  private mayTake(client: Client, bytes: number): boolean {
    const { hard } = this.outputLimits[this.outputClass(client)];
    if (hard === 0 || client.outputBytes + bytes <= hard) return true;
    this.killForOutput(client, client.outputBytes + bytes);
    return false;
  }

  private killForOutput(client: Client, waiting: number): void {
    this.statistics.clientsClosedByOutputLimit++;
    this.logger.warn(
      `client ${client.id} (${client.address}) closed: ${waiting} bytes of output wait for it`,
    );
    this.kill(client);
  }

  // ---- Input

  private readonly input = allocatePadded(INPUT_MEMORY);
  private readonly inputView = viewOf(this.input.buffer);

  /** `length` bytes of the client's are in `input`. */
  private receive(client: Client, length: number): void {
    this.beginTurn();
    this.statistics.inputBytes += length;
    client.lastInteraction = this.store.now;
    if (client.closing) return;
    if (client.reader.pending > 0 || client.stopped) {
      client.reader.push(this.input, 0, length);
      if (client.stopped) this.checkQueryBuffer(client);
      else this.drain(client);
      return;
    }
    this.openOutput(client);
    this.clock.start();
    const rest = this.runFrom(client, this.input, this.inputView, 0, length);
    if (rest < length && !client.closing) {
      client.reader.push(this.input, rest, length);
      this.runReader(client);
    }
    if (this.clock.pending) this.clock.settle();
    this.closeOutput();
    if (this.turn.writer.pos > TURN_OUTPUT_SENT) this.sendTurn();
  }

  /** Runs whole requests of [pos, end) until one is not plain; returns the position of the rest. */
  private runFrom(client: Client, memory: Buffer, view: DataView, pos: number, end: number): number {
    const context = this.context;
    if (!client.reader.authenticated) return pos;
    while (pos < end) {
      const next = parseRequest(context, memory, view, pos, end);
      if (next < 0) break;
      pos = next;
      dispatch(this, context, client);
      if (client.stopped || this.overfull(client)) break;
    }
    return pos;
  }

  /** The turn's output has grown so long that the rest of the client's requests wait for the next turn. */
  private overfull(client: Client): boolean {
    if (this.turn.writer.pos - this.outputFrom < TURN_OUTPUT_MAX) return false;
    if (!this.resumed.includes(client)) this.resume(client);
    return true;
  }

  /** Runs what waits in the client's reader. */
  private drain(client: Client): void {
    this.openOutput(client);
    this.clock.start();
    this.runReader(client);
    if (this.clock.pending) this.clock.settle();
    this.closeOutput();
  }

  private runReader(client: Client): void {
    const reader = client.reader;
    const context = this.context;
    try {
      while (!client.stopped && !this.overfull(client)) {
        if (reader.between) {
          reader.at = this.runFrom(client, reader.memory, reader.view, reader.at, reader.end);
          if (client.stopped) break;
        }
        if (!reader.next(context)) break;
        if (context.argc > 0) dispatch(this, context, client);
      }
      if (client.closing) reader.clear();
      else reader.release();
      this.checkQueryBuffer(client);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      const mark = context.reply.pos;
      context.reply.error(`ERR Protocol error: ${error.message}`);
      this.statistics.countError(context.reply.u8, mark, context.reply.pos);
      reader.clear();
      this.closeAfterReply(client);
    }
  }

  private checkQueryBuffer(client: Client): void {
    if (client.reader.pending <= this.config.number('client-query-buffer-limit')) return;
    this.statistics.clientsClosedByQueryLimit++;
    this.logger.warn(`client ${client.id} (${client.address}) closed: its request is too long`);
    this.kill(client);
  }

  /** A browser that was led to speak to us: the connection is closed. True when it was one. */
  refuseHttp(context: Context, client: Client): boolean {
    const name = context.word(0);
    if (name !== 'post' && name !== 'host:') return false;
    this.logger.warn(`client ${client.id} (${client.address}) sent an HTTP request; connection closed`);
    this.kill(client);
    return true;
  }

  // ---- Output

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
    this.pushToAll([client], write);
  }

  /**
   * Writes the same to several clients, once for each protocol version. What the client gets whose
   * command runs stands before the command's reply.
   */
  pushToAll(clients: Iterable<Client>, write: (reply: Reply) => void): void {
    this.beginTurn();
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
        turn.add(current!, this.outputFrom, writer.pos);
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
      this.outputFrom = writer.pos;
      writer.protocol = current.protocol;
    }
  }

  private insertBeforeReply(write: (reply: Reply) => void): void {
    const { writer } = this.turn;
    const end = writer.pos;
    write(writer);
    const inserted = Buffer.from(writer.u8.subarray(end, writer.pos));
    const at = Math.max(this.context.replyFrom, this.outputFrom);
    writer.u8.copyWithin(at + inserted.length, at, end);
    inserted.copy(writer.u8, at);
    this.context.replyFrom = at + inserted.length;
  }

  /** Hands out what `client`'s command has staged, and lets waiting commands go on. */
  publish(client: Client): void {
    const { context } = this;
    const staged = context.takeStaged();
    this.audience = 'self';
    if (client.subscribed) context.announce(staged);
    this.audience = 'others';
    context.announce(staged);
    this.audience = 'all';
    this.tracking.flushPending(client);
    context.signalReady();
    if (this.blocking.pending) {
      this.blocking.serve();
      this.openOutput(client);
    }
  }

  // ---- The turn

  /** The client's input is looked at again at the end of the turn. */
  resume(client: Client): void {
    this.resumed.push(client);
    this.beginTurn();
  }

  beginTurn(): void {
    if (this.turnScheduled) return;
    this.turnScheduled = true;
    this.store.now = Date.now();
    this.setGate(Gate.Full, this.tierIsFull);
    setImmediate(this.endTurnBound);
  }

  private get tierIsFull(): boolean {
    return this.store.memory.used > this.tierFullAt;
  }

  /** After a command that may take memory: the next one of the turn must not begin without. */
  closeFullTier(): void {
    if (this.tierIsFull) this.setGate(Gate.Full, true);
  }

  setGate(gate: number, closed: boolean): void {
    if (closed) this.gates |= gate;
    else this.gates &= ~gate;
  }

  private readonly endTurnBound = (): void => this.endTurn();

  private endTurn(): void {
    const resumed = this.resumed;
    if (resumed.length > 0) {
      this.resumed = [];
      for (const client of resumed) {
        client.unblocked = false;
        if (client.postponed !== null && !client.closed) this.runPostponed(client, client.postponed);
        if (!client.stopped) this.drain(client);
      }
    }
    this.tracking.flushBroadcasts();
    this.turnScheduled = false;
    if (this.resumed.length > 0) this.beginTurn();
    this.sendTurn();
    for (const client of this.closings) if (client.heldBytes === 0) this.finish(client);
    this.closings.length = 0;
    if (this.blocking.anyone || this.waitTimer !== null) this.scheduleWaits();
  }

  /** The log gets what has been done so far, then the connections what they are to be sent. */
  private sendTurn(): void {
    const { log, effects } = this;
    if (effects !== null && log !== null) {
      if (effects.pos > 0) this.appendEffects(effects, log);
      const failing = effects.pos > 0;
      // What is not in the log yet will end beyond where the log ends now.
      const position = failing ? log.position + 1 : log.position;
      const reached = log.policy === 'always' ? log.syncedPosition : log.position;
      this.delivery.deliver(this.turn, position, reached, failing && this.failing ? sawUnlogged : everybody);
      this.failing = failing;
    } else {
      this.delivery.deliver(this.turn, 0, 0, everybody);
    }
  }

  /** The log could not be written in the last turn. */
  private failing = false;

  /** Brings all effects so far into the log; false when that is not possible now. */
  flushEffects(): boolean {
    const { effects, log } = this;
    if (effects === null || log === null) return true;
    if (effects.pos > 0) this.appendEffects(effects, log);
    return effects.pos === 0;
  }

  /** Appends the turn's effects as one frame. When that fails they stay, and are tried again. */
  private appendEffects(effects: EffectBuffer, log: CommandLog): void {
    try {
      log.append(effects.written());
    } catch (error) {
      if (!this.failing)
        this.logger.error(`the log cannot be written, writes are refused until it can: ${describe(error)}`);
      this.appendFailure = describe(error);
      this.setGate(Gate.Misconf, true);
      return;
    }
    effects.reset();
    const delay = this.durability?.writerDelayMs?.() ?? 0;
    if (delay >= 1) this.pause.throttle(delay);
    if (this.failing) {
      this.logger.warn('the log can be written again');
      this.appendFailure = null;
      if (this.failure === null) this.setGate(Gate.Misconf, false);
      if (log.policy !== 'always') this.delivery.release(log.position);
    }
  }

  private appendFailure: string | null = null;

  private scheduleWaits(): void {
    if (this.waitTimer !== null) {
      clearTimeout(this.waitTimer);
      this.waitTimer = null;
    }
    const next = this.blocking.nextDeadline();
    if (next === Infinity) return;
    const delay = Math.min(Math.max(1, next - Date.now()), 0x7fffffff);
    this.waitTimer = setTimeout(() => {
      this.waitTimer = null;
      this.beginTurn();
      this.blocking.expire(this.store.now);
    }, delay);
  }

  // ---- Background

  private background(): void {
    this.beginTurn();
    const { store, statistics } = this;
    const now = store.now;
    this.cronCount++;
    this.pause.expire(now);
    if (this.loading === null) this.backgroundSlices();
    statistics.commandRate.sample(this.commandsProcessed());
    statistics.inputRate.sample(statistics.inputBytes);
    statistics.outputRate.sample(statistics.outputBytes);
    statistics.peakMemory = Math.max(statistics.peakMemory, store.memory.used);
    if (this.cronCount % Math.max(1, Math.round(this.hz)) === 0) this.visitClients(now);
  }

  /** Expires what is due and frees what is dropped; as long as there is more of it, again after a pause. */
  private backgroundSlices(): void {
    const { store, latency, context } = this;
    const { now } = store;
    let more = false;
    if (this.activeExpire && !this.pause.active) {
      const began = performance.now();
      latency.slice('expire-cycle', now, () => store.expireDue(SLICE_MS));
      more = performance.now() - began >= SLICE_MS;
      context.client = this.nobody;
      if (context.staging) context.announce(context.takeStaged());
    }
    more = latency.slice('background', now, () => store.backgroundSlice(SLICE_MS)) || more;
    if (!more || this.moreSlices !== null) return;
    this.moreSlices = setTimeout(() => {
      this.moreSlices = null;
      this.beginTurn();
      this.backgroundSlices();
    }, SLICE_PAUSE_MS);
  }

  private moreSlices: NodeJS.Timeout | null = null;

  /** On whose behalf background work runs. */
  private readonly nobody: Client;

  /** Once a second: idle clients are closed, soft limits watched. */
  private visitClients(now: number): void {
    const timeout = this.config.number('timeout') * 1000;
    for (const client of this.clients.values()) {
      if (client.socket !== null && client.outputBytes > 0) this.checkOutput(client);
      const exempt = client.wait !== null || client.subscribed || client.monitor;
      if (timeout > 0 && !exempt && now - client.lastInteraction > timeout) this.kill(client);
    }
  }

  commandsProcessed(): number {
    let calls = 0;
    for (const entry of this.lookup.all()) calls += entry.calls;
    return calls;
  }

  /** Runs nothing more for the client until `proceed`. */
  suspend(client: Client): void {
    client.suspended = true;
  }

  /** Sends the reply that a suspended client waits for, and goes on with its requests. */
  proceed(client: Client, write: (reply: Reply) => void): void {
    if (!client.suspended || client.closed) return;
    client.suspended = false;
    this.push(client, write);
    this.resume(client);
  }

  /** A checkpoint is on disk. */
  saved(): void {
    this.changes = 0;
    this.lastSave = Math.floor(Date.now() / 1000);
  }

  private runPostponed(client: Client, request: StoredRequest): void {
    client.postponed = null;
    this.openOutput(client);
    this.clock.start();
    loadRequest(this.context, request);
    dispatch(this, this.context, client);
    if (this.clock.pending) this.clock.settle();
    this.closeOutput();
  }

  // ---- Keys

  /** Brings `observed` up to date. */
  observe(): void {
    this.observed = this.watches.anyone || this.tracking.anyone || this.eventClasses.size > 0;
  }

  /** A key's value has changed: whoever watches it is told. */
  keyChanged(db: Database, key: Buffer): void {
    const name = key.latin1Slice();
    this.watches.changed(db, name);
    if (this.tracking.anyone) this.tracking.changed(db, name);
  }

  /** Publishes a keyspace event, if its class is listened to. */
  notify(db: Database, key: Buffer, eventClass: EventClass, event: string): void {
    const classes = this.eventClasses;
    if (!classes.has(eventClass)) return;
    if (classes.has('K'))
      this.pubsub.publish(
        Buffer.concat([Buffer.from(`__keyspace@${db.index}__:`), key]),
        Buffer.from(event),
        false,
      );
    if (classes.has('E')) this.pubsub.publish(Buffer.from(`__keyevent@${db.index}__:${event}`), key, false);
  }

  discardTransaction(client: Client): void {
    client.transaction = null;
    client.setGate(Gate.Multi, false);
    this.watches.unwatch(client);
    this.observe();
  }

  // ---- Time

  /** Runs a command that is timed by itself; a slow one is recorded. */
  runTimed(context: Context, client: Client, entry: CommandEntry): void {
    const { clock } = this;
    if (clock.pending) clock.settle();
    context.run(entry);
    clock.ran(entry);
    const milliseconds = clock.settle();
    const slowerThan = this.config.number('slowlog-log-slower-than');
    if (
      slowerThan >= 0 &&
      milliseconds * 1000 >= slowerThan &&
      (entry.flags & Flag.SkipSlowlog) === 0 &&
      context.blocked === null
    ) {
      const args = abridge(context.args, context.argc).map((shown, i) =>
        this.isSecret(entry, context.args, i) ? Buffer.from('(redacted)') : shown,
      );
      this.slowlog.add(
        client,
        args,
        Math.round(milliseconds * 1000),
        this.store.now,
        this.config.number('slowlog-max-len'),
      );
    }
    if (this.latency.threshold > 0)
      this.latency.add(
        (entry.flags & Flag.Fast) !== 0 ? 'fast-command' : 'command',
        milliseconds,
        this.store.now,
      );
  }

  /** args[i] must not be shown to others. */
  isSecret(entry: CommandEntry, args: readonly Slice[], i: number): boolean {
    return entry.command.secrets?.(args, this.context.argc).includes(i) === true;
  }

  // ---- Trouble

  /** Why writes are refused. */
  misconf(): string {
    if (this.failure !== null) return `MISCONF The server stops after an error: ${this.failure}`;
    if (this.ending) return 'MISCONF The server is ending';
    return `MISCONF Errors writing to the log: ${this.appendFailure ?? this.log?.failure ?? 'unknown'}`;
  }

  /** The state is in doubt: no more writes, and the process is to end. Returns the error reply. */
  fail(error: unknown): string {
    this.statistics.unexpectedErrors++;
    if (this.failure === null) {
      this.failure = describe(error);
      this.setGate(Gate.Misconf, true);
      this.logger.error(`unexpected error: ${error instanceof Error ? error.stack : String(error)}`);
      this.options.onFatal?.(error);
    }
    return this.misconf();
  }

  // ---- Recovery

  private readonly replayer: Replay;

  /** Runs the commands of a log frame again. Throws when one of them fails. */
  replay(payload: Slice): void {
    this.replayer.run(payload);
  }
}

const everybody = (): boolean => true;
const sawUnlogged = (client: Client): boolean => {
  const saw = client.sawUnlogged;
  client.sawUnlogged = false;
  return saw;
};

function endpoint(address: string | undefined, port: number | undefined): string {
  const host = (address ?? '?').replace(/^::ffff:/, '');
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function digest(password: Buffer): Buffer {
  return createHash('sha256').update(password).digest();
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
