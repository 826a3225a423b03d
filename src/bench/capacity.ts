/**
 * The way to the knee: rates stepped up until the target no longer follows. What a user wants to know of
 * a server is the latency below the knee; above it the queue grows and latency says only for how long.
 */
import type { Capacity, Run, WorkloadInfo } from '../results/document.ts';
import { median } from './statistics.ts';

/** An open loop that reaches less than this of its rate is overloaded. */
export const RATE_REACHED = 0.98;
const MAX_STEPS = 200;

/** Rates of `from:to:step`. */
export function stepRates(spec: string): number[] {
  const [from, to, step] = spec.split(':').map(Number);
  if (!(from > 0) || !(to >= from) || !(step > 0) || spec.split(':').length !== 3) {
    throw new RangeError(
      `--steps ${spec}: expected from:to:step in operations per second, e.g. 10000:100000:10000`,
    );
  }
  const count = Math.floor((to - from) / step + 1e-9) + 1;
  if (count > MAX_STEPS) throw new RangeError(`--steps ${spec}: ${count} steps, at most ${MAX_STEPS}`);
  return Array.from({ length: count }, (_, index) => from + index * step);
}

/** Curves of workloads that were run at several rates: one a workload (without its rate) and target. */
export function capacitiesOf(workloads: readonly WorkloadInfo[], runs: readonly Run[]): Capacity[] {
  const curves = new Map<string, Capacity>();
  for (const workload of workloads) {
    if (workload.rate === null) continue;
    for (const target of new Set(runs.map((run) => run.target))) {
      const made = runs.filter(
        (run) => run.workload === workload.id && run.target === target && run.state === 'ok',
      );
      if (made.length === 0) continue;
      const name = workload.id.replace(/@[\d.]+$/, '');
      const key = `${name} ${target}`;
      let curve = curves.get(key);
      if (curve === undefined) {
        curves.set(key, (curve = { workload: name, target, steps: [], kneeOpsPerSecond: null }));
      }
      const opsPerSecond = median(made.map((run) => run.opsPerSecond));
      const overloaded = opsPerSecond < workload.rate * RATE_REACHED;
      const of = (percentile: 'p50Us' | 'p99Us', latency: 'latency' | 'intendedLatency'): number =>
        median(made.flatMap((run) => run[latency]?.[percentile] ?? []));
      curve.steps.push({
        rateAsked: workload.rate,
        opsPerSecond,
        p50Us: of('p50Us', 'intendedLatency'),
        p99Us: of('p99Us', 'intendedLatency'),
        serviceP99Us: of('p99Us', 'latency'),
        overloaded,
      });
      if (!overloaded) curve.kneeOpsPerSecond = Math.max(curve.kneeOpsPerSecond ?? 0, opsPerSecond);
    }
  }
  return [...curves.values()].filter((curve) => curve.steps.length > 1);
}

/** What a user is well advised to load a server with, as shares of the knee. */
const SHARES_OF_KNEE = [0.5, 0.7, 0.9];

/** p99 at the highest measured rates that are at most 50, 70 and 90% of the knee; none where no rate is that low. */
export function latencyBelowKnee({ steps, kneeOpsPerSecond }: Capacity): { share: number; p99Us: number }[] {
  if (kneeOpsPerSecond === null) return [];
  return SHARES_OF_KNEE.flatMap((share) => {
    const step = steps.findLast(
      ({ overloaded, opsPerSecond }) => !overloaded && opsPerSecond <= share * kneeOpsPerSecond * 1.01,
    );
    return step === undefined ? [] : [{ share, p99Us: step.p99Us }];
  });
}
