/** Runs the engines side by side: repeats alternate between them, each in a fresh process and directory. */
import { fork, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { EngineName } from '../../engines/engine.ts';
import { resolveOptions } from '../../engines/options.ts';
import {
  RESULTS_FORMAT,
  RESULTS_VERSION,
  type Results,
  type Run,
  type Session,
  type TargetInfo,
  type WorkloadInfo,
} from '../../results/document.ts';
import { cellsOf } from '../cells.ts';
import { freshDirectory, guardProcess, removeDirectory } from '../child.ts';
import { describeEnvironment } from '../environment.ts';
import { LatencyCounts } from '../latency.ts';
import { resourcesOf, Sampler, seriesOf } from '../sampler.ts';
import type { Watcher } from '../session.ts';
import { ENGINE_LABELS } from '../target.ts';
import type {
  EngineProgress,
  EngineRunReport,
  EngineSettings,
  HostReply,
  HostRequest,
  HostStart,
} from './spec.ts';
import type { EngineWorkload } from './workloads.ts';

export interface EnginesPlan {
  engines: EngineName[];
  workloads: EngineWorkload[];
  settings: EngineSettings;
  engineOptions: Record<string, string>;
  repeats: number;
  baseline: string;
  dataRoot: string;
  argv: string[];
}

export interface EnginesControl {
  watcher: Watcher;
  save(results: Results): void;
  stopReason(): string | null;
  /** Called with what ends the workload under way, for when the bench is asked to stop. */
  onStop(stop: () => void): void;
}

const SAMPLE_SECONDS = 0.25;
const BINDINGS: Record<EngineName, string[]> = {
  leveldb: ['classic-level'],
  lmdb: ['lmdb'],
  rocksdb: ['rocksdb-native', 'rocksdb'],
};

function bindingVersion(engine: EngineName): string {
  const require = createRequire(import.meta.url);
  for (const name of BINDINGS[engine]) {
    try {
      const path = require.resolve(`${name}/package.json`);
      return `${name} ${(JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version}`;
    } catch {
      // The next one, or none.
    }
  }
  return '';
}

/** A host process with its messages in order. */
class HostProcess {
  readonly child: ChildProcess;
  private readonly arrived: HostReply[] = [];
  /** Of the workload under way. */
  progress: EngineProgress = { requests: 0, p99Us: 0 };
  private waiting: ((reply: HostReply) => void) | null = null;

  constructor(start: HostStart) {
    this.child = fork(new URL('./host.js', import.meta.url), [JSON.stringify(start)], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      // Latency counts are typed arrays, which JSON would spoil.
      serialization: 'advanced',
      detached: true,
    });
    guardProcess(this.child);
    this.child.on('message', (reply: HostReply) => this.deliver(reply));
    this.child.on('exit', (code, signal) =>
      this.deliver({ failed: `the engine's process ended: ${signal ?? `exit code ${code}`}` }),
    );
  }

  private deliver(reply: HostReply): void {
    if ('progress' in reply) {
      this.progress = reply.progress;
      return;
    }
    if (this.waiting === null) this.arrived.push(reply);
    else {
      this.waiting(reply);
      this.waiting = null;
    }
  }

  async next(): Promise<HostReply> {
    const reply =
      this.arrived.shift() ?? (await new Promise<HostReply>((resolve) => (this.waiting = resolve)));
    if ('failed' in reply) throw new Error(reply.failed);
    return reply;
  }

  send(request: HostRequest): void {
    this.child.send(request);
  }

  kill(): void {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    try {
      process.kill(-this.child.pid!, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

export async function runEngines(plan: EnginesPlan, control: EnginesControl): Promise<Results> {
  const { settings } = plan;
  const environment = describeEnvironment(plan.dataRoot);
  const startedAt = new Date().toISOString();
  const targets = plan.engines.map((engine): TargetInfo => ({
    id: engine,
    label: ENGINE_LABELS[engine],
    kind: 'engine',
    engine,
    reference: false,
    version: bindingVersion(engine),
    durability: settings.sync
      ? { class: 'always', loses: 'nothing that was acknowledged' }
      : { class: 'none', loses: 'what the engine or the system had not written yet' },
    address: '',
    commandLine: Object.entries(plan.engineOptions)
      .filter(([name]) => name.startsWith(`${engine}.`))
      .map(([name, value]) => `${name}=${value}`)
      .join(' '),
    settings: resolveOptions(engine, engineOptionsOf(plan, engine)) as TargetInfo['settings'],
  }));
  const workloads = plan.workloads.map((workload): WorkloadInfo => ({
    id: workload.id,
    label: workload.id,
    family: workload.access === 'read' ? 'read' : 'write',
    access: workload.access,
    commands: [workload.call],
    description: workload.description,
    connections: settings.requesters,
    pipeline: settings.depth,
    driver: 'engine',
    loop: 'closed',
    rate: null,
    keyspace: settings.keys,
    distribution: workload.order,
    valueBytes: settings.valueSizes,
    requests: settings.rows,
    seconds: settings.seconds,
    warmupSeconds: 0,
  }));
  const sessions: Session[] = [];
  const runs: Run[] = [];
  const document = (final: boolean, reason: string | null): Results => ({
    format: RESULTS_FORMAT,
    version: RESULTS_VERSION,
    tool: 'engines',
    title: 'Engines without a server',
    state: reason === null ? 'complete' : 'partial',
    ...(reason === null ? {} : { partialReason: reason }),
    startedAt,
    finishedAt: new Date().toISOString(),
    argv: plan.argv,
    rerun: ['ardent', ...plan.argv].join(' '),
    seed: settings.seed,
    options: {
      ...settings,
      rows: settings.rows ?? 'no limit',
      seconds: settings.seconds ?? 'no limit',
      repeats: plan.repeats,
    },
    environment,
    targets,
    workloads,
    baseline: plan.baseline,
    sessions,
    runs,
    cells: cellsOf({
      targets,
      workloads,
      runs,
      sessions,
      baseline: plan.baseline,
      clientCeiling: [],
      mergeLatencies: final,
    }),
    notes: [
      `Rows travel in batches of ${settings.batch}; latency is that of a batch, with ${settings.depth * settings.requesters} under way.`,
      'Processor time and memory are those of the process that holds the engine and its requesters.',
    ],
  });

  for (let repeat = 1; repeat <= plan.repeats; repeat++) {
    const order = repeat % 2 === 1 ? plan.engines : [...plan.engines].reverse();
    for (const engine of order) {
      if (control.stopReason() !== null) break;
      const session: Session = {
        target: engine,
        repeat,
        startedAt: new Date().toISOString(),
        startSeconds: null,
        state: 'ok',
        load: null,
        drain: null,
        end: null,
      };
      const index = sessions.push(session) - 1;
      const directory = freshDirectory(engine, plan.dataRoot);
      const began = performance.now();
      control.watcher.session(ENGINE_LABELS[engine], repeat);
      control.watcher.phase('start');
      const host = new HostProcess({
        engine,
        directory,
        options: engineOptionsOf(plan, engine),
        settings: { ...settings, seed: settings.seed + repeat },
      });
      control.onStop(() => host.send({ stop: true }));
      try {
        await host.next();
        session.startSeconds = (performance.now() - began) / 1000;
        for (const workload of plan.workloads) {
          if (control.stopReason() !== null) break;
          const run = await runOne(host, directory, workload, control.watcher, {
            target: engine,
            repeat,
            session: index,
            order: runs.length,
          });
          if (run.requests === 0 && control.stopReason() !== null) break;
          runs.push(run);
          control.watcher.finished(run);
        }
      } catch (error) {
        session.state = 'failed';
        session.error = (error as Error).message;
      } finally {
        control.onStop(() => {});
        host.kill();
        removeDirectory(directory);
      }
      control.save(document(false, control.stopReason() ?? 'the run is not finished'));
    }
  }
  return document(true, control.stopReason());
}

function engineOptionsOf(plan: EnginesPlan, engine: EngineName): Record<string, string> {
  return Object.fromEntries(
    Object.entries(plan.engineOptions).filter(([name]) => name.startsWith(`${engine}.`)),
  );
}

async function runOne(
  host: HostProcess,
  directory: string,
  workload: EngineWorkload,
  watcher: Watcher,
  place: Pick<Run, 'target' | 'repeat' | 'session' | 'order'>,
): Promise<Run> {
  const startedAt = new Date().toISOString();
  const sampler = new Sampler({ pid: host.child.pid!, dataDirectory: directory });
  host.progress = { requests: 0, p99Us: 0 };
  watcher.phase(workload.loaded ? `${workload.id}, loading if need be` : workload.id);
  host.send({ run: workload });
  let report: EngineRunReport;
  try {
    await host.next();
    sampler.start(SAMPLE_SECONDS);
    watcher.phase(workload.id);
    watcher.running(
      {
        get requests() {
          return host.progress.requests;
        },
        get p99Us() {
          return host.progress.p99Us;
        },
      },
      sampler,
    );
    const reply = await host.next();
    if (!('done' in reply)) throw new Error('the engine’s process answered out of turn');
    report = reply.done;
  } finally {
    sampler.stop();
  }
  const seconds = (report.endedAt - report.startedAt) / 1000;
  const latency = new LatencyCounts();
  latency.merge(report.latency);
  const points = report.series.map(({ at, seconds: length, rows, counts }) => {
    const own = new LatencyCounts();
    own.merge(counts);
    return { at, opsPerSecond: Math.round(rows / Math.max(length, 1e-6)), p99Us: own.percentileUs(0.99) };
  });
  const reads = workload.access === 'read' && !workload.missing;
  return {
    workload: workload.id,
    ...place,
    startedAt,
    state: report.rows > 0 ? 'ok' : 'failed',
    ...(report.rows > 0 ? {} : { error: 'no row was served' }),
    seconds,
    requests: report.rows,
    opsPerSecond: seconds > 0 ? report.rows / seconds : 0,
    errors: 0,
    hits: reads ? report.hits : 0,
    misses: reads ? report.misses : 0,
    userBytesWritten: workload.access === 'write' ? report.userBytes : null,
    latency: latency.summary(),
    resources: resourcesOf(sampler.samples, report.startedAt, report.endedAt),
    client: { workers: 1, cpuSeconds: null, utilisation: report.utilisation, gcPauseMs: null },
    series: seriesOf(sampler.samples, points, report.startedAt),
  };
}
