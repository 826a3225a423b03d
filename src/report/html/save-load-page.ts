/** The report of loads and saves as one HTML file: summary, matrix, ratios, logs. */
import {
  SAVE_LOAD_METRICS,
  type DataSet,
  type SaveLoadCell,
  type SaveLoadMetric,
  type SaveLoadResults,
} from '../../results/save-load-results.ts';
import { saveLoadMatrix } from '../../bench/save-load/matrix.ts';
import { geometricMean } from '../../bench/statistics.ts';
import { formatBytes, formatDuration, formatRatio } from '../format.ts';
import { formatSaveLoad, SAVE_LOAD_EXPLANATIONS, SAVE_LOAD_TITLES } from '../save-load.ts';
import { environment } from './facts.ts';
import { jsonScript, markup, type Markup } from './markup.ts';
import { htmlDocument } from './page.ts';

/** Metrics whose ratio to the baseline says something of the server. */
const COMPARED: readonly SaveLoadMetric[] = [
  'loadTimeSec',
  'saveTimeSec',
  'rdbSizeMB',
  'usedMemoryMB',
  'rssMB',
];

function header(results: SaveLoadResults): Markup {
  const { environment: env, targets, dataSets } = results;
  const seconds = (Date.parse(results.finishedAt) - Date.parse(results.startedAt)) / 1000;
  return markup`<header class="page"><h1>${results.title}</h1>
<p class="meta"><b>${results.startedAt.slice(0, 16).replace('T', ' ')} UTC</b> · ${env.cpuModel}, ${env.cpuCount} processors · ${targets.length} ${targets.length === 1 ? 'server' : 'servers'}, ${dataSets.length} ${dataSets.length === 1 ? 'data set' : 'data sets'} · ${formatDuration(seconds)}</p>
${results.state === 'partial' && markup`<p class="partial">Partial: ${results.partialReason ?? 'not finished'}. What was measured until then is shown.</p>`}
<ul class="notes meta">${results.notes.map((note) => markup`<li>${note}</li>`)}${env.warnings.map((warning) => markup`<li class="warn">${warning}</li>`)}</ul>
<p class="meta"><a href="#summary">Summary</a> · <a href="#matrix">Matrix</a> · <a href="#ratios">Ratios</a> · <a href="#logs">Logs</a></p></header>`;
}

function summary(results: SaveLoadResults, cells: readonly SaveLoadCell[]): Markup {
  const cards = results.targets.map((target, color) => {
    const own = cells.filter((cell) => cell.target === target.id);
    const failed = own.filter(({ state }) => state === 'failed').length;
    const mean = (metric: SaveLoadMetric): string => {
      const ratios = own.flatMap((cell) => cell.metrics[metric]?.ratio ?? []);
      return ratios.length === 0 ? '–' : formatRatio(geometricMean(ratios));
    };
    const isBase = target.id === results.baseline;
    return markup`<div class="card verdict" style="--c:var(--s${color % 8})"><div class="name">${target.label}${target.version !== '' && markup` <small>${target.version}</small>`}</div>
<div class="number">${isBase ? '1.00×' : mean('loadTimeSec')} <small>${isBase ? 'all ratios are to this' : 'load'}</small></div>
<div class="words">${isBase ? '' : `save ${mean('saveTimeSec')}, file ${mean('rdbSizeMB')}, memory ${mean('usedMemoryMB')}`}${failed > 0 ? `; ${failed} failed` : ''}</div></div>`;
  });
  const sets = results.dataSets.map(
    (set) =>
      markup`<tr><th scope="row">${set.label}</th><td>${set.type ?? 'mixed'}</td><td>${set.keys.toLocaleString('en-US')}</td><td>${set.valueLength === null ? '–' : formatBytes(set.valueLength)}</td><td>${set.tierBytes === null ? '–' : formatBytes(set.tierBytes)}</td><td>${set.fileBytes === null ? '–' : formatBytes(set.fileBytes)}</td></tr>`,
  );
  const servers = results.targets.map(
    (target) =>
      markup`<tr><td>${target.label}</td><td>${target.version || '–'}</td><td>${target.loadedBy}</td><td><code>${target.commandLine}</code></td></tr>`,
  );
  return markup`<section id="summary"><h2>Summary</h2><p class="lede">Ratios are geometric means over the data sets, and less is better. Times are medians of the repeats.</p>
<div class="verdicts">${cards}</div>
<div class="card scroll"><table><thead><tr><th>data set</th><th>type</th><th>keys</th><th>value</th><th>memory given</th><th>file</th></tr></thead><tbody>${sets}</tbody></table></div>
<h3 style="margin-top:18px">Servers</h3><div class="card scroll"><table class="text"><thead><tr><th>server</th><th>version</th><th>how it loads</th><th>started as</th></tr></thead><tbody>${servers}</tbody></table></div></section>`;
}

