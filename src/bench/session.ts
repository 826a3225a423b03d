/**
 * One life of a target: started fresh, loaded, left alone until it has written back, asked every row in
 * order, stopped. A row that fails is recorded and does not lose the others.
 */
import { statfsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Run, Session } from '../results/document.ts';
import { STRINGS } from '../workloads/builtin.ts';
import type { Preload } from '../workloads/workload.ts';
import { runRedisBenchmark } from './redis-benchmark.ts';
import type { LiveLoad } from './control.ts';
import type { LoadOptions, LoadOutcome, LoadPool } from './load.ts';
import type { LoadSettings, Row } from './plan.ts';
import { sampleProcess } from './process-sample.ts';
import { resourcesOf, Sampler, seriesOf } from './sampler.ts';
import type { RunningTarget, Target } from './target.ts';

/** Requests in flight per connection, and connections, while data are loaded. */
const LOAD_PIPELINE = 64;
const LOAD_CONNECTIONS = 8;
const LOAD_TIMEOUT_SECONDS = 60;
/** Settled: for so long the target neither writes nor computes noticeably. */
const QUIET_MS = 300;
const QUIET_SAMPLE_MS = 50;
const QUIET_CPU_SHARE = 0.1;
/** Less free space than this, and a server's next append may fail. */
const DISK_FULL_BYTES = 1024 ** 2;

/** What a server says to a command that it does not have, or only half. */
const UNKNOWN_COMMAND = /unknown (sub)?command/i;

/** Who wants to see what goes on. */
export interface Watcher {
  /** A session begins; `position` of `of` sessions. */
  session(target: string, repeat: number): void;
  phase(text: string): void;
  /** Load is on: how far it is, and the target's use of the machine. */
  running(load: LiveLoad | null, sampler: Sampler): void;
  finished(run: Run): void;
}

export class RunFailure extends Error {}

export interface SessionOutcome {
  session: Session;
  runs: Omit<Run, 'session' | 'order'>[];
}

export interface SessionOptions {
  target: Target;
  repeat: number;
  rows: readonly Row[];
  settings: LoadSettings;
  drainSeconds: number;
  pool: LoadPool;
  watcher: Watcher;
  /** True once the bench was asked to stop. */
  stopping(): boolean;
}

const now = (): string => new Date().toISOString();

/** Never throws for what a target does: failures are in the outcome. */
export async function runSession(options: SessionOptions): Promise<SessionOutcome> {
  const { target, repeat, watcher } = options;
  const session: Session = {
    target: target.info.id,
    repeat,
    startedAt: now(),
    startSeconds: null,
    state: 'ok',
    load: null,
    drain: null,
    end: null,
  };
  const outcome: SessionOutcome = { session, runs: [] };
  watcher.session(target.info.label, repeat);
  watcher.phase('start');
  let running: RunningTarget;
  try {
    running = await target.start();
  } catch (error) {
    session.state = 'failed';
    session.error = (error as Error).message;
    return outcome;
  }
  try {
    session.startSeconds = running.startSeconds;
    await new Life(options, running, outcome).live();
  } catch (error) {
    session.state = 'failed';
    session.error = running.death() ?? (error as Error).message;
  } finally {
    await running.stop();
  }
  return outcome;
}

class Life {
  private readonly options: SessionOptions;
  private readonly target: RunningTarget;
  private readonly outcome: SessionOutcome;
  private readonly loaded = new Set<string>();

  constructor(options: SessionOptions, target: RunningTarget, outcome: SessionOutcome) {
    this.options = options;
    this.target = target;
    this.outcome = outcome;
  }

  async live(): Promise<void> {
    const { rows, settings, stopping } = this.options;
    const { session } = this.outcome;
    const wanted = rows.some((row) => row.workload.preload.some(({ id }) => id === STRINGS.id));
    if (settings.preload && wanted) await this.loadStrings();
    for (const row of rows) {
      if (stopping()) return;
      await this.runRow(row);
      const death = this.target.death();
      if (death !== null) throw new RunFailure(`the target died: ${death}`);
    }
    session.end = {
      diskBytes: this.takeSample().diskBytes,
      userBytes: session.load?.userBytes ?? null,
      keys: Number(await this.target.control.call('DBSIZE')),
    };
  }

  private sampler(): Sampler {
    const { pid, dataDirectory } = this.target;
    return new Sampler({ pid, dataDirectory });
  }

  private takeSample(): ReturnType<Sampler['take']> {
    return this.sampler().take();
  }

