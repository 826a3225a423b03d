/** What a reader needs to believe or repeat the figures: loads, settings, machine, and how to read it all. */
import { formatBytes, formatCount, formatDuration } from '../format.ts';
import type { Results, Session } from '../../results/document.ts';
import { markup, type Markup } from './markup.ts';

function median(values: readonly number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length === 0 ? null : sorted[sorted.length >> 1];
}

export function loads(results: Results): Markup | '' {
  const loaded = results.sessions.filter(({ load }) => load !== null);
  if (loaded.length === 0) return '';
  const rows = results.targets.flatMap((target) => {
    const own = loaded.filter((session) => session.target === target.id);
    if (own.length === 0) return [];
    const of = (pick: (session: Session) => number | null | undefined): number | null =>
      median(own.flatMap((session) => pick(session) ?? []));
    const show = (value: number | null, format: (value: number) => string): string =>
      value === null ? '–' : format(value);
    const userBytes = of(({ load }) => load?.userBytes);
    const written = of(({ drain }) => drain?.writeBytes);
    const disk = of(({ drain }) => drain?.diskBytes);
    const per = (bytes: number | null): string =>
      bytes === null || !userBytes ? '–' : (bytes / userBytes).toFixed(2);
    const settled = own.every(({ drain }) => drain?.settled !== false);
    return [
      markup`<tr><th scope="row">${target.label}</th><td>${show(
        of(({ startSeconds }) => startSeconds),
        formatDuration,
      )}</td><td>${show(
        of(({ load }) => load?.keys),
        formatCount,
      )}</td><td>${show(userBytes, formatBytes)}</td><td>${show(
        of(({ load }) => load?.seconds),
        formatDuration,
      )}</td><td>${show(
        of(({ drain }) => drain?.seconds),
        formatDuration,
      )}${settled ? '' : ' (not settled)'}</td><td>${show(written, formatBytes)}</td><td>${per(written)}</td><td>${show(disk, formatBytes)}</td><td>${per(disk)}</td></tr>`,
    ];
  });
  return markup`<section id="loads"><h2>Start and load</h2><p class="lede">Every server begins empty and is loaded before its rows; what it writes back afterwards is waited for and counted as part of the load.</p>
<div class="card scroll"><table><thead><tr><th>target</th><th>start</th><th>keys</th><th>user bytes</th><th>load</th><th>write-back</th><th>written</th><th>per user byte</th><th>on disk</th><th>per user byte</th></tr></thead><tbody>${rows}</tbody></table></div></section>`;
}

export function settings(results: Results): Markup {
  const rows = results.targets.map(
    (target) =>
      markup`<tr><td>${target.label}</td><td>${target.version || '–'}</td><td>${target.durability.class}</td><td>${target.durability.loses}</td><td><code>${target.commandLine || target.address}</code>${
        Object.keys(target.settings).length > 0 &&
        markup`<details><summary>all settings</summary><code>${Object.entries(target.settings)
          .map(([name, value]) => `${name} ${value === '' ? '""' : value}`)
          .join('\n')}</code></details>`
      }</td></tr>`,
  );
  const options = Object.entries(results.options).map(
    ([name, value]) => markup`<div><dt>${name}</dt><dd>${String(value)}</dd></div>`,
  );
  return markup`<section id="settings"><h2>Settings</h2>
<div class="card scroll"><table class="text"><thead><tr><th>target</th><th>version</th><th>durability</th><th>a crash loses</th><th>started as</th></tr></thead><tbody>${rows}</tbody></table></div>
<dl class="options">${options}</dl></section>`;
}

/** What any document says of where and how it was made. */
export interface Made {
  environment: Results['environment'];
  startedAt: string;
  finishedAt: string;
  rerun: string;
  seed?: number;
  clientCeiling?: Results['clientCeiling'];
}

export function environment(results: Made): Markup {
  const env = results.environment;
  const entries: [string, string][] = [
    ['processor', `${env.cpuModel}, ${env.cpuCount} usable; governor ${env.cpuGovernor}`],
    ['memory', formatBytes(env.memoryBytes)],
    ['system', env.kernel],
    [
      'file system',
      `${env.filesystem}${env.diskFreeBytes === null ? '' : `, ${formatBytes(env.diskFreeBytes)} free`}`,
    ],
    [
      'software',
      `ardent ${env.ardentVersion}${env.commit === '' ? '' : ` (${env.commit})`}, Node ${env.nodeVersion}`,
    ],
    ['transport', env.transport],
    ...(results.clientCeiling ?? []).map(
      ({ pipeline, opsPerSecond, clientUtilisation }): [string, string] => [
        `client alone, pipeline ${pipeline}`,
        `${formatCount(opsPerSecond)} ops/s against a responder that does nothing, the client ${(clientUtilisation * 100).toFixed(0)}% busy`,
      ],
    ),
    ['load at the start', env.loadAverage.map((load) => load.toFixed(2)).join(' ')],
    ['begun, ended', `${results.startedAt}, ${results.finishedAt}`],
    ...(results.seed === undefined ? [] : [['seed', String(results.seed)] as [string, string]]),
  ];
  return markup`<section id="environment"><h2>Machine, and how to repeat this</h2>
<dl>${entries.map(([name, value]) => markup`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
<code class="block">${results.rerun}</code>
<p class="meta" style="margin-top:10px">Every run with all its figures is in results.json and results.csv beside this file.</p></section>`;
}

const GUIDE: [string, string][] = [
  [
    'The run is the unit',
    'Each dot is one run on a fresh server. Medians and intervals are taken over runs, never over the millions of requests in one run, which are not independent.',
  ],
  [
    'Proven',
    'A difference counts as proven when both sides have at least 5 runs, Mann-Whitney’s exact test gives p < 0.01, and the 95% interval of the ratio leaves out 1. Otherwise there is no detectable difference.',
  ],
  [
    'Void',
    'A badge of the cell or of its baseline takes away what the comparison would prove: no verdict is given, and the row does not count in the mean.',
  ],
  [
    'Closed and open loop',
    'In a closed loop every connection waits for its reply; the latency is the service time at that load, measured at saturation. In an open loop requests come at their own times, and latency runs from the moment a request was due.',
  ],
  [
    'Ratio and bar',
    'The small figure is the ratio to the baseline column; the bar compares with the best of the row.',
  ],
  [
    'CLIENT-BOUND',
    'The client was busy all the time, or near to what it reaches against a responder that does nothing, while the server had time left: the figure is the client’s limit.',
  ],
  [
    'OVERLOADED',
    'The rate asked for was not reached; latencies then tell how long the test lasted, not how fast the server is.',
  ],
  [
    'MEMTABLE-ONLY',
    'So little was written that the engine never made a table of it: its compaction was not tested.',
  ],
  ['MISS', 'More than 1% of the reads found nothing; such reads are cheaper.'],
  [
    'UNEQUAL-DURABILITY',
    'The column loses something else in a crash than the baseline does. It is shown for reference.',
  ],
  ['NOISY', 'The runs lie more than 30% of their median apart. Repeat on a quiet machine.'],
  ['ERRORS', 'Some requests were answered by an error; these are no work done.'],
  [
    'Memory and disk',
    'Anonymous memory leaves out the page cache and mapped files. Bytes written are what the system passed on to the disk; what the device makes of them cannot be seen.',
  ],
];

export function guide(): Markup {
  return markup`<section id="guide"><h2>How to read this</h2><div class="guide">${GUIDE.map(([name, text]) => markup`<div><b>${name}</b>${text}</div>`)}</div></section>`;
}
