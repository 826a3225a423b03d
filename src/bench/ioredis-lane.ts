/** A connection through ioredis: what an application sees, the client library's own cost included. */
import { Cluster, Redis } from 'ioredis';
import { ReplyKind } from '../resp/reply-scanner.ts';
import { decodeRequest, type RequestSource } from '../workloads/request-source.ts';
import type { Lane, LaneEvents } from './lane.ts';
import type { Address } from './load-spec.ts';

const CONNECT_TIMEOUT_MS = 5_000;

function kindOf(reply: unknown): ReplyKind {
  if (reply === null) return ReplyKind.Null;
  return Array.isArray(reply) && reply.length === 0 ? ReplyKind.Empty : ReplyKind.Value;
}

export class IoredisLane implements Lane {
  readonly source: RequestSource;
  private readonly client: Redis | Cluster;
  private readonly index: number;
  private readonly events: LaneEvents;
  private readonly kind = new Uint8Array(1);
  private closing = false;

  private constructor(client: Redis | Cluster, index: number, source: RequestSource, events: LaneEvents) {
    this.client = client;
    this.index = index;
    this.source = source;
    this.events = events;
  }

  static async open(
    address: Address,
    index: number,
    source: RequestSource,
    events: LaneEvents,
  ): Promise<IoredisLane> {
    const options = {
      username: address.user,
      password: address.password,
      db: address.database ?? 0,
      connectTimeout: CONNECT_TIMEOUT_MS,
    };
    const client = address.cluster
      ? new Cluster([{ host: address.host, port: address.port }], {
          redisOptions: options,
          lazyConnect: true,
        })
      : new Redis({
          ...(address.path === undefined
            ? { host: address.host, port: address.port }
            : { path: address.path }),
          ...options,
          lazyConnect: true,
          retryStrategy: () => null,
          maxRetriesPerRequest: 0,
        });
    const lane = new IoredisLane(client, index, source, events);
    client.on('error', (error: Error) => events.error(error.message));
    await client.connect();
    client.on('end', () => {
      if (!lane.closing) events.closed(index, 'the server closed the connection');
    });
    return lane;
  }

  send(count: number): void {
    const bytes = this.source.next(count);
    let start = 0;
    for (let i = 0; i < count; i++) {
      const end = i + 1 === count ? bytes.length : endOfRequest(bytes, start);
      const [name, ...args] = decodeRequest(bytes.subarray(start, end));
      start = end;
      this.client.callBuffer(name.toString('latin1'), ...args).then(
        (reply) => this.answered(kindOf(reply)),
        (error: Error) => {
          if (this.closing) return;
          this.events.error(error.message);
          this.answered(ReplyKind.Error);
        },
      );
    }
  }

  private answered(kind: ReplyKind): void {
    this.kind[0] = kind;
    this.events.replies(this.index, 1, this.kind, kind === ReplyKind.Value ? 0 : 1);
  }

  close(): void {
    this.closing = true;
    this.client.disconnect();
  }
}

/** Offset after the RESP array of bulk strings, or the inline request, that begins at `start`. */
function endOfRequest(bytes: Buffer, start: number): number {
  let pos = bytes.indexOf(10, start) + 1;
  if (bytes[start] !== 42) return pos;
  let args = Number(bytes.toString('latin1', start + 1, pos - 2));
  while (args-- > 0) {
    const lineEnd = bytes.indexOf(10, pos);
    pos = lineEnd + 1 + Number(bytes.toString('latin1', pos + 1, lineEnd - 1)) + 2;
  }
  return pos;
}
