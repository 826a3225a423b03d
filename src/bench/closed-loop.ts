/**
 * Closed loop: every connection sends a batch, waits for all of its replies and sends the next, as
 * redis-benchmark does. The latency is the service time at so many requests in flight; it says nothing
 * about a caller who comes at a time of its own (see open-loop.ts).
 */
import type { LoadControl } from './control.ts';
import type { Lane } from './lane.ts';
import type { LoadSpec } from './load-spec.ts';
import { Loop } from './loop.ts';
import type { Recorder } from './recorder.ts';
import { ReplyKind } from '../resp/reply-scanner.ts';

export class ClosedLoop extends Loop {
  private readonly sentAt: Float64Array;
  private readonly asked: Int32Array;
  private readonly answered: Int32Array;
  /** Whether the batch in flight belongs to the measured part. */
  private readonly counted: Uint8Array;
  private readonly mixed: boolean;
  private warmupLeft: number;
  private warmupEnds = 0;
  private busyLanes = 0;

  constructor(
    lanes: readonly Lane[],
    spec: LoadSpec,
    recorder: Recorder,
    control: LoadControl,
    onMeasure: () => void,
  ) {
    super(lanes, spec, recorder, control, onMeasure);
    this.sentAt = new Float64Array(lanes.length);
    this.asked = new Int32Array(lanes.length);
    this.answered = new Int32Array(lanes.length);
    this.counted = new Uint8Array(lanes.length);
    this.mixed = spec.mix.length > 1;
    this.warmupLeft = spec.warmupSeconds > 0 ? (spec.warmupRequests ?? Infinity) : 0;
  }

  start(now: number): void {
    this.warmupEnds = now + this.spec.warmupSeconds * 1000;
    for (let lane = 0; lane < this.lanes.length; lane++) this.send(lane, now);
    this.finishWhenIdle();
  }

  private send(lane: number, now: number): void {
    let count = this.spec.pipeline;
    if (!this.measuring) {
      if (this.warmupLeft <= 0 || now >= this.warmupEnds) {
        this.measure(now);
        if (this.spec.seconds !== null) this.deadline = now + this.spec.seconds * 1000;
      } else {
        count = Math.min(count, this.warmupLeft);
        this.warmupLeft -= count;
      }
    }
    if (this.measuring) {
      if (now >= this.deadline || this.left <= 0 || this.control.stopped) return;
      count = Math.min(count, this.left);
      this.left -= count;
    }
    this.counted[lane] = this.measuring ? 1 : 0;
    this.asked[lane] = count;
    this.answered[lane] = 0;
    this.sentAt[lane] = now;
    this.busyLanes++;
    this.lanes[lane].send(count);
  }

  replies(lane: number, count: number, kinds: Uint8Array, unusual: number, now: number): void {
    if (this.counted[lane] === 1) {
      const serviceMs = now - this.sentAt[lane];
      if (this.mixed) {
        const { operations } = this.lanes[lane].source;
        for (let i = 0, at = this.answered[lane]; i < count; i++, at++) {
          this.recorder.reply(operations[at], serviceMs, now);
          this.recorder.kind(operations[at], kinds[i] as ReplyKind);
        }
      } else {
        this.recorder.replies(count, serviceMs, now);
        if (unusual === 0) this.recorder.values(count);
        else for (let i = 0; i < count; i++) this.recorder.kind(0, kinds[i] as ReplyKind);
      }
    }
    this.answered[lane] += count;
    if (this.answered[lane] >= this.asked[lane]) {
      this.busyLanes--;
      this.send(lane, now);
      this.finishWhenIdle();
    }
  }

  tick(now: number): void {
    if (this.abandoned(now)) this.done = true;
  }

  private finishWhenIdle(): void {
    if (this.busyLanes === 0) this.done = true;
  }
}
