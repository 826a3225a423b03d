/** A load worker: opens its connections, waits for the common start, runs its loop, reports. */
import { readFileSync } from 'node:fs';
import { PerformanceObserver } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { ReplyKind } from '../resp/reply-scanner.ts';
import type { CommandDefaults } from '../workloads/command-line.ts';
import { parseDistribution } from '../workloads/distribution.ts';
import { createRequestSource, KeyDraws, longestValue } from '../workloads/request-source.ts';
import { largest, parseSizes, ValuePool } from '../workloads/values.ts';
import { ClosedLoop } from './closed-loop.ts';
import { LoadControl } from './control.ts';
import { IoredisLane } from './ioredis-lane.ts';
import type { Lane, LaneEvents } from './lane.ts';
import type { LoadReport, LoadSpec } from './load-spec.ts';
import type { Loop } from './loop.ts';
import { OpenLoop } from './open-loop.ts';
import { RawLane, ReadBuffer } from './raw-lane.ts';
import { Recorder } from './recorder.ts';
import { ReadCheck } from './read-check.ts';

const TICK_MS = 20;

/** Processor time of this thread (schedstat of proc(5)); null where the kernel does not keep it. */
function threadCpuMs(): number | null {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]) / 1e6;
  } catch {
    return null;
  }
}

export default async function runLoad(spec: LoadSpec): Promise<LoadReport> {
  const control = new LoadControl(spec.control);
  const values = parseSizes(spec.valueSizes);
  const defaults: CommandDefaults = {
    distribution: parseDistribution(spec.distribution),
    keyspace: spec.keyspace,
    values,
  };
  const pool = new ValuePool(
    spec.seed,
    spec.compressibility,
    Math.max(largest(values), longestValue(spec.mix, defaults)),
  );
  const recorder = new Recorder(spec, control);
  const check = spec.verify ? new ReadCheck(spec.mix, pool, values, recorder) : null;

  let failure: string | null = null;
  let finish: () => void = () => {};
  let loop: Loop | null = null;
  let lastReplyAt = 0;
  const fail = (reason: string): void => {
    failure ??= reason;
    finish();
  };

  const lanes: Lane[] = [];
  const events: LaneEvents = {
    replies(lane, count, kinds, unusual) {
      const now = performance.now();
      lastReplyAt = now;
      loop!.replies(lane, count, kinds, unusual, now);
      if (loop!.done) finish();
    },
    error(text) {
      recorder.firstError ??= text;
    },
    payload(operation, key, kind, reply) {
      if (kind === ReplyKind.Value) check!.reply(operation, key, reply);
    },
    closed(_lane, reason) {
      fail(`connection lost: ${reason}`);
    },
  };

  const draws = new KeyDraws(spec.seed, { index: spec.worker, of: spec.workers });
  const shared = new ReadBuffer();
  const opening = Array.from({ length: spec.connections }, (_, index) => {
    const source = createRequestSource({
      mix: spec.mix,
      defaults,
      pool,
      seed: spec.seed + spec.worker + index * spec.workers + 1,
      batch: spec.pipeline,
      draws,
      verifiable: spec.verify,
    });
    return spec.driver === 'raw'
      ? RawLane.open(spec.address, index, source, events, shared, spec.verify)
      : IoredisLane.open(spec.address, index, source, events);
  });
  const opened = await Promise.allSettled(opening);
  const refused = opened.find((result) => result.status === 'rejected');
  lanes.push(...opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])));
  if (refused !== undefined) {
    for (const lane of lanes) lane.close();
    control.ready();
    return {
      ...recorder.report(),
      userBytes: 0,
      unsent: 0,
      utilisation: 0,
      cpuShare: null,
      gcPauseMs: 0,
      interrupted: control.stopped,
      failure: `cannot connect: ${(refused.reason as Error).message}`,
    };
  }

  control.ready();
  while (!control.started && !control.stopped) await sleep(1);

  let gcPauseMs = 0;
  const collections = new PerformanceObserver((list) => {
    for (const entry of list.getEntries())
      if (entry.startTime >= recorder.startedAt) gcPauseMs += entry.duration;
  });
  collections.observe({ entryTypes: ['gc'] });
  let before = performance.eventLoopUtilization();
  let cpuBefore = threadCpuMs();
  let cpuFrom = performance.now();
  const userBytesBefore = (): number => lanes.reduce((sum, lane) => sum + lane.source.userBytes, 0);
  let userBytes = 0;
  const onMeasure = (): void => {
    before = performance.eventLoopUtilization();
    cpuBefore = threadCpuMs();
    cpuFrom = performance.now();
    userBytes = userBytesBefore();
  };
  const running =
    spec.open === null
      ? new ClosedLoop(lanes, spec, recorder, control, onMeasure)
      : new OpenLoop(lanes, spec, recorder, control, onMeasure);
  loop = running;
  if (failure === null) {
    await new Promise<void>((resolve) => {
      finish = resolve;
      const start = performance.now();
      lastReplyAt = start;
      const timer = setInterval(() => {
        const now = performance.now();
        running.tick(now);
        if (!running.done && now - lastReplyAt > spec.timeoutSeconds * 1000) {
          fail(`no reply for ${spec.timeoutSeconds} s`);
        }
        if (running.done) resolve();
      }, TICK_MS);
      finish = () => {
        clearInterval(timer);
        resolve();
      };
      running.start(start);
      if (running.done) finish();
    });
  }
  const utilisation = performance.eventLoopUtilization(before).utilization;
  const cpu = threadCpuMs();
  const cpuShare =
    cpu === null || cpuBefore === null ? null : (cpu - cpuBefore) / (performance.now() - cpuFrom);
  const sent = userBytesBefore() - userBytes;
  for (const lane of lanes) lane.close();
  await sleep(0);
  collections.disconnect();
  return {
    ...recorder.report(),
    userBytes: sent,
    unsent: running.unsent,
    utilisation,
    cpuShare,
    gcPauseMs,
    interrupted: control.stopped,
    failure,
  };
}
