/**
 * Open loop: requests are due at times of their own, whether or not earlier ones were answered. The
 * latency runs from the moment at which a request was due, so that a stall of the server counts for all
 * requests that came during it and not only for those that were in flight ("coordinated omission",
 * G. Tene). The time from the real send is recorded beside it.
 *
 * A request that is due takes a free connection, the one that has been free longest; when all are busy
 * it waits, and its time runs.
 */
import type { LoadControl } from './control.ts';
import type { Lane } from './lane.ts';
import type { LoadSpec } from './load-spec.ts';
import { Loop, STOP_PATIENCE_MS } from './loop.ts';
import type { Recorder } from './recorder.ts';
import { Random } from '../workloads/random.ts';
import { ReplyKind } from '../resp/reply-scanner.ts';

/** When the next request is due further away than this, a timer (exact to about 1 ms) waits for it. */
const TIMER_WORTH_MS = 2;

export class OpenLoop extends Loop {
  private readonly random: Random;
  private readonly depth: number;
  /** Per lane a ring of `depth` requests in flight: due, sent, operation. */
  private readonly dueAt: Float64Array;
  private readonly sentAt: Float64Array;
  private readonly operation: Uint8Array;
  private readonly head: Int32Array;
  private readonly inFlight: Int32Array;
  /** Ring of lanes that can take a request, each as often as it can. */
  private readonly free: Int32Array;
  private freeHead = 0;
  private freeCount = 0;
  private nextDue = 0;
  private readonly gapMs: number;
  private measureFrom = 0;
  private scheduled = false;

  constructor(
    lanes: readonly Lane[],
    spec: LoadSpec,
    recorder: Recorder,
    control: LoadControl,
    onMeasure: () => void,
  ) {
    super(lanes, spec, recorder, control, onMeasure);
    const depth = spec.pipeline;
    const places = lanes.length * depth;
    this.random = new Random(spec.seed, 0x0be7 + spec.worker);
    this.depth = depth;
    this.dueAt = new Float64Array(places);
    this.sentAt = new Float64Array(places);
    this.operation = new Uint8Array(places);
    this.head = new Int32Array(lanes.length);
    this.inFlight = new Int32Array(lanes.length);
    this.free = Int32Array.from({ length: places }, (_, i) => i % lanes.length);
    this.freeCount = places;
    this.gapMs = 1000 / spec.open!.rate;
  }

  start(now: number): void {
    // Workers' schedules interleave.
    this.nextDue = now + (this.gapMs * this.spec.worker) / this.spec.workers;
    this.measureFrom = now + this.spec.warmupSeconds * 1000;
    if (this.spec.seconds !== null) this.deadline = this.measureFrom + this.spec.seconds * 1000;
    this.pump(now);
  }

  private gap(): number {
    return this.spec.open!.arrivals === 'regular'
      ? this.gapMs
      : -Math.log(1 - this.random.fraction()) * this.gapMs;
  }

  /** Sends what is due. */
  private pump(now: number): void {
    if (this.done) return;
    while (this.nextDue <= now && this.nextDue < this.deadline && this.left > 0 && this.freeCount > 0) {
      if (this.control.stopped) break;
      if (!this.measuring && this.nextDue >= this.measureFrom) this.begin(now);
      this.send(this.nextDue, now);
      this.nextDue += this.gap();
    }
    if (!this.measuring && now >= this.measureFrom) this.begin(now);
    if (this.nextDue >= this.deadline || this.left <= 0 || this.control.stopped) {
      if (this.freeCount === this.free.length) this.finish(now);
      return;
    }
    if (this.freeCount > 0) this.schedule(now);
  }

  private begin(now: number): void {
    this.measure(Math.max(this.measureFrom, Math.min(now, this.nextDue)));
  }

  private schedule(now: number): void {
    if (this.scheduled) return;
    this.scheduled = true;
    const go = (): void => {
      this.scheduled = false;
      this.pump(performance.now());
    };
    const wait = this.nextDue - now;
    if (wait > TIMER_WORTH_MS) setTimeout(go, Math.min(100, Math.floor(wait) - 1));
    else setImmediate(go);
  }

  private send(due: number, now: number): void {
    const lane = this.free[this.freeHead];
    this.freeHead = (this.freeHead + 1) % this.free.length;
    this.freeCount--;
    const place = lane * this.depth + ((this.head[lane] + this.inFlight[lane]++) % this.depth);
    this.dueAt[place] = due;
    this.sentAt[place] = now;
    this.lanes[lane].send(1);
    this.operation[place] = this.lanes[lane].source.operations[0];
    if (due >= this.measureFrom) this.left--;
  }

  replies(lane: number, count: number, kinds: Uint8Array, _unusual: number, now: number): void {
    for (let i = 0; i < count; i++) {
      const place = lane * this.depth + this.head[lane];
      this.head[lane] = (this.head[lane] + 1) % this.depth;
      this.inFlight[lane]--;
      this.free[(this.freeHead + this.freeCount++) % this.free.length] = lane;
      const due = this.dueAt[place];
      if (due < this.measureFrom) continue;
      this.recorder.due(now - due);
      this.recorder.reply(this.operation[place], now - this.sentAt[place], now);
      this.recorder.kind(this.operation[place], kinds[i] as ReplyKind);
    }
    this.pump(now);
  }

  tick(now: number): void {
    if (now > this.deadline + STOP_PATIENCE_MS) this.finish(now);
    else if (this.abandoned(now)) this.finish(now);
    else this.pump(now);
  }

  /** What was due and never sent has waited at least until now, and counts so. */
  private finish(now: number): void {
    if (this.done) return;
    this.done = true;
    if (this.control.stopped) return;
    const end = Math.min(now, this.deadline);
    for (; this.nextDue < end && this.left > 0; this.nextDue += this.gap(), this.left--) {
      if (this.nextDue < this.measureFrom) continue;
      this.unsent++;
      this.recorder.due(now - this.nextDue);
    }
  }
}
