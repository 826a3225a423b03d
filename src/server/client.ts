/** A connection: what it has sent, what it is to be sent, and what it has asked for. */
import type { Socket } from 'node:net';
import { RequestReader } from '../resp/request-parser.ts';
import type { Database } from '../store/api.ts';
import type { Wait } from './blocking.ts';
import type { Server } from './server.ts';
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

export class Client {
  readonly id: number;
  readonly server: Server;
  /** Null for clients that are no connection: the log's, when it is replayed. */
  readonly socket: Socket | null;
  readonly reader: RequestReader;
  db: Database;
  protocol: 2 | 3 = 2;
  gates = 0;
  name = '';
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

  transaction: Transaction | null = null;
  /** A watched key has changed. */
  watchBroken = false;
  /** The command it waits in. */
  wait: Wait | null = null;
  /** Its commands are put off: CLIENT PAUSE. */
  postponed = false;

  constructor(server: Server, id: number, socket: Socket | null) {
    this.server = server;
    this.id = id;
    this.socket = socket;
    this.db = server.store.database(0);
    this.reader = new RequestReader(server.requestLimits);
  }

  /** Nothing more of its input may be run now. */
  get stopped(): boolean {
    return this.wait !== null || this.closing || this.closed || this.postponed;
  }
}
