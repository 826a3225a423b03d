/** The server: its parts, and what all commands share. */
import { randomBytes } from 'node:crypto';
import type { Slice } from '../bytes/slice.ts';
import type { RequestLimits } from '../resp/request-parser.ts';
import type { Store } from '../store/api.ts';
import type { Imports } from '../store/dump/imports.ts';
import { Blocking } from './blocking.ts';
import { Client, Gate } from './client.ts';
import { CommandClock } from './clock.ts';
import { CommandLookup, Flag, type CommandEntry } from './command-entry.ts';
import type { CommandLog, EffectBuffer } from './command-log.ts';
import { commandTable } from './command-table.ts';
import { Config } from './config.ts';
import { Connections } from './connections.ts';
import { Context } from './context.ts';
import { Cron } from './cron.ts';
import { describe, DUMP_FAILED } from './errors.ts';
import { Faults } from './faults.ts';
import { Importing } from './importing.ts';
import { Input } from './input.ts';
import { Keyspace } from './keyspace.ts';
import { Latency } from './latency.ts';
import { LogWriter } from './log-writer.ts';
import { Network } from './network.ts';
import { Output } from './output.ts';
import { OutputLimits } from './output-limits.ts';
import { Password } from './password.ts';
import { Pause } from './pause.ts';
import { Persistence, type DumpMaker } from './persistence.ts';
import { PubSub } from './pubsub.ts';
import { Replay } from './replay.ts';
import type { Reply } from './reply.ts';
import { abridge, Slowlog } from './slowlog.ts';
import { Statistics } from './statistics.ts';
import { TierLimit } from './tier-limit.ts';
import { Tracking } from './tracking.ts';
import { Turns } from './turns.ts';
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
  /** Makes a checkpoint; resolves when it is on disk. */
  checkpoint?: () => Promise<void>;
  /** Lets no checkpoint begin until what it returns is called. */
  holdCheckpoints?: () => () => void;
  dumps?: DumpMaker;
  /** Milliseconds by which a turn that writes is to be held up, so that the disk can follow. */
  writerDelayMs?: () => number;
}

export interface ServerOptions {
  store: Store;
  /** As `attach` with a log alone. */
  log?: CommandLog;
  /** Rows of the store leave memory when it is full, and are fetched again. */
  evicts?: boolean;
  /** A durable store is attached later: until then clients are told that data is being loaded. */
  loading?: boolean;
  config?: Config;
  logger?: Logger;
  /** Where imported files are kept until a checkpoint holds them. */
  imports?: Imports;
  /** Ends the process; called once no more commands are taken. */
  shutdown?: (request: ShutdownRequest) => void;
  /** An error after which the state is in doubt: the process must end, with a non-zero code. */
  onFatal?: (error: unknown) => void;
}

/** Commands slower than this are worth finding one by one; below it all are timed apart. */
const TIME_EACH_BELOW_MICROSECONDS = 1000;

export class Server {
  readonly options: ServerOptions;
  readonly store: Store;
  readonly config: Config;
  readonly logger: Logger;
  readonly runId = randomBytes(20).toString('hex');
  readonly lookup = new CommandLookup(commandTable);
  readonly clients = new Map<number, Client>();
  readonly monitors = new Set<Client>();
  readonly requestLimits: RequestLimits = { bulkLengthMax: 512 * 1024 * 1024 };
  readonly statistics = new Statistics();
  readonly latency = new Latency();
  readonly slowlog = new Slowlog();
  readonly clock = new CommandClock();
  readonly input = new Input(this);
  readonly output = new Output(this);
  readonly turns = new Turns(this);
  readonly faults = new Faults(this);
  readonly pause = new Pause(this);
  readonly context: Context;
  readonly password: Password;
  readonly network: Network;
  readonly logWriter: LogWriter;
  readonly outputLimits: OutputLimits;
  readonly connections: Connections;
  readonly tierLimit: TierLimit;
  readonly watches: Watches;
  readonly tracking: Tracking;
  readonly pubsub: PubSub;
  readonly keyspace: Keyspace;
  readonly blocking: Blocking;
  readonly cron: Cron;
  readonly persistence: Persistence;
  readonly importing: Importing;
  private readonly replayer: Replay;

