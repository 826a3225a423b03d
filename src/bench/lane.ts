/**
 * A lane is one connection on which requests are sent and replies come back in order. Loops decide when
 * a lane sends; a lane knows how.
 */
import type { RequestSource } from '../workloads/request-source.ts';
import type { ReplyKind } from '../resp/reply-scanner.ts';

export interface Lane {
  readonly source: RequestSource;
  /** Sends the source's next `count` requests. */
  send(count: number): void;
  close(): void;
}

export interface LaneEvents {
  /**
   * `count` replies have arrived. Kinds of replies lie in `kinds` from 0 on; when `unusual` is 0 all are
   * plain values.
   */
  replies(lane: number, count: number, kinds: Uint8Array, unusual: number): void;
  /** Text of an error reply, at least of the first. */
  error(text: string): void;
  /** Only from lanes that verify: a whole reply with the operation and the key number of its request. */
  payload(operation: number, key: number, kind: ReplyKind, reply: Buffer): void;
  /** The connection is gone. */
  closed(lane: number, reason: string): void;
}
