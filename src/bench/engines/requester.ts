/** A thread that asks an engine for rows: packs requests, keeps some under way, and counts what comes back. */
import { DELETE_LENGTH } from '../../engines/engine.ts';
import { connectEngine } from '../../engines/open.ts';
import { RowCursor, RowPacker } from '../../engines/packed.ts';
import { Random } from '../../workloads/random.ts';
import { largest, parseSizes, sizeAt, ValuePool } from '../../workloads/values.ts';
import { LoadControl } from '../control.ts';
import { LatencyCounts } from '../latency.ts';
import type { RequesterReport, RequesterTask } from './spec.ts';

/** db_bench's keys are 16 bytes too. */
const KEY_BYTES = 16;
const INTERVAL_MS = 250;
/** What one seek reads. */
const SEEK_BYTES = 4096;
const ROW_HEADER_BYTES = 8;

export default async function request(task: RequesterTask): Promise<RequesterReport> {
  const { settings, workload } = task;
  const engine = connectEngine(task.engine, task.port);
  const control = new LoadControl(task.control);
  const sizes = parseSizes(settings.valueSizes);
  const pool = new ValuePool(settings.seed + task.index, settings.compressibility, largest(sizes));
  const random = new Random(settings.seed, task.index + 1);
  const key = Buffer.alloc(KEY_BYTES, 0x30);

  const latency = new LatencyCounts();
  const interval = new LatencyCounts();
  const series: RequesterReport['series'] = [];
  let rows = 0;
  let hits = 0;
  let misses = 0;
  let userBytes = 0;
  const share = Math.floor(settings.keys / task.of) + (task.index < settings.keys % task.of ? 1 : 0);
  // One pass over the key space is enough where every key is written or read in order.
  const pass = workload.order === 'sequential' ? share : Infinity;
  const limit = task.background
    ? Infinity
    : Math.min(pass, settings.rows === null ? Infinity : settings.rows / task.of);
  let asked = 0;
  const before = performance.eventLoopUtilization();
  const start = performance.now();
  const deadline = task.background || settings.seconds === null ? Infinity : start + settings.seconds * 1000;
  let cutAt = start;
  let intervalRows = 0;

  const writeKey = (): Buffer => {
    let number =
      workload.order === 'sequential' && !task.background
        ? task.index + asked * task.of
        : random.below(settings.keys);
    // A key that is missing lies between two that exist: the tables' ranges do not rule it out.
    key[0] = workload.missing ? 0x2f : 0x30;
    for (let i = KEY_BYTES - 1; i > 0; i--) {
      key[i] = 48 + (number % 10);
      number = Math.floor(number / 10);
    }
    if (workload.missing) {
      key[0] = 0x30;
      key[KEY_BYTES - 1] = 0x3a;
    }
    asked++;
    return key;
  };
  const count = (done: number, began: number): void => {
    const now = performance.now();
    rows += done;
    intervalRows += done;
    latency.record(now - began, 1);
    interval.record(now - began, 1);
    if (now - cutAt >= INTERVAL_MS) cut(now);
  };
  const cut = (now: number): void => {
    series.push({
      at: (now - start) / 1000,
      seconds: (now - cutAt) / 1000,
      rows: intervalRows,
      counts: interval.toSparse(),
    });
    control.report(task.index, rows, interval.percentileUs(0.99));
    interval.reset();
    intervalRows = 0;
    cutAt = now;
  };
  const more = (): boolean => asked < limit && performance.now() < deadline && !control.stopped;
  const batchSize = (): number => Math.min(settings.batch, limit - asked);

  const put = async (): Promise<void> => {
    const packer = new RowPacker(settings.batch * (KEY_BYTES + ROW_HEADER_BYTES + largest(sizes)));
    while (more()) {
      const size = batchSize();
      for (let i = 0; i < size; i++) {
        const place = pool.draw();
        const length = sizeAt(sizes, random.fraction());
        packer.row(writeKey(), pool.bytes.subarray(place, place + length));
        userBytes += KEY_BYTES + length;
      }
      const began = performance.now();
      await engine.write(packer.take(), { sync: settings.sync });
      count(size, began);
    }
  };
  const remove = async (): Promise<void> => {
    const packer = new RowPacker(settings.batch * (KEY_BYTES + ROW_HEADER_BYTES));
    while (more()) {
      const size = batchSize();
      for (let i = 0; i < size; i++) packer.row(writeKey(), undefined);
      userBytes += size * KEY_BYTES;
      const began = performance.now();
      await engine.write(packer.take(), { sync: settings.sync });
      count(size, began);
    }
  };
  const get = async (): Promise<void> => {
    while (more()) {
      const size = batchSize();
      const bytes = new ArrayBuffer(size * (4 + KEY_BYTES));
      const packed = Buffer.from(bytes);
      for (let i = 0, at = 0; i < size; i++) {
        packed.writeUInt32LE(KEY_BYTES, at);
        writeKey().copy(packed, at + 4);
        at += 4 + KEY_BYTES;
      }
      const began = performance.now();
      const found = await engine.getMany({ bytes, length: packed.length, count: size });
      count(size, began);
      const view = Buffer.from(found.bytes, 0, found.length);
      for (let at = 0; at < found.length;) {
        const valueLength = view.readUInt32LE(at + 4);
        const absent = valueLength === DELETE_LENGTH;
        if (absent) misses++;
        else hits++;
        at += ROW_HEADER_BYTES + view.readUInt32LE(at) + (absent ? 0 : valueLength);
      }
    }
  };
  const scan = async (): Promise<void> => {
    if (task.index > 0) return;
    let began = performance.now();
    for await (const chunk of engine.scan({ start: Buffer.from('0') })) {
      count(chunk.rows, began);
      hits += chunk.rows;
      began = performance.now();
      if (began >= deadline || rows >= limit * task.of || control.stopped) break;
    }
  };
  const seek = async (): Promise<void> => {
    while (more()) {
      const began = performance.now();
      let found = false;
      for await (const chunk of engine.scan({ start: Buffer.from(writeKey()), chunkBytes: SEEK_BYTES })) {
        found = new RowCursor(chunk).advance();
        break;
      }
      if (found) hits++;
      else misses++;
      count(1, began);
    }
  };
  const compact = async (): Promise<void> => {
    if (task.index > 0) return;
    const began = performance.now();
    await engine.compact();
    count(settings.keys, began);
  };

  const work = task.background ? put : { put, get, delete: remove, scan, seek, compact }[workload.call];
  const depth = workload.call === 'scan' || workload.call === 'compact' ? 1 : settings.depth;
  await Promise.all(Array.from({ length: depth }, work));
  const end = performance.now();
  if (interval.total > 0) cut(end);
  const { utilization } = performance.eventLoopUtilization(before);
  await engine.close();
  return {
    startedAt: performance.timeOrigin + start,
    endedAt: performance.timeOrigin + end,
    rows,
    hits,
    misses,
    userBytes,
    latency: latency.toSparse(),
    series,
    utilisation: utilization,
  };
}