  /** Null until `attach`; then nothing is logged, and replies leave at the end of their turn. */
  log: CommandLog | null = null;
  durability: Durability | null = null;
  /** This turn's effects; null while nothing is logged. */
  effects: EffectBuffer | null = null;
  /** INFO sections that others fill. */
  sections: Record<string, () => InfoFields> = {};
  /** Gates that are closed to all clients. */
  gates = 0;
  /** Somebody watches keys, tracks reads or listens to keyspace events. */
  observed = false;
  /** Every command is timed by itself. */
  timeEach = false;
  /** Keys changed since the last dump (rdb_changes_since_last_save). */
  changes = 0;
  /** How far recovery is; null when the data is complete. */
  loading: { startedAt: number; fraction: number } | null = null;

  private failure: string | null = null;
  ending = false;

  constructor(options: ServerOptions) {
    this.options = options;
    this.store = options.store;
    this.config = options.config ?? new Config();
    this.logger = options.logger ?? SILENT;
    this.store.now = Date.now();
    if (options.loading === true) this.beginLoading();
    const nobody = new Client(this, 0, null);
    this.password = new Password(this.config);
    this.logWriter = new LogWriter(this);
    this.outputLimits = new OutputLimits(this);
    this.connections = new Connections(this);
    this.network = new Network(this.config, (socket, unix) => this.connections.accept(socket, unix));
    this.tierLimit = new TierLimit(this);
    this.blocking = new Blocking(this);
    this.watches = new Watches(this.store.databaseCount);
    this.pubsub = new PubSub(this);
    this.tracking = new Tracking(this);
    this.keyspace = new Keyspace(this);
    this.replayer = new Replay(this);
    this.context = new Context(this, nobody, randomBytes(4).readInt32LE());
    this.cron = new Cron(this, nobody);
    this.persistence = new Persistence(this);
    this.importing = new Importing(this);
    this.store.onExpired = (db, key) => {
      this.statistics.expiredKeys++;
      this.context.expired(db, key);
    };
    this.followConfig();
    if (options.log !== undefined) this.attach({ log: options.log });
  }

  /** What CONFIG SET changes at once. */
  private followConfig(): void {
    const { config } = this;
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
    config.onChange('save', () => this.checkWritable());
    config.onChange('stop-writes-on-bgsave-error', () => this.checkWritable());
    config.onChange('appendfsync', () => this.logWriter.followPolicy());
  }

  private chooseTiming(): void {
    const slow = this.config.number('slowlog-log-slower-than');
    this.timeEach = this.latency.threshold > 0 || (slow >= 0 && slow < TIME_EACH_BELOW_MICROSECONDS);
  }

  // ---- Life

  /** Until `endLoading` clients are told that data is being loaded. */
  beginLoading(): void {
    this.loading = { startedAt: Date.now(), fraction: 0 };
    this.setGate(Gate.Loading, true);
  }

  endLoading(): void {
    this.loading = null;
    this.setGate(Gate.Loading, false);
  }

  /** From here on effects are logged, and replies wait for the log. */
  attach(durability: Durability): void {
    this.durability = durability;
    this.log = durability.log;
    this.logWriter.attach(durability.log);
    this.sections = durability.sections ?? {};
    this.endLoading();
    this.tierLimit.apply();
  }

  /** Lets clients in, who may have connected since `network.open`. */
  admit(): void {
    this.network.admit();
    this.cron.start();
  }

  /** Listens on a free port of the loopback interface. Resolves to the port. */
  async listenOnFreePort(): Promise<number> {
    const port = await this.network.openFreePort();
    this.admit();
    return port;
  }

  /** Takes no more connections and no more writes, and does nothing in the background. */
  stop(): void {
    this.cron.stop();
    this.turns.stop();
    this.network.close();
    this.turns.end();
    this.ending = true;
    this.checkWritable();
  }