/** Attributes that the filters go by. */
function rowData(set: DataSet): Markup {
  const tier = set.tierBytes === null ? '' : formatBytes(set.tierBytes);
  return markup` data-type="${set.type ?? 'mixed'}" data-tier="${tier}" data-value="${set.valueLength ?? ''}" data-search="${`${set.label} ${set.type ?? 'mixed'} ${tier}`.toLowerCase()}"`;
}

function select(name: string, title: string, values: readonly string[]): Markup | '' {
  const distinct = [...new Set(values)].filter((value) => value !== '');
  if (distinct.length < 2) return '';
  return markup`<select data-filter="${name}" aria-label="${title}"><option value="">every ${title}</option>${distinct.map((value) => markup`<option>${value}</option>`)}</select>`;
}

function matrix(results: SaveLoadResults, cells: readonly SaveLoadCell[]): Markup {
  const { targets, dataSets } = results;
  const metrics = SAVE_LOAD_METRICS.filter((metric) =>
    cells.some((cell) => cell.metrics[metric] !== undefined),
  );
  const first = metrics[0] ?? 'loadTimeSec';
  const shown: Record<string, unknown> = {};
  const shownOf = (cell: SaveLoadCell, metric: SaveLoadMetric) => {
    const value = cell.metrics[metric];
    if (value === undefined) return null;
    const row = cells.flatMap((other) =>
      other.dataSet === cell.dataSet && other.metrics[metric] !== undefined
        ? [other.metrics[metric].median]
        : [],
    );
    const best = Math.min(...row);
    return {
      text: formatSaveLoad(metric, value.median),
      value: value.median,
      title: `${SAVE_LOAD_EXPLANATIONS[metric]}; ${value.n} ${value.n === 1 ? 'run' : 'runs'}`,
      ratio: value.ratio === null ? '' : formatRatio(value.ratio),
      verdict: '',
      share: value.median === 0 ? 1 : best / value.median,
    };
  };
  const rows = dataSets.map((set) => {
    const columns = targets.map((target, color) => {
      const cell = cells.find((other) => other.dataSet === set.id && other.target === target.id);
      if (cell !== undefined) {
        shown[`${set.id}|${target.id}`] = Object.fromEntries(
          metrics.map((metric) => [metric, shownOf(cell, metric)]),
        );
      }
      const value = cell === undefined ? null : shownOf(cell, first);
      if (value === null) {
        return markup`<td class="${cell?.state === 'failed' ? 'failed' : 'missing'}" data-target="${target.id}" title="${cell?.error ?? 'not measured'}"><div class="value">${cell?.state === 'failed' ? 'failed' : '–'}</div></td>`;
      }
      const badge =
        cell!.error === undefined
          ? ''
          : markup`<span class="badge" title="${cell!.error}">${cell!.state === 'failed' ? 'FAILED' : 'NOT RUN'}</span>`;
      return markup`<td class="${value.share === 1 ? 'best' : ''}" data-target="${target.id}" title="${value.title}" style="--c:var(--s${color % 8})"><div class="value">${value.text}</div><div class="under">${badge}<span class="ratio">${value.ratio}</span></div><div class="bar"><i style="width:${(value.share * 100).toFixed(1)}%"></i></div></td>`;
    });
    return markup`<tr data-workload="${set.id}"${rowData(set)}><th scope="row">${set.label}<small>${set.keys.toLocaleString('en-US')} keys</small></th>${columns}</tr>`;
  });
  const head = targets.map(
    (target, color) =>
      markup`<th scope="col" data-target="${target.id}"><button type="button"><i class="key" style="--c:var(--s${color % 8})"></i>${target.label}</button></th>`,
  );
  return markup`<section id="matrix"><h2>Matrix</h2><p class="lede">The bar compares with the best of the row; the small figure is the ratio to the baseline.</p>
<div class="controls"><div class="segments" role="group" aria-label="metric">${metrics.map((metric) => markup`<button type="button" data-metric="${metric}" aria-pressed="${metric === first ? 'true' : 'false'}" title="${SAVE_LOAD_EXPLANATIONS[metric]}">${SAVE_LOAD_TITLES[metric]}</button>`)}</div>
${select(
  'type',
  'type',
  dataSets.map(({ type }) => type ?? 'mixed'),
)}${select(
    'tier',
    'tier',
    dataSets.map(({ tierBytes }) => (tierBytes === null ? '' : formatBytes(tierBytes))),
  )}${select(
    'value',
    'value size',
    dataSets.map(({ valueLength }) => String(valueLength ?? '')),
  )}<input id="search" type="search" placeholder="filter rows" aria-label="filter rows"></div>
<div class="card scroll"><table id="cells" style="--columns:${targets.length}"><thead><tr><th scope="col" data-target=""><button type="button">data set</button></th>${head}</tr></thead><tbody>${rows}</tbody></table></div>
${jsonScript('shown', shown)}</section>`;
}

