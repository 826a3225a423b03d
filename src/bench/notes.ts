/** What a reader of results must know beyond the figures, in sentences. */
import type { Cell, Environment, Run, Session, TargetInfo } from '../results/document.ts';
import { voidingBadges } from './cells.ts';
import { engineCacheBytes } from './engine-cache.ts';
import type { Plan } from './plan.ts';
import { compare, median, RUNS_FOR_VERDICT } from './statistics.ts';

/** Servers that wait for a processor for more than this share of the time do not have the machine to themselves. */
const CROWDED_SHARE = 0.25;
/** Below this a run shows little of what is slow to come: compaction, growth, eviction. */
const SHORT_SECONDS = 30;
/** Rates of the first and last third of a run further apart than this: it was not in a steady state. */
const STEADY_CHANGE = 0.1;
/** Points of a time series that a third must have to tell a trend from noise. */
const POINTS_IN_A_THIRD = 4;
/** Data below this share of the machine's memory never need the disk to be read. */
const IN_MEMORY_SHARE = 0.5;

const millions = (bytes: number): string => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;

export function notesOf(
  plan: Plan,
  environment: Environment,
  cells: readonly Cell[],
  sessions: readonly Session[],
  runs: readonly Run[],
): string[] {
  const { settings } = plan;
  const targets = plan.targets.map(({ info }) => info);
  const notes: string[] = [];
  if (plan.rows.some(({ open }) => open === null)) {
    const depths = [...new Set(plan.rows.map(({ pipeline }) => pipeline * settings.connections))];
    notes.push(
      `Closed loop: latency is the service time at ${depths.join(' and ')} requests in flight, at the highest rate that the server gives.`,
    );
  }
  if (plan.repeats < RUNS_FOR_VERDICT && targets.length > 1)
    notes.push(`${plan.repeats} runs a side: medians only; a verdict needs at least ${RUNS_FOR_VERDICT}.`);
  notes.push(...dataNotes(plan, targets, environment, sessions));
  const differing = served(plan, targets, runs, cells);
  if (differing !== null) notes.push(differing);
  if (settings.seconds !== null && settings.seconds < SHORT_SECONDS) {
    notes.push(
      `A run lasts ${settings.seconds} s at most: what is slow to come, as compaction or growth, is hardly in it.`,
    );
  }
  const unsteady = unsteadyRows(plan, runs);
  if (unsteady.length > 0) {
    notes.push(
      `Not steady, the last third of the median run more than ${STEADY_CHANGE * 100}% off the first: ${unsteady.join(', ')}.`,
    );
  }
  const waits = runs.flatMap(({ resources, seconds }) =>
    resources?.cpuWaitSeconds == null || seconds === 0 ? [] : [resources.cpuWaitSeconds / seconds],
  );
  if (waits.length > 0 && median(waits) > CROWDED_SHARE) {
    notes.push(
      `The servers were ready to run but had no processor for ${(median(waits) * 100).toFixed(0)}% of the time (median): something else used the machine, and the figures are not to be trusted.`,
    );
  }
  const unsettled = sessions
    .filter(({ drain }) => drain !== null && !drain.settled)
    .map(({ target }) => target);
  if (unsettled.length > 0) {
    notes.push(
      `Still writing back when the rows began: ${[...new Set(unsettled)].join(', ')}. Part of the load's cost falls on the rows.`,
    );
  }
  const paths = targets.filter(({ kind, address }) => kind === 'foreign' && address.startsWith('/'));
  if (paths.length > 0 && paths.length < targets.length) {
    notes.push(
      `${paths.map(({ label }) => label).join(', ')}: over a Unix socket, the others over TCP; the difference is not the server's alone.`,
    );
  }
  return notes;
}