  /** The strings of the key space, and the wait until they are written back. */
  private async loadStrings(): Promise<void> {
    const { settings, watcher, target } = this.options;
    const { session } = this.outcome;
    const sampler = this.sampler();
    sampler.take();
    watcher.phase(`load ${settings.keyspace.toLocaleString('en')} keys`);
    const outcome = await this.send(STRINGS, settings.keyspace);
    this.loaded.add(STRINGS.id);
    const foundKeys = Number(await this.target.control.call(STRINGS.proof));
    session.load = {
      keys: settings.keyspace,
      userBytes: outcome.userBytes,
      seconds: outcome.seconds,
      foundKeys,
    };
    const enough =
      target.info.kind === 'foreign' ? foundKeys >= settings.keyspace : foundKeys === settings.keyspace;
    if (!enough) {
      throw new RunFailure(`the load of ${settings.keyspace} keys left ${foundKeys} (${STRINGS.proof})`);
    }
    watcher.phase('drain');
    const began = performance.now();
    // Ours writes back when it must; BGREWRITEAOF makes it do so now.
    if (target.info.kind === 'ardent') {
      await this.target.control.call('BGREWRITEAOF');
      while ((await this.target.control.info()).aof_rewrite_in_progress === '1') await sleep(QUIET_SAMPLE_MS);
    }
    const settled = await this.drain();
    const sample = sampler.take();
    session.drain = {
      seconds: (performance.now() - began) / 1000,
      writeBytes: resourcesOf(sampler.samples)?.writeBytes ?? null,
      diskBytes: sample.diskBytes,
      settled,
    };
  }

  /** Until the target is quiet. */
  private async drain(): Promise<boolean> {
    const { pid } = this.target;
    if (pid === null || this.options.drainSeconds === 0) return true;
    const deadline = performance.now() + this.options.drainSeconds * 1000;
    let quietSince = performance.now();
    let before = sampleProcess(pid);
    while (performance.now() < deadline && before !== null && !this.options.stopping()) {
      await sleep(QUIET_SAMPLE_MS);
      const sample = sampleProcess(pid);
      if (sample === null) return false;
      const busy = (sample.cpuSeconds - before.cpuSeconds) * 1000 > QUIET_SAMPLE_MS * QUIET_CPU_SHARE;
      if (busy || sample.writeBytes !== before.writeBytes) quietSince = performance.now();
      else if (performance.now() - quietSince >= QUIET_MS) return true;
      before = sample;
    }
    return false;
  }

  /** What may be behind a failure: a server whose log cannot be written does not answer. */
  private diskFull(): string {
    const { dataDirectory } = this.target;
    if (dataDirectory === null) return '';
    const { bavail, bsize } = statfsSync(dataDirectory);
    return bavail * bsize < DISK_FULL_BYTES ? `; no space is left where its data are, ${dataDirectory}` : '';
  }

  /** Sends a preload's command `count` times. */
  private async send(preload: Preload, count: number): Promise<LoadOutcome> {
    const { settings, pool } = this.options;
    const outcome = await pool.run({
      ...this.loadOptions(settings, LOAD_PIPELINE),
      driver: this.target.address.cluster === true ? 'ioredis' : 'raw',
      mix: [{ line: preload.line, weight: 1, access: 'write', name: 'load' }],
      connections: Math.min(LOAD_CONNECTIONS, settings.connections),
      open: null,
      requests: count,
      seconds: null,
      warmupSeconds: 0,
      warmupRequests: null,
      timeoutSeconds: LOAD_TIMEOUT_SECONDS,
    });
    if (outcome.failure !== null) throw new RunFailure(`load: ${outcome.failure}${this.diskFull()}`);
    if (outcome.errors > 0)
      throw new RunFailure(
        `load: ${outcome.errors} errors, the first: ${outcome.firstError}${outcome.firstError?.startsWith('MOVED') ? ' (--cluster --driver ioredis goes where it is told)' : ''}`,
      );
    return outcome;
  }

  private loadOptions(
    settings: LoadSettings,
    pipeline: number,
  ): Omit<LoadOptions, 'mix' | 'open' | 'warmupRequests' | 'driver'> {
    return {
      address: this.target.address,
      keyspace: settings.keyspace,
      distribution: settings.distribution,
      valueSizes: settings.valueSizes,
      compressibility: settings.compressibility,
      verify: settings.verify,
      connections: settings.connections,
      pipeline,
      requests: settings.requests,
      seconds: settings.seconds,
      warmupSeconds: settings.warmupSeconds,
      intervalSeconds: settings.intervalSeconds,
      timeoutSeconds: settings.timeoutSeconds,
      seed: settings.seed + this.options.repeat,
      workers: settings.workers,
    };
  }

