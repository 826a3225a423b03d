/** What the closed and the open loop have in common: what they send on, when measuring begins, and when it ends. */
import type { LoadControl } from './control.ts';
import type { Lane } from './lane.ts';
import type { LoadSpec } from './load-spec.ts';
import type { Recorder } from './recorder.ts';

/** After a stop, replies that are still outstanding are waited for so long. */
export const STOP_PATIENCE_MS = 500;

/** A way to send load. */
export abstract class Loop {
  done = false;
  /** Requests that were due but not sent. */
  unsent = 0;
  protected readonly lanes: readonly Lane[];
  protected readonly spec: LoadSpec;
  protected readonly recorder: Recorder;
  protected readonly control: LoadControl;
  private readonly onMeasure: () => void;
  protected measuring = false;
  /** Requests of the measured part that are still to be sent. */
  protected left: number;
  /** End of the measured part; Infinity: there is none, or it has not begun. */
  protected deadline = Infinity;

  /** @param onMeasure called when the warm-up is over */
  constructor(
    lanes: readonly Lane[],
    spec: LoadSpec,
    recorder: Recorder,
    control: LoadControl,
    onMeasure: () => void,
  ) {
    this.lanes = lanes;
    this.spec = spec;
    this.recorder = recorder;
    this.control = control;
    this.onMeasure = onMeasure;
    this.left = spec.requests ?? Infinity;
  }

  abstract start(now: number): void;
  /** Replies to the oldest requests of `lane`; kinds as in LaneEvents. */
  abstract replies(lane: number, count: number, kinds: Uint8Array, unusual: number, now: number): void;
  /** Called every few milliseconds, for limits that no reply brings about. */
  abstract tick(now: number): void;

  /** The measured part begins, at `from`. */
  protected measure(from: number): void {
    this.measuring = true;
    this.recorder.begin(from);
    this.onMeasure();
  }

  /** Asked to stop, and no reply for a while. */
  protected abandoned(now: number): boolean {
    return this.control.stopped && now - this.recorder.endedAt > STOP_PATIENCE_MS;
  }
}
