/** Two results documents side by side: what became higher or lower, and whether that is proven. */
import type { Results, Run } from '../results/document.ts';
import { voidingBadges } from './cells.ts';
import { compare, median, type Difference } from './statistics.ts';

export interface ComparedRow {
  workload: string;
  label: string;
  target: string;
  before: number;
  after: number;
  difference: Difference;
  /** Badges on either side that leave nothing to be proven, as `NOISY before`; empty: none. */
  voidedBy: string[];
  /** Lower by more than was allowed, and proven. */
  regression: boolean;
}

export interface ComparedResults {
  rows: ComparedRow[];
  /** In one of the two only. */
  unmatched: string[];
  /** Settings that differ and so may be the reason for a difference. */
  differences: string[];
}

const okRuns = (results: Results, workload: string, target: string): Run[] =>
  results.runs.filter((run) => run.workload === workload && run.target === target && run.state === 'ok');

/** @param maxRegression share of the rate that may be lost, e.g. 0.05 */
export function compareResults(before: Results, after: Results, maxRegression: number): ComparedResults {
  const rows: ComparedRow[] = [];
  const unmatched: string[] = [];
  // Two runs of one target under different names, as host:port, are compared all the same.
  const single = before.targets.length === 1 && after.targets.length === 1;
  for (const workload of before.workloads) {
    for (const target of before.targets) {
      const other = single ? after.targets[0].id : target.id;
      const a = okRuns(before, workload.id, target.id).map(({ opsPerSecond }) => opsPerSecond);
      const b = okRuns(after, workload.id, other).map(({ opsPerSecond }) => opsPerSecond);
      if (a.length === 0 || b.length === 0) {
        unmatched.push(`${target.id} ${workload.id}`);
        continue;
      }
      const difference = compare(b, a);
      const badges = (results: Results, id: string, when: string): string[] => {
        const cell = results.cells.find((one) => one.workload === workload.id && one.target === id);
        return cell === undefined ? [] : voidingBadges(cell).map((name) => `${name} ${when}`);
      };
      const voidedBy = [...badges(before, target.id, 'before'), ...badges(after, other, 'after')];
      rows.push({
        workload: workload.id,
        label: workload.label,
        target: target.label,
        before: median(a),
        after: median(b),
        difference,
        voidedBy,
        regression:
          voidedBy.length === 0 && difference.verdict === 'lower' && difference.ratio < 1 - maxRegression,
      });
    }
  }
  return { rows, unmatched, differences: settingsThatDiffer(before, after) };
}

function settingsThatDiffer(before: Results, after: Results): string[] {
  const flat = (results: Results): Record<string, string> => ({
    ...Object.fromEntries(Object.entries(results.options).map(([name, value]) => [name, String(value)])),
    processor: results.environment.cpuModel,
    processors: String(results.environment.cpuCount),
    kernel: results.environment.kernel,
    node: results.environment.nodeVersion,
    filesystem: results.environment.filesystem,
    ...Object.fromEntries(results.targets.map(({ id, version }) => [`${id} version`, version])),
    ...Object.fromEntries(results.targets.map(({ id, commandLine }) => [`${id} command`, commandLine])),
  });
  const [a, b] = [flat(before), flat(after)];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])]
    .filter((name) => name !== 'seed' && a[name] !== b[name])
    .map((name) => `${name}: ${a[name] ?? '–'} → ${b[name] ?? '–'}`);
}
