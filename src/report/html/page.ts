/** The report as one self-contained HTML file: nothing is fetched, and nothing can be (its policy forbids it). */
import { formatDuration } from '../format.ts';
import type { Results } from '../../results/document.ts';
import { capacity, details } from './details.ts';
import { environment, guide, loads, settings } from './facts.ts';
import { markup, Markup } from './markup.ts';
import { matrix } from './matrix.ts';
import { SCRIPT } from './script.ts';
import { STYLE } from './style.ts';
import { verdicts } from './verdicts.ts';

function header(results: Results): Markup {
  const { environment: env } = results;
  const seconds = (Date.parse(results.finishedAt) - Date.parse(results.startedAt)) / 1000;
  const repeats = results.targets.map(({ id }) =>
    Math.max(0, ...results.runs.flatMap(({ target, repeat }) => (target === id ? [repeat] : []))),
  );
  const [fewest, most] = [Math.min(...repeats), Math.max(...repeats)];
  return markup`<header class="page"><h1>${results.title}</h1>
<p class="meta"><b>${results.startedAt.slice(0, 16).replace('T', ' ')} UTC</b> · ${env.cpuModel}, ${env.cpuCount} processors · ${results.targets.length} ${results.targets.length === 1 ? 'target' : 'targets'}, ${results.workloads.length} ${results.workloads.length === 1 ? 'row' : 'rows'}, ${fewest === most ? '' : `${fewest} to `}${most} ${most === 1 ? 'run' : 'runs'} each · ${formatDuration(seconds)}</p>
${results.state === 'partial' && markup`<p class="partial">Partial: ${results.partialReason ?? 'not finished'}. What was measured until then is shown.</p>`}
<ul class="notes meta">${results.notes.map((note) => markup`<li>${note}</li>`)}${env.warnings.map((warning) => markup`<li class="warn">${warning}</li>`)}</ul></header>`;
}

/** A whole page around what is to be read. */
export function htmlDocument(title: string, content: Markup, footer: string): string {
  const policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
  const page = markup`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}"><meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,"><title>${title}</title>
<style>${new Markup(STYLE)}</style></head><body>
${content}
<footer>${footer}</footer>
<script>${new Markup(SCRIPT)}</script></body></html>
`;
  return page.text;
}

export function renderHtml(results: Results): string {
  return htmlDocument(
    `${results.title} · ${results.startedAt.slice(0, 10)}`,
    markup`${header(results)}
<main>${verdicts(results)}${matrix(results)}${capacity(results)}${details(results)}${loads(results)}${settings(results)}${environment(results)}${guide()}</main>`,
    `ardent ${results.environment.ardentVersion} · ${results.tool}`,
  );
}
