/** What came out, first: a card a target, then every ratio with its interval on one axis. */
import { geometricMean } from '../../bench/statistics.ts';
import { formatRatio } from '../format.ts';
import type { Cell, Results, TargetInfo } from '../../results/document.ts';
import { markup, type Markup } from './markup.ts';
import { colorsOf } from './svg.ts';

/** Ratios shown on the axis. */
const TICKS = [0.05, 0.1, 0.2, 0.33, 0.5, 0.75, 1, 1.33, 2, 3, 5, 10, 20];

function card(target: TargetInfo, cells: readonly Cell[], color: number): Markup {
  const compared = cells.flatMap((cell) => (cell.versus === null ? [] : [cell.versus]));
  const count = (verdict: string): number => compared.filter((versus) => versus.verdict === verdict).length;
  const [higher, lower, same, voided] = ['higher', 'lower', 'no difference', 'void'].map(count);
  const unsupported = cells.filter(({ state }) => state === 'unsupported').length;
  const failed = cells.filter(({ state }) => state === 'failed').length;
  const judged = higher + lower + same;
  const words = [
    judged > 0 ? `${higher} higher, ${lower} lower, ${same} no difference` : '',
    count('too few runs') > 0 ? 'too few runs for a verdict' : '',
    count('not comparable') > 0
      ? `other durability (${target.durability.class}): a reference, not a rival`
      : '',
    voided > 0 ? `${voided} void` : '',
    unsupported > 0 ? `${unsupported} unsupported` : '',
    failed > 0 ? `${failed} ${failed === 1 ? 'row' : 'rows'} failed` : '',
  ].filter((text) => text !== '');
  const valid = compared.filter(({ verdict }) => verdict !== 'void');
  const mean = valid.length === 0 ? null : geometricMean(valid.map(({ ratio }) => ratio));
  return markup`<div class="card verdict" style="--c:var(--s${color})"><div class="name">${target.label}</div>
<div class="number">${mean === null ? '–' : formatRatio(mean)} <small>${mean === null ? (compared.length > 0 ? 'no valid row' : 'nothing measured') : `of ${valid.length} ${valid.length === 1 ? 'row' : 'rows'}`}</small></div>
<div class="split" aria-hidden="true">${judged > 0 && markup`<i class="hi" style="flex:${higher}"></i><i class="no" style="flex:${same}"></i><i class="lo" style="flex:${lower}"></i>`}</div>
<div class="words">${words.join('; ')}</div></div>`;
}

function forest(results: Results, others: readonly TargetInfo[]): Markup | '' {
  const colors = colorsOf(results);
  const cells = results.cells.filter(({ versus }) => versus !== null);
  if (cells.length === 0) return '';
  const ends = cells.flatMap(({ versus }) => [versus!.low, versus!.high]);
  const low = Math.max(0.05, Math.min(0.75, ...ends));
  const high = Math.min(20, Math.max(1.33, ...ends));
  const place = (ratio: number): string =>
    `${(((Math.log(Math.min(high, Math.max(low, ratio))) - Math.log(low)) / (Math.log(high) - Math.log(low))) * 100).toFixed(2)}%`;
  const ticks = TICKS.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  const grid = ticks.map(
    (tick) => markup`<i class="grid ${tick === 1 ? 'one' : ''}" style="left:${place(tick)}"></i>`,
  );
  const rows = results.workloads.map((workload) => {
    const dots = others.map((target, lane) => {
      const cell = cells.find(
        (candidate) => candidate.workload === workload.id && candidate.target === target.id,
      );
      if (cell === undefined) return '';
      const { ratio, low: from, high: to, verdict, voidedBy } = cell.versus!;
      const { color } = colors.get(target.id)!;
      const proven = verdict === 'higher' || verdict === 'lower';
      const top = `${8 + lane * 7}px`;
      const width = `calc(${place(to)} - ${place(from)})`;
      return markup`<i class="span ${verdict === 'void' ? 'void' : ''}" style="--c:var(--s${color});top:${top};left:${place(from)};width:${width}"></i><i class="dot ${proven ? '' : 'open'} ${verdict === 'void' ? 'void' : ''}" style="--c:var(--s${color});top:${top};left:${place(ratio)}" title="${target.label}, ${workload.label}: ${formatRatio(ratio)} (${from.toFixed(2)}–${to.toFixed(2)}), ${verdict}${voidedBy ? `: ${voidedBy.join(', ')}` : ''}"></i>`;
    });
    return markup`<div class="row"><div class="what">${workload.label}</div><div class="track" style="--lanes:${others.length}">${grid}${dots}</div></div>`;
  });
  return markup`<div class="card forest">${rows}<div class="row"><div class="what"></div><div class="axis">${ticks.map((tick) => markup`<span style="left:${place(tick)}">${tick}×</span>`)}</div></div></div>
<p class="legend">${others.map((target) => {
    const { color, dashed } = colors.get(target.id)!;
    return markup`<span><i class="key ${dashed ? 'dashed' : ''}" style="--c:var(--s${color})"></i>${target.label}</span>`;
  })}<span>full dot: proven (Mann-Whitney p &lt; 0.01 with at least 5 runs a side); ring: not; faint: void; bar: 95% interval</span></p>`;
}

export function verdicts(results: Results): Markup | '' {
  const base = results.targets.find(({ id }) => id === results.baseline);
  if (base === undefined) return '';
  const others = results.targets.filter(({ id }) => id !== base.id);
  if (others.length === 0) return '';
  const colors = colorsOf(results);
  return markup`<section id="verdict"><h2>Against ${base.label}</h2>
<p class="lede">Operations per second as a ratio, geometric mean over the rows that are not void; below, every row with its interval.</p>
<div class="verdicts">${others.map((target) =>
    card(
      target,
      results.cells.filter((cell) => cell.target === target.id),
      colors.get(target.id)!.color,
    ),
  )}</div>${forest(results, others)}</section>`;
}
