/**
 * Records and pages on their way from the thread that makes them into a tier: in chunks of the arena, which
 * change hands as they lie.
 *
 * The thread has an arena and a collection table of its own, but their numbers (of chunks, of collections' slots
 * and ids, of keyspaces) are lent to it by the tier, so that every reference is right when its chunk becomes one of
 * the tier's. What is left for the event loop is an entry in the key table for each key.
 */
import type { MessagePort } from 'node:worker_threads';
import type { ChunkState } from '../chunk-exchange.ts';
import type { CollectionRange, CollectionState } from '../collection-table.ts';

/** What one database gets. */
export interface HandedKeys {
  database: number;
  /** How many keys there will be in all, as far as is known: a table for so many is made beforehand. */
  expected: number;
  /** Hash and record of each key, by turns, in about the order of the hashes. */
  keys: Int32Array<ArrayBuffer>;
  /** Deadline and hash of each key that expires, by turns. */
  deadlines: Float64Array<ArrayBuffer>;
}

/** All that was made since the last handover. */
export interface Handover {
  chunks: ChunkState[];
  /** Of all blocks that have rows: all are dirty. */
  dirtyBytes: number;
  /** Of slabs in use. */
  slabBytes: number;
  collections: CollectionState[];
  keys: HandedKeys[];
}

/** The memory of a handover, to be moved rather than copied. */
export function memoryOf(handover: Handover): ArrayBuffer[] {
  const { chunks, keys } = handover;
  return [
    ...chunks.map(({ memory }) => memory),
    ...keys.flatMap((of) => [of.keys.buffer, of.deadlines.buffer]),
  ];
}

/** Asked for by the thread, which waits for it. `keyspace`: the number of that for a database. */
export type Want = 'chunk' | 'collections' | { keyspace: number };

/** Most of collections' slots and ids lent at a time. */
export const COLLECTIONS_LENT = 1024;

const WAITING = 0;
const ANSWERED = 1;

/** Memory that both threads see, which an answer comes by: the state, then three numbers. */
export function newAnswer(): SharedArrayBuffer {
  return new SharedArrayBuffer(32);
}

/** The tier's side: gives the answer that the thread waits for. */
export function answer(memory: SharedArrayBuffer, first: number, second = 0, third = 0): void {
  new Float64Array(memory, 8).set([first, second, third]);
  const state = new Int32Array(memory, 0, 1);
  Atomics.store(state, 0, ANSWERED);
  Atomics.notify(state, 0);
}

/** The thread's side. */
export class Borrower {
  /** False once there is no room for more chunks than that which was lent last. */
  hasRoom = true;
  private readonly port: MessagePort;
  private readonly state: Int32Array<SharedArrayBuffer>;
  private readonly numbers: Float64Array<SharedArrayBuffer>;

  constructor(port: MessagePort, memory: SharedArrayBuffer) {
    this.port = port;
    this.state = new Int32Array(memory, 0, 1);
    this.numbers = new Float64Array(memory, 8);
  }

  private ask(want: Want): Float64Array {
    Atomics.store(this.state, 0, WAITING);
    this.port.postMessage({ want });
    Atomics.wait(this.state, 0, WAITING);
    return this.numbers;
  }

  chunk(): number {
    const [chunk, room] = this.ask('chunk');
    this.hasRoom = room !== 0;
    return chunk;
  }

  collections(): CollectionRange {
    const [slot, id, count] = this.ask('collections');
    return { slot, id, count };
  }

  keyspace(database: number): number {
    return this.ask({ keyspace: database })[0];
  }
}
