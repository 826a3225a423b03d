/** Small charts as SVG text: they need no script, print sharply and weigh little. */
import type { Results } from '../../results/document.ts';
import { markup, type Markup } from './markup.ts';

export interface Line {
  /** Class of the series colour, `c0`… */
  color: number;
  dashed?: boolean;
  thin?: boolean;
  name: string;
  /** [x, y] in data units. */
  points: number[][];
}

export interface Axis {
  ticks: { at: number; label: string }[];
  /** From data to 0…1. */
  scale(value: number): number;
}

const WIDTH = 560;
const LEFT = 62;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 24;

/** Targets' colours, one hue each; engine-bound columns take their engine's hue, dashed. */
export function colorsOf(results: Results): Map<string, { color: number; dashed: boolean }> {
  const colors = new Map<string, { color: number; dashed: boolean }>();
  const hues = new Map<string, number>();
  for (const target of results.targets) {
    const family = target.engine ?? target.id;
    if (!hues.has(family)) hues.set(family, hues.size % 8);
    colors.set(target.id, { color: hues.get(family)!, dashed: target.mode === 'engine-bound' });
  }
  return colors;
}

export function logAxis(low: number, high: number, label: (value: number) => string): Axis {
  const bottom = Math.log10(low);
  const span = Math.max(Math.log10(high) - bottom, 0.3);
  const steps = span > 2.5 ? [1] : span > 1 ? [1, 3] : [1, 2, 5];
  const ticks: Axis['ticks'] = [];
  for (let power = Math.floor(bottom); power <= Math.ceil(bottom + span); power++) {
    for (const step of steps) {
      const at = step * 10 ** power;
      if (at >= low * 0.999 && Math.log10(at) <= bottom + span + 1e-9) ticks.push({ at, label: label(at) });
    }
  }
  return { ticks, scale: (value) => (Math.log10(Math.max(value, low)) - bottom) / span };
}

export function linearAxis(high: number, label: (value: number) => string, count = 4): Axis {
  const top = high > 0 ? high : 1;
  const rough = top / count;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step =
    [1, 2, 2.5, 5, 10].map((factor) => factor * unit).find((candidate) => candidate >= rough) ?? rough;
  const end = Math.ceil(top / step - 1e-9) * step;
  const ticks = Array.from({ length: Math.round(end / step) + 1 }, (_, index) => ({
    at: index * step,
    label: label(index * step),
  }));
  return { ticks, scale: (value) => value / end };
}

const fixed = (value: number): string => value.toFixed(1);

function gridlines(y: Axis, height: number, top: number): Markup[] {
  return y.ticks.map(({ at, label }) => {
    const place = top + height * (1 - y.scale(at));
    return markup`<line class="gridline" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${fixed(place)}" y2="${fixed(place)}"/><text x="${LEFT - 7}" y="${fixed(place + 4)}" text-anchor="end">${label}</text>`;
  });
}

function path(points: number[][], x: Axis, y: Axis, top: number, height: number): string {
  return points
    .map(
      ([px, py], index) =>
        `${index === 0 ? 'M' : 'L'}${fixed(LEFT + x.scale(px) * (WIDTH - LEFT - RIGHT))} ${fixed(top + height * (1 - Math.min(1, y.scale(py))))}`,
    )
    .join('');
}

/** Lines over one pair of axes. */
export function lineChart(label: string, lines: readonly Line[], x: Axis, y: Axis, height = 210): Markup {
  const place = (at: number): number => LEFT + x.scale(at) * (WIDTH - LEFT - RIGHT);
  return markup`<svg viewBox="0 0 ${WIDTH} ${height + TOP + BOTTOM}" role="img" aria-label="${label}">
${gridlines(y, height, TOP)}
${x.ticks.map(({ at, label: text }) => markup`<line class="gridline" x1="${fixed(place(at))}" x2="${fixed(place(at))}" y1="${TOP}" y2="${TOP + height}"/><text x="${fixed(place(at))}" y="${TOP + height + 16}" text-anchor="middle">${text}</text>`)}
${lines.map((line) => markup`<path class="curve ${line.dashed ? 'dashed' : ''} ${line.thin ? 'thin' : ''}" style="--c:var(--s${line.color})" d="${path(line.points, x, y, TOP, height)}"><title>${line.name}</title></path>`)}
</svg>`;
}

export interface Lane {
  name: string;
  y: Axis;
  lines: Line[];
}

/** Lanes one above the other over a common time axis. */
export function laneChart(label: string, lanes: readonly Lane[], x: Axis, laneHeight = 62): Markup {
  const gap = 24;
  const height = lanes.length * (laneHeight + gap);
  return markup`<svg viewBox="0 0 ${WIDTH} ${height + BOTTOM}" role="img" aria-label="${label}">
${lanes.map((lane, index) => {
  const top = index * (laneHeight + gap) + 18;
  return markup`<text class="lane-name" x="${LEFT}" y="${top - 6}">${lane.name}</text>${gridlines(lane.y, laneHeight, top)}
${lane.lines.map((line) => markup`<path class="curve ${line.dashed ? 'dashed' : ''}" style="--c:var(--s${line.color})" d="${path(line.points, x, lane.y, top, laneHeight)}"><title>${line.name}</title></path>`)}`;
})}
${x.ticks.map(({ at, label: text }) => markup`<text x="${fixed(LEFT + x.scale(at) * (WIDTH - LEFT - RIGHT))}" y="${height + 16}" text-anchor="middle">${text}</text>`)}
</svg>`;
}

/** Every run of every target, in the order in which they were made, the median as a line. */
export function repeatsChart(
  label: string,
  columns: readonly {
    name: string;
    color: number;
    values: { value: number; title: string }[];
    median: number;
  }[],
  y: Axis,
): Markup {
  const height = 170;
  const width = (WIDTH - LEFT - RIGHT) / columns.length;
  return markup`<svg viewBox="0 0 ${WIDTH} ${height + TOP + BOTTOM}" role="img" aria-label="${label}">
${gridlines(y, height, TOP)}
${columns.map((column, index) => {
  const start = LEFT + index * width;
  const at = (value: number): string => fixed(TOP + height * (1 - y.scale(value)));
  const step = (width * 0.7) / Math.max(1, column.values.length - 1);
  return markup`<g style="--c:var(--s${column.color})"><line class="median" x1="${fixed(start + width * 0.08)}" x2="${fixed(start + width * 0.92)}" y1="${at(column.median)}" y2="${at(column.median)}" opacity=".45"/>
${column.values.map(({ value, title }, run) => markup`<circle class="point" cx="${fixed(start + width * 0.15 + run * step)}" cy="${at(value)}" r="3.4"><title>${title}</title></circle>`)}
<text x="${fixed(start + width / 2)}" y="${TOP + height + 16}" text-anchor="middle">${column.name}</text></g>`;
})}
</svg>`;
}
