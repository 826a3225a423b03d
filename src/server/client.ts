/** A connection: what it has sent, what it is to be sent, and what it has asked for. */
import type { Socket } from 'node:net';
import { RequestReader } from '../resp/request-parser.ts';
import type { Database } from '../store/api.ts';
import type { Wait } from './blocking.ts';
import type { CommandEntry } from './command-entry.ts';
import type { Rerun } from './faults.ts';
import type { SubscriptionKind } from './pubsub.ts';
import type { Server } from './server.ts';
import type { StoredRequest } from './stored-request.ts';
import type { TrackingState } from './tracking.ts';
import type { Transaction } from './transactions.ts';
import type { Turn } from './turn.ts';

/** Reasons why a client's, or all clients', commands take the careful way through dispatch. */
export const Gate = {
  /** Not authenticated. */
  Auth: 1 << 0,
  Multi: 1 << 1,
  /** Subscribed in RESP2. */
  Subscribed: 1 << 2,
  /** CLIENT REPLY OFF or SKIP. */
  Muted: 1 << 3,
  Tracking: 1 << 4,
  Loading: 1 << 5,
  /** The memory tier is full. */
  Full: 1 << 6,
  /** The log cannot be written, or the server is about to end. */
  Misconf: 1 << 7,
  Paused: 1 << 8,
  Monitored: 1 << 9,
} as const;

/** CLIENT REPLY: `skip-next` mutes the command after the one that runs, `skip` the one that runs. */
export type ReplyMode = 'on' | 'off' | 'skip-next' | 'skip';

export class Client {
  readonly id: number;
  readonly server: Server;
  /** Null for clients that are no connection: the log's, when it is replayed. */
  readonly socket: Socket | null;
  readonly reader: RequestReader;
  db: Database;
  protocol: 2 | 3 = 2;
  /** Bits of Gate. */
  gates = 0;
  name = '';
  /** `ip:port`, or `path:0` of a unix socket; of the peer and of this end. */
  address = '';
  localAddress = '';
  readonly unix: boolean;
  /** The connection comes from this machine. */
  local = false;
  /** Unix ms. */
  readonly createdAt: number;
  lastInteraction: number;
  lastCommand: CommandEntry | null = null;
  noEvict = false;
  replyMode: ReplyMode = 'on';
  /** The command that it waits for was muted: what that replies when it ends is not sent. */
  unanswered = false;
  monitor = false;

  /** The socket is gone. */
  closed = false;
  /** To be closed when its replies are sent; nothing more is read. */
  closing = false;

  /** The turn in which it has output, and its place there. */
  turn: Turn | null = null;
  turnIndex = 0;
  /** Bytes of replies that wait for the log. */
  heldBytes = 0;
  /** Its replies of this turn show data whose log entry is not written. */
  sawUnlogged = false;
  /** Unix ms since when its output is above the soft limit; 0: it is not. */
  overSoftLimitSince = 0;

  transaction: Transaction | null = null;
  /** A watched key has changed. */
  watchBroken = false;
  /** The command it waits in. */
  wait: Wait | null = null;
  /** It waits for something other than a key: a checkpoint, the end of the server. */
  suspended = false;
  /** A wait has ended in this turn, and what was sent meanwhile is not run yet. */
  unblocked = false;
  /** The command that CLIENT PAUSE puts off. */
  postponed: StoredRequest | null = null;
  /** The command that waits for rows which are not in memory. */
  rerun: Rerun | null = null;
  /** The peer sends no more; the connection is closed when all that it has sent has been run. */
  ended = false;

  /** Names are one character a byte. */
  readonly subscriptions: Record<SubscriptionKind, Set<string>> = {
    channel: new Set(),
    pattern: new Set(),
    shard: new Set(),
  };
  subscribed = false;
  tracking: TrackingState | null = null;

  constructor(server: Server, id: number, socket: Socket | null, unix = false) {
    this.server = server;
    this.id = id;
    this.socket = socket;
    this.unix = unix;
    this.db = server.store.database(0);
    this.reader = new RequestReader(server.requestLimits);
    this.createdAt = Date.now();
    this.lastInteraction = this.createdAt;
  }

  /** Nothing more of its input may be run now. */
  get stopped(): boolean {
    return (
      this.wait !== null ||
      this.closing ||
      this.closed ||
      this.postponed !== null ||
      this.rerun !== null ||
      this.suspended
    );
  }

  setGate(gate: number, closed: boolean): void {
    if (closed) this.gates |= gate;
    else this.gates &= ~gate;
  }

  /** Bytes that wait to be sent. */
  get outputBytes(): number {
    return this.heldBytes + (this.socket?.writableLength ?? 0);
  }
}
