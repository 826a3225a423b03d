/** What one worker counts during one run: replies, latencies, misses, errors, and the same by interval. */
import { LatencyCounts } from './latency.ts';
import type { LoadControl } from './control.ts';
import type { LoadInterval, LoadReport, LoadSpec } from './load-spec.ts';
import { ReplyKind } from '../resp/reply-scanner.ts';

export class Recorder {
  requests = 0;
  errors = 0;
  hits = 0;
  misses = 0;
  firstError: string | null = null;
  checked = 0;
  wrong = 0;
  firstWrong: string | null = null;
  /** Event-loop clock (performance.now) of the first and the latest moment of measuring. */
  startedAt = 0;
  endedAt = 0;
  private readonly service = new LatencyCounts();
  private readonly intended: LatencyCounts | null;
  private readonly interval = new LatencyCounts();
  private readonly operations:
    { requests: number; errors: number; misses: number; service: LatencyCounts }[] | null;
  private readonly intervals: LoadInterval[] = [];
  private readonly intervalMs: number;
  private intervalStart = 0;
  private intervalEnd = Infinity;
  /** Per operation: a null or empty reply is a miss. */
  private readonly missable: boolean[];
  private readonly control: LoadControl;
  private readonly worker: number;

  constructor(spec: LoadSpec, control: LoadControl) {
    this.intended = spec.open === null ? null : new LatencyCounts();
    this.operations =
      spec.mix.length === 1
        ? null
        : spec.mix.map(() => ({ requests: 0, errors: 0, misses: 0, service: new LatencyCounts() }));
    this.missable = spec.mix.map(({ access }) => access === 'read' || access === 'pop');
    this.intervalMs = spec.intervalSeconds * 1000;
    this.control = control;
    this.worker = spec.worker;
  }

  /** Measuring begins. */
  begin(now: number): void {
    this.startedAt = this.endedAt = this.intervalStart = now;
    this.intervalEnd = now + this.intervalMs;
  }

  /** `count` replies to requests of a single-operation mix, sent together and received together. */
  replies(count: number, serviceMs: number, now: number): void {
    if (now >= this.intervalEnd) this.cut(now);
    this.requests += count;
    this.service.record(serviceMs, count);
    this.interval.record(serviceMs, count);
    this.endedAt = now;
  }

  /** One reply, and which operation it answers. */
  reply(operation: number, serviceMs: number, now: number): void {
    this.replies(1, serviceMs, now);
    if (this.operations !== null) {
      this.operations[operation].requests++;
      this.operations[operation].service.record(serviceMs, 1);
    }
  }

  /** Open loop: latency from the moment at which the request was due. */
  due(intendedMs: number): void {
    this.intended!.record(intendedMs, 1);
  }

  /** The kind of a reply that was counted, when the operation can miss or the reply is no plain value. */
  kind(operation: number, kind: ReplyKind): void {
    if (kind === ReplyKind.Error) {
      this.errors++;
      if (this.operations !== null) this.operations[operation].errors++;
    } else if (this.missable[operation]) {
      if (kind === ReplyKind.Value) this.hits++;
      else {
        this.misses++;
        if (this.operations !== null) this.operations[operation].misses++;
      }
    }
  }

  /** `count` plain values for a single-operation mix. */
  values(count: number): void {
    if (this.missable[0]) this.hits += count;
  }

  private cut(now: number): void {
    const seconds = (now - this.intervalStart) / 1000;
    this.intervals.push({
      at: (now - this.startedAt) / 1000,
      seconds,
      requests: this.interval.total,
      counts: this.interval.toSparse(),
    });
    this.control.report(this.worker, this.requests, this.interval.percentileUs(0.99));
    this.interval.reset();
    this.intervalStart = now;
    this.intervalEnd = now + this.intervalMs;
  }

  report(): Omit<
    LoadReport,
    'utilisation' | 'cpuShare' | 'gcPauseMs' | 'interrupted' | 'failure' | 'userBytes' | 'unsent'
  > {
    if (this.interval.total > 0) this.cut(this.endedAt);
    return {
      startedAt: performance.timeOrigin + this.startedAt,
      endedAt: performance.timeOrigin + this.endedAt,
      requests: this.requests,
      errors: this.errors,
      firstError: this.firstError,
      hits: this.hits,
      misses: this.misses,
      verified:
        this.checked === 0 ? null : { checked: this.checked, wrong: this.wrong, firstWrong: this.firstWrong },
      service: this.service.toSparse(),
      intended: this.intended?.toSparse() ?? null,
      operations:
        this.operations?.map(({ service, ...counts }) => ({ ...counts, service: service.toSparse() })) ??
        null,
      intervals: this.intervals,
    };
  }
}
