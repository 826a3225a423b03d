/**
 * The process that holds one engine under test, and nothing else: two bindings of RocksDB in one process
 * crash it, and what the process uses is then what the engine uses, with its requesters.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Piscina } from 'piscina';
import { openEngine, type OwnedEngine } from '../../engines/open.ts';
import type { EngineOptions } from '../../engines/engine.ts';
import { LoadControl } from '../control.ts';
import { LatencyCounts } from '../latency.ts';
import type {
  EngineRunReport,
  HostReply,
  HostRequest,
  HostStart,
  RequesterReport,
  RequesterTask,
} from './spec.ts';
import { ENGINE_WORKLOADS, type EngineWorkload } from './workloads.ts';

const PROGRESS_MS = 250;

const start = JSON.parse(process.argv[2]) as HostStart;
const { settings } = start;
const directory = join(start.directory, 'engine');
const pool = new Piscina({
  filename: new URL('./requester.js', import.meta.url).href,
  minThreads: settings.requesters,
  maxThreads: settings.requesters + 1,
  idleTimeout: Infinity,
});
let engine: OwnedEngine;
/** Of what is under way, and of what is being measured. */
let active: LoadControl | null = null;
let current: LoadControl | null = null;
/** Nothing more is asked for. */
let stopped = false;
/** All keys of the key space are there. */
let loaded = false;

const reply = (message: HostReply): void => void process.send!(message);

async function open(): Promise<void> {
  engine = await openEngine(start.engine, directory, start.options as EngineOptions);
}

async function ask(workload: EngineWorkload, limits: boolean): Promise<Omit<EngineRunReport, 'details'>> {
  const control = new LoadControl(null, settings.requesters);
  const writerControl = new LoadControl(null, settings.requesters + 1);
  active = control;
  if (limits) current = control;
  if (stopped) control.stop();
  const limited = limits ? settings : { ...settings, rows: null, seconds: null };
  const task = (index: number, background: boolean): Promise<RequesterReport> => {
    const port = engine.connect();
    const request: RequesterTask = {
      engine: start.engine,
      port,
      workload,
      settings: limited,
      index,
      of: settings.requesters,
      background,
      control: (background ? writerControl : control).memory,
    };
    return pool.run(request, { transferList: [port] }) as Promise<RequesterReport>;
  };
  const writer = workload.writer ? task(settings.requesters, true) : null;
  let reports: RequesterReport[];
  try {
    reports = await Promise.all(
      Array.from({ length: settings.requesters }, (_, index) => task(index, false)),
    );
  } finally {
    writerControl.stop();
    current = null;
    await writer;
  }
  const latency = new LatencyCounts();
  for (const report of reports) latency.merge(report.latency);
  const sum = (of: (report: RequesterReport) => number): number =>
    reports.reduce((total, report) => total + of(report), 0);
  return {
    startedAt: Math.min(...reports.map(({ startedAt }) => startedAt)),
    endedAt: Math.max(...reports.map(({ endedAt }) => endedAt)),
    rows: sum(({ rows }) => rows),
    hits: sum(({ hits }) => hits),
    misses: sum(({ misses }) => misses),
    userBytes: sum(({ userBytes }) => userBytes),
    latency: latency.toSparse(),
    series: reports.flatMap(({ series }) => series),
    utilisation: Math.max(...reports.map(({ utilisation }) => utilisation)),
  };
}

async function run(workload: EngineWorkload): Promise<void> {
  if (workload.fresh) {
    await engine.close();
    rmSync(directory, { recursive: true, force: true });
    await open();
    loaded = false;
  } else if (workload.loaded && !loaded) {
    await ask(
      ENGINE_WORKLOADS.find(({ id }) => id === 'fillseq')!,
      false,
    );
    loaded = true;
  }
  reply({ began: true });
  const report = await ask(workload, true);
  if (workload.call === 'put' && workload.order === 'sequential' && report.rows >= settings.keys)
    loaded = true;
  if (workload.consumes) loaded = false;
  reply({ done: { ...report, details: (await engine.stats()).details } });
}

setInterval(() => {
  if (current !== null) reply({ progress: { requests: current.requests, p99Us: current.p99Us } });
}, PROGRESS_MS).unref();
process.on('disconnect', () => process.exit(1));
process.on('message', (message: HostRequest) => {
  if ('run' in message) run(message.run).catch((error: Error) => reply({ failed: error.message }));
  else {
    stopped = true;
    active?.stop();
  }
});

open().then(
  () => reply({ ready: { version: '' } }),
  (error: Error) => reply({ failed: error.message }),
);