  /** Makes the data that a row reads, unless they are there, and proves that they are. */
  private async prepare(row: Row): Promise<void> {
    const { settings } = this.options;
    const { control } = this.target;
    for (const preload of row.workload.preload) {
      if (preload.id === STRINGS.id) continue;
      const wanted =
        preload.count === 'requests'
          ? (settings.requests ?? 0) + (row.warmupRequests ?? 0)
          : preload.count === 'keyspace'
            ? settings.keyspace
            : preload.count;
      const proof = async (): Promise<number> => Number(await control.call(preload.proof));
      if (!preload.everyRun && (await proof()) >= wanted) continue;
      this.options.watcher.phase(`prepare ${row.info.label}`);
      if (preload.reset !== undefined) await control.call(preload.reset);
      await this.send(preload, wanted);
      const found = await proof();
      if (found < wanted) throw new RunFailure(`${preload.proof} answers ${found} after a load of ${wanted}`);
    }
  }

  private async runRow(row: Row): Promise<void> {
    const { settings, pool, watcher, repeat, target } = this.options;
    const sampler = this.sampler();
    const startedAt = now();
    let outcome: LoadOutcome | null = null;
    let error: string | null = null;
    try {
      if (settings.preload) await this.prepare(row);
      watcher.phase(row.info.label);
      if (settings.driver === 'redis-benchmark') {
        sampler.start(settings.intervalSeconds);
        watcher.running(null, sampler);
        outcome = await runRedisBenchmark(row, settings, this.target.address);
      } else {
        outcome = await pool.run(
          {
            ...this.loadOptions(settings, row.pipeline),
            driver: settings.driver,
            mix: row.workload.operations,
            open: row.open,
            warmupRequests: row.warmupRequests,
          },
          (control) => {
            sampler.start(settings.intervalSeconds);
            watcher.running(control, sampler);
          },
        );
      }
      error = outcome.failure === null ? null : outcome.failure + this.diskFull();
    } catch (failure) {
      error = (failure as Error).message;
    } finally {
      sampler.stop();
    }
    const death = this.target.death();
    if (death !== null) error = `the target died: ${death}`;
    const run = toRun(row, target.info.id, repeat, settings.workers, startedAt, outcome, error, sampler);
    this.outcome.runs.push(run);
    watcher.finished({ ...run, session: 0, order: 0 });
  }
}

function toRun(
  row: Row,
  target: string,
  repeat: number,
  workers: number,
  startedAt: string,
  outcome: LoadOutcome | null,
  error: string | null,
  sampler: Sampler,
): SessionOutcome['runs'][number] {
  const failed = error !== null || outcome === null || outcome.requests === 0;
  const refusal = error ?? (outcome?.errors === outcome?.requests ? outcome?.firstError : null) ?? '';
  const unsupported = UNKNOWN_COMMAND.test(refusal);
  const { samples } = sampler;
  const from = outcome?.startedAt ?? 0;
  const first = samples[0];
  const last = samples.at(-1);
  return {
    workload: row.info.id,
    target,
    repeat,
    startedAt,
    state: unsupported ? 'unsupported' : failed ? 'failed' : 'ok',
    ...(unsupported
      ? { error: refusal.replace(/, with args .*/s, '') }
      : failed
        ? { error: error ?? 'no request was answered' }
        : {}),
    seconds: outcome?.seconds ?? 0,
    requests: outcome?.requests ?? 0,
    opsPerSecond: outcome?.opsPerSecond ?? 0,
    errors: outcome?.errors ?? 0,
    ...(outcome?.firstError ? { firstError: outcome.firstError } : {}),
    hits: outcome?.hits ?? 0,
    misses: outcome?.misses ?? 0,
    ...(outcome?.verified
      ? {
          verified: {
            checked: outcome.verified.checked,
            wrong: outcome.verified.wrong,
            ...(outcome.verified.firstWrong === null ? {} : { firstWrong: outcome.verified.firstWrong }),
          },
        }
      : {}),
    userBytesWritten:
      row.info.access === 'write' || row.info.access === 'mixed' ? (outcome?.userBytes ?? 0) : null,
    latency: outcome?.service ?? null,
    ...(row.open === null ? {} : { intendedLatency: outcome?.intended ?? null, rateAsked: row.open.rate }),
    ...(outcome?.operations
      ? {
          commands: outcome.operations.flatMap((operation, index) =>
            operation.latency === null
              ? []
              : [{ command: row.workload.operations[index].name, ...operation, latency: operation.latency }],
          ),
        }
      : {}),
    resources: outcome === null ? null : resourcesOf(samples, from, outcome.endedAt),
    client: {
      workers,
      cpuSeconds: first && last ? last.clientCpuSeconds - first.clientCpuSeconds : null,
      utilisation: outcome?.utilisation ?? null,
      cpuShare: outcome?.cpuShare ?? null,
      gcPauseMs: outcome?.gcPauseMs ?? null,
    },
    series: seriesOf(samples, outcome?.series ?? [], from),
  };
}
