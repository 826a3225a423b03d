/**
 * An engine in memory over a SimulatedDisk: rows, of which a power loss keeps what was synced and any
 * number of the batches since, in order, as engines with a write-ahead log do.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import {
  DELETE_LENGTH,
  EngineError,
  type ApplyOptions,
  type Engine,
  type EngineStats,
  type PackedBatch,
  type PackedKeys,
  type PackedRows,
  type Range,
  type ScanOptions,
} from '../../src/engines/engine.ts';
import { unpackKeys } from '../../src/engines/packed.ts';
import type { SimulatedDisk } from './simulated-disk.ts';
import { ownedCollection } from '../../src/store/row-format.ts';

type Row = { key: string; value: Buffer | null };

/** Keys as latin1 strings, whose order is that of their bytes. */
export class SimulatedEngine implements Engine {
  readonly name = 'leveldb';
  readonly rows: Map<string, Buffer>;
  /** Asked before each batch; an error makes the call fail. */
  fault: () => Error | null = () => null;
  deletedRanges = 0;
  private readonly disk: SimulatedDisk;
  private durable: Map<string, Buffer>;
  private unsynced: Row[][] = [];
  private closed = false;

  constructor(disk: SimulatedDisk, rows: Map<string, Buffer> = new Map()) {
    this.disk = disk;
    this.rows = rows;
    this.durable = new Map(rows);
  }

  /** The engine that another process would find after this one was killed. */
  afterKill(disk: SimulatedDisk): SimulatedEngine {
    return new SimulatedEngine(disk, new Map(this.rows));
  }

  afterPowerLoss(disk: SimulatedDisk, random: () => number): SimulatedEngine {
    const rows = new Map(this.durable);
    const kept = Math.floor(random() * (this.unsynced.length + 1));
    for (const batch of this.unsynced.slice(0, kept)) put(rows, batch);
    return new SimulatedEngine(disk, rows);
  }

  private async begin(): Promise<void> {
    await turn();
    if (this.closed) throw new EngineError('ENGINE_DEAD', 'closed');
    const error = this.fault();
    if (error !== null) throw error;
  }

  private batch(rows: Row[]): void {
    put(this.rows, rows);
    this.unsynced.push(rows);
  }

  private syncAll(): void {
    this.durable = new Map(this.rows);
    this.unsynced = [];
  }

  async getMany(keys: PackedKeys): Promise<PackedRows> {
    await this.begin();
    const memory = Buffer.from(keys.bytes, 0, keys.length);
    const found: Row[] = [];
    for (let at = 0; at < memory.length;) {
      const length = memory.readUInt32LE(at);
      const key = memory.toString('latin1', at + 4, at + 4 + length);
      found.push({ key, value: this.rows.get(key) ?? null });
      at += 4 + length;
    }
    return pack(found);
  }

  async getPrefixed(prefixes: PackedKeys): Promise<PackedRows> {
    await this.begin();
    const found = unpackKeys(prefixes).flatMap((prefix) =>
      [...this.rows.keys()].filter((key) => key.startsWith(prefix.toString('latin1'))).sort(),
    );
    return pack(found.map((key) => ({ key, value: this.rows.get(key)! })));
  }

  async write(batch: PackedBatch, options: { sync?: boolean } = {}): Promise<void> {
    await this.begin();
    this.batch(unpack(Buffer.from(batch.bytes, 0, batch.length)));
    if (options.sync === true) this.syncAll();
  }

  async applyRows(path: string, offset: number, length: number, options: ApplyOptions = {}): Promise<number> {
    const rows = unpack(Buffer.from(this.disk.read(path).subarray(offset, offset + length)));
    let batch: Row[] = [];
    let bytes = 0;
    for (const row of rows) {
      const rowBytes = 8 + row.key.length + (row.value?.length ?? 0);
      if (batch.length > 0 && bytes + rowBytes > (options.batchBytes ?? 4 * 1024 * 1024)) {
        await this.begin();
        this.batch(batch);
        batch = [];
        bytes = 0;
      }
      batch.push(row);
      bytes += rowBytes;
    }
    await this.begin();
    this.batch(batch);
    await this.begin();
    if (options.sync === true) this.syncAll();
    return rows.length;
  }