function ratios(results: SaveLoadResults, cells: readonly SaveLoadCell[]): Markup {
  const base = results.targets.find(({ id }) => id === results.baseline);
  if (base === undefined) {
    return markup`<section id="ratios"><h2>Ratios</h2><p class="lede">There is no server to compare with.</p></section>`;
  }
  const rows = results.dataSets.flatMap((set) =>
    cells
      .filter((cell) => cell.dataSet === set.id && cell.target !== base.id)
      .map((cell) => {
        const target = results.targets.find(({ id }) => id === cell.target)!;
        const values = COMPARED.map((metric) => {
          const ratio = cell.metrics[metric]?.ratio ?? null;
          const verdict = ratio === null ? '' : ratio < 0.95 ? 'hi' : ratio > 1.05 ? 'lo' : '';
          return markup`<td><span class="ratio ${verdict}" style="font-size:13.5px">${ratio === null ? '–' : formatRatio(ratio)}</span></td>`;
        });
        return markup`<tr${rowData(set)}><th scope="row">${set.label}</th><td>${target.label}</td>${values}</tr>`;
      }),
  );
  return markup`<section id="ratios"><h2>Ratios to ${base.label}</h2><p class="lede">Less than 1 is faster or smaller. Differences of up to 5% are not coloured; with few repeats they may be chance.</p>
<div class="card scroll"><table><thead><tr><th>data set</th><th>server</th>${COMPARED.map((metric) => markup`<th title="${SAVE_LOAD_EXPLANATIONS[metric]}">${SAVE_LOAD_TITLES[metric]}</th>`)}</tr></thead><tbody>${rows}</tbody></table></div></section>`;
}

function logs(results: SaveLoadResults): Markup {
  const failures = results.results.filter(({ error }) => error !== undefined);
  const entries = results.logs.map((log) => {
    const target = results.targets.find(({ id }) => id === log.target);
    const set = results.dataSets.find(({ id }) => id === log.dataSet);
    return markup`<details class="workload card"><summary>${target?.label ?? log.target} <span>${set?.label ?? log.dataSet} · ${log.file}</span></summary><div style="padding:0 16px 14px"><code class="block">${log.tail || '(nothing was printed)'}</code></div></details>`;
  });
  return markup`<section id="logs"><h2>Logs</h2><p class="lede">The end of what each server printed; the whole is in the logs folder beside this file.</p>
${failures.length > 0 && markup`<ul class="notes">${failures.map((record) => markup`<li class="warn">${record.db}, ${record.dataSet}, run ${record.repeat}: ${record.error}</li>`)}</ul>`}${entries}</section>`;
}

export function renderSaveLoadHtml(results: SaveLoadResults): string {
  const cells = saveLoadMatrix(results);
  return htmlDocument(
    `${results.title} · ${results.startedAt.slice(0, 10)}`,
    markup`${header(results)}
<main>${summary(results, cells)}${matrix(results, cells)}${ratios(results, cells)}${logs(results)}${environment(results)}</main>`,
    `ardent ${results.environment.ardentVersion} · ${results.tool}`,
  );
}