  /** Stops, sends what is due and closes all connections. The store and the log stay open. */
  close(): void {
    if (!this.ending) this.stop();
    this.turns.end();
    for (const client of this.clients.values()) client.socket?.destroySoon();
  }

  /**
   * Runs the commands of a log frame again. Throws when one of them fails. A promise when one of them met
   * what is not in memory; `payload` must stay until it resolves. `following` are frames that come next.
   */
  replay(payload: Slice, following: Iterable<Slice> = []): Promise<void> | undefined {
    return this.replayer.run(payload, following);
  }

  // ---- Clients

  setGate(gate: number, closed: boolean): void {
    if (closed) this.gates |= gate;
    else this.gates &= ~gate;
  }

  authenticate(client: Client, password: Buffer): boolean {
    const ok = this.password.matches(password);
    if (ok) {
      client.setGate(Gate.Auth, false);
      client.reader.authenticated = true;
    }
    return ok;
  }

  /** Runs nothing more for the client until `proceed`. */
  suspend(client: Client): void {
    client.suspended = true;
  }

  /** Sends the reply that a suspended client waits for, and goes on with its requests. */
  proceed(client: Client, write: (reply: Reply) => void): void {
    if (!client.suspended || client.closed) return;
    client.suspended = false;
    this.output.answer(client, write);
    this.turns.resume(client);
  }

  discardTransaction(client: Client): void {
    client.transaction = null;
    client.setGate(Gate.Multi, false);
    this.watches.unwatch(client);
    this.keyspace.observe();
  }

  // ---- Commands

  commandsProcessed(): number {
    let calls = 0;
    for (const entry of this.lookup.all()) calls += entry.calls;
    return calls;
  }

  /** Runs a command that is timed by itself; a slow one is recorded. False as `Context.run`. */
  runTimed(context: Context, client: Client, entry: CommandEntry): boolean {
    const { clock } = this;
    if (clock.pending) clock.settle();
    if (!context.run(entry)) return false;
    if (!context.nested) clock.ran(entry);
    const milliseconds = context.nested ? clock.lap(entry) : clock.settle();
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
      const { now } = this.store;
      context.settled(() =>
        this.slowlog.add(
          client,
          args,
          Math.round(milliseconds * 1000),
          now,
          this.config.number('slowlog-max-len'),
        ),
      );
    }
    if (this.latency.threshold > 0)
      this.latency.add(
        (entry.flags & Flag.Fast) !== 0 ? 'fast-command' : 'command',
        milliseconds,
        this.store.now,
      );
    return true;
  }

  /** args[i] must not be shown to others. */
  isSecret(entry: CommandEntry, args: readonly Slice[], i: number): boolean {
    return entry.command.secrets?.(args, this.context.argc).includes(i) === true;
  }

  // ---- Trouble

  /** Closes or opens the gate before commands that write. */
  checkWritable(): void {
    const { failure, ending, logWriter, persistence } = this;
    const closed = failure !== null || ending || logWriter.failure !== null || persistence.stopsWrites;
    this.setGate(Gate.Misconf, closed);
  }

  /** Why writes are refused. */
  misconf(): string {
    if (this.failure !== null) return `MISCONF The server stops after an error: ${this.failure}`;
    if (this.ending) return 'MISCONF The server is ending';
    if (this.logWriter.failure === null && this.persistence.stopsWrites) return DUMP_FAILED;
    return `MISCONF Errors writing to the log: ${this.logWriter.failure ?? this.log?.failure ?? 'unknown'}`;
  }

  /** The state is in doubt: no more writes, and the process is to end. Returns the error reply. */
  fail(error: unknown): string {
    this.statistics.unexpectedErrors++;
    if (this.failure === null) {
      this.failure = describe(error);
      this.checkWritable();
      this.logger.error(`unexpected error: ${error instanceof Error ? error.stack : String(error)}`);
      this.options.onFatal?.(error);
    }
    return this.misconf();
  }
}