  async *scan(options: ScanOptions): AsyncIterable<PackedRows> {
    await this.begin();
    const start = Buffer.from(options.start).latin1Slice();
    const end = options.end === undefined ? null : Buffer.from(options.end).latin1Slice();
    const rows = [...this.rows]
      .filter(([key]) => key >= start && (end === null || key < end))
      .map(([key, value]) => ({ key, value }))
      .sort((a, b) => (a.key < b.key ? -1 : 1));
    for (let i = 0; i < rows.length; i += 50) {
      await this.begin();
      yield pack(rows.slice(i, i + 50));
    }
  }

  async deleteRange(range: Range): Promise<void> {
    await this.begin();
    const start = Buffer.from(range.start).latin1Slice();
    const end = range.end === undefined ? null : Buffer.from(range.end).latin1Slice();
    const doomed = [...this.rows.keys()].filter((key) => key >= start && (end === null || key < end));
    this.batch(doomed.map((key) => ({ key, value: null })));
    this.deletedRanges++;
  }

  async compact(): Promise<void> {
    await this.begin();
  }

  backup(): Promise<void> {
    throw new Error('a simulated engine has no files');
  }

  connect(): MessagePort {
    throw new Error('a simulated engine has no thread');
  }

  async stats(): Promise<EngineStats> {
    await this.begin();
    return { diskBytes: 0, memoryBytes: 0, details: {} };
  }

  async close(): Promise<void> {
    this.closed = true;
    this.syncAll();
  }
}

function put(rows: Map<string, Buffer>, batch: readonly Row[]): void {
  for (const { key, value } of batch) {
    if (value === null) rows.delete(key);
    else rows.set(key, value);
  }
}

function unpack(bytes: Buffer): Row[] {
  const rows: Row[] = [];
  for (let at = 0; at < bytes.length;) {
    const keyLength = bytes.readUInt32LE(at);
    const valueLength = bytes.readUInt32LE(at + 4);
    const valueAt = at + 8 + keyLength;
    const deleted = valueLength === DELETE_LENGTH;
    at = valueAt + (deleted ? 0 : valueLength);
    rows.push({
      key: bytes.toString('latin1', valueAt - keyLength, valueAt),
      value: deleted ? null : Buffer.from(bytes.subarray(valueAt, at)),
    });
  }
  return rows;
}

function pack(rows: readonly Row[]): PackedRows {
  const parts = rows.flatMap(({ key, value }) => {
    const header = Buffer.alloc(8);
    header.writeUInt32LE(key.length, 0);
    header.writeUInt32LE(value === null ? DELETE_LENGTH : value.length, 4);
    return [header, Buffer.from(key, 'latin1'), value ?? Buffer.alloc(0)];
  });
  const joined = Buffer.concat(parts);
  const bytes = new ArrayBuffer(joined.length);
  new Uint8Array(bytes).set(joined);
  return { bytes, length: joined.length, rows: rows.length };
}

/** Page rows of collections that no row names, as ids in hex. */
export function ownerless(engine: SimulatedEngine): string[] {
  const owned = new Set<string>();
  const pages = new Set<string>();
  for (const [key, value] of engine.rows) {
    if (key[0] === 'p') pages.add(Buffer.from(key, 'latin1').toString('hex', 1, 7));
    if (key[0] !== 'k' && key[0] !== 'j' && key[0] !== 'e') continue;
    const row = Buffer.concat([Buffer.from(key, 'latin1'), value]);
    const id = ownedCollection(row, 0, key.length, row.length);
    owned.add(id.toString(16).padStart(12, '0'));
  }
  return [...pages].filter((id) => !owned.has(id));
}