/** How much data there was, and in which memory it lay. */
function dataNotes(
  plan: Plan,
  targets: readonly TargetInfo[],
  environment: Environment,
  sessions: readonly Session[],
): string[] {
  const bytes = Math.max(0, ...sessions.map(({ load }) => load?.userBytes ?? 0));
  if (bytes === 0) return [];
  const { settings } = plan;
  const share = bytes / environment.memoryBytes;
  const where =
    share < IN_MEMORY_SHARE
      ? 'all of it fits into memory, the page cache included, so no read waits for the disk'
      : 'more than half of the memory, so reads may wait for the disk';
  const notes = [
    `Data: ${settings.keyspace.toLocaleString('en')} keys with ${settings.valueSizes} ${settings.valueSizes === '1' ? 'byte' : 'bytes'} of random value each` +
      `${settings.compressibility > 0 ? `, ${settings.compressibility * 100}% compressible` : ''}, drawn ${settings.distribution}: ` +
      `${millions(bytes)} of user bytes, ${share < 0.001 ? 'less than 0.1' : (share * 100).toPrecision(2)}% of the machine's memory; ${where}.`,
  ];
  const bound = targets.filter(({ mode }) => mode === 'engine-bound');
  const caches = bound.map((target) => {
    const cache = engineCacheBytes(target);
    const text =
      cache === null
        ? 'has the page cache alone'
        : cache === 0
          ? 'has no cache'
          : `caches ${millions(cache)}, the data are ${(bytes / cache).toFixed(1)} times that`;
    return `${target.label} ${text}`;
  });
  if (caches.length > 0) notes.push(`Engine-bound, every access goes to the engine: ${caches.join('; ')}.`);
  return notes;
}

/** Whether the engines differ where the memory tier holds everything; null where that cannot be said. */
function served(
  plan: Plan,
  targets: readonly TargetInfo[],
  runs: readonly Run[],
  cells: readonly Cell[],
): string | null {
  const columns = targets.filter(({ mode }) => mode === 'served');
  if (columns.length < 2 || plan.repeats < RUNS_FOR_VERDICT) return null;
  let judged = 0;
  const apart: string[] = [];
  for (const { info } of plan.rows) {
    const rates = columns.flatMap((column) => {
      const cell = cells.find(({ workload, target }) => workload === info.id && target === column.id);
      if (cell?.state !== 'ok' || voidingBadges(cell).length > 0) return [];
      const own = runs.filter(
        (run) => run.workload === info.id && run.target === column.id && run.state === 'ok',
      );
      return [own.map(({ opsPerSecond }) => opsPerSecond)];
    });
    if (rates.length < 2) continue;
    judged++;
    const proven = rates.some((a, index) =>
      rates.slice(index + 1).some((b) => ['higher', 'lower'].includes(compare(a, b).verdict)),
    );
    if (proven) apart.push(info.label);
  }
  if (judged === 0) return null;
  const why =
    'the memory tier holds all data, requests meet the engine only through checkpoints in the background';
  const instead = targets.some(({ mode }) => mode === 'engine-bound')
    ? '; the engine-bound columns show the engines themselves'
    : '; `ardent engines` shows the engines themselves';
  return apart.length === 0
    ? `In served mode the engines do not differ in any of ${judged} rows: ${why}${instead}.`
    : `In served mode the engines differ in ${apart.length} of ${judged} rows (${apart.join(', ')}), in the others not: ${why}${instead}.`;
}

/** Labels of rows at which some target's median run moved between its first and its last third. */
function unsteadyRows(plan: Plan, runs: readonly Run[]): string[] {
  return plan.rows.flatMap(({ info, open }) => {
    if (open !== null) return [];
    const moved = plan.targets.some((target) => {
      const own = runs
        .filter((run) => run.workload === info.id && run.target === target.info.id && run.state === 'ok')
        .sort((a, b) => a.opsPerSecond - b.opsPerSecond);
      const rates = own[own.length >> 1]?.series.opsPerSecond.flatMap((rate) => rate ?? []) ?? [];
      const third = Math.floor(rates.length / 3);
      if (third < POINTS_IN_A_THIRD) return false;
      const change = median(rates.slice(-third)) / median(rates.slice(0, third)) - 1;
      return Math.abs(change) > STEADY_CHANGE;
    });
    return moved ? [info.label] : [];
  });
}
