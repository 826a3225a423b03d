/**
 * What an event-loop turn sends: one buffer in which the replies and pushes of all connections stand
 * in the order in which they arose, and for each connection the chain of its segments in it.
 */
import { RespWriter } from '../resp/writer.ts';
import type { Client } from './client.ts';

/** A turn's buffer above this size is not kept for the next turn. */
const MEMORY_KEPT = 1024 * 1024;
const MEMORY_MIN = 64 * 1024;

export class Turn {
  writer = new RespWriter(MEMORY_MIN);
  /** Connections that get something, each once, and the first and last segment of each. */
  private readonly clients: (Client | null)[] = [];
  private readonly first: number[] = [];
  private readonly last: number[] = [];
  private readonly bytes: number[] = [];
  /** Segments: bytes [starts[i], ends[i]) of the buffer; next of the same connection, -1 at the end. */
  private readonly starts: number[] = [];
  private readonly ends: number[] = [];
  private readonly next: number[] = [];
  private segmentCount = 0;
  clientCount = 0;
  /** What must be in the log, or on the disk, before this turn's bytes may leave. */
  position = 0;

  get empty(): boolean {
    return this.clientCount === 0;
  }

  /** Bytes [start, end) of the writer go to `client`, after what it was given before. */
  add(client: Client, start: number, end: number): void {
    if (start === end) return;
    let at = client.turn === this ? client.turnIndex : -1;
    if (at >= 0) {
      const last = this.last[at];
      this.bytes[at] += end - start;
      if (this.ends[last] === start) {
        this.ends[last] = end;
        return;
      }
    }
    const segment = this.segmentCount++;
    this.starts[segment] = start;
    this.ends[segment] = end;
    this.next[segment] = -1;
    if (at < 0) {
      at = this.clientCount++;
      client.turn = this;
      client.turnIndex = at;
      this.clients[at] = client;
      this.first[at] = segment;
      this.bytes[at] = end - start;
    } else {
      this.next[this.last[at]] = segment;
    }
    this.last[at] = segment;
  }

  /** Takes back what `client` was given from position `from` of the writer on. */
  withhold(client: Client, from: number): Buffer {
    if (client.turn !== this) return Buffer.alloc(0);
    const at = client.turnIndex;
    const kept: number[] = [];
    const taken: Buffer[] = [];
    for (let segment = this.first[at]; segment !== -1; segment = this.next[segment]) {
      const cut = Math.max(this.starts[segment], from);
      if (cut < this.ends[segment]) taken.push(Buffer.from(this.writer.u8.subarray(cut, this.ends[segment])));
      this.ends[segment] = Math.min(this.ends[segment], cut);
      kept.push(segment);
    }
    const bytes = Buffer.concat(taken);
    this.bytes[at] -= bytes.length;
    return bytes;
  }

  clientAt(index: number): Client {
    return this.clients[index]!;
  }

  bytesOf(index: number): number {
    return this.bytes[index];
  }

  /** The bytes for the connection at `index`: a view where they lie together, else a copy. */
  outputOf(index: number): Buffer {
    const first = this.first[index];
    if (this.next[first] === -1) return this.writer.u8.subarray(this.starts[first], this.ends[first]);
    const output = Buffer.allocUnsafe(this.bytes[index]);
    let at = 0;
    for (let segment = first; segment !== -1; segment = this.next[segment])
      at += this.writer.u8.copy(output, at, this.starts[segment], this.ends[segment]);
    return output;
  }

  /** Makes ready for another turn. With `retained` somebody still reads the memory, so it is given up. */
  reset(retained: boolean): void {
    for (let i = 0; i < this.clientCount; i++) {
      const client = this.clients[i];
      if (client !== null && client.turn === this) client.turn = null;
      this.clients[i] = null;
    }
    this.clientCount = 0;
    this.segmentCount = 0;
    this.position = 0;
    const { length } = this.writer.u8;
    // Memory for the next turn is as large as that of the last one, lest it grow step by step again.
    if (length > MEMORY_KEPT) this.writer = new RespWriter(MEMORY_MIN);
    else if (retained) this.writer = new RespWriter(length);
    else this.writer.clear();
  }
}
