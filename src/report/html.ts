/** The report as one self-contained HTML file. */
import type { Results } from './results.ts';
import { matrixTable, renderText } from './table.ts';

export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

export function renderHtml(results: Results): string {
  return `<!doctype html><meta charset="utf-8"><title>${escapeHtml(results.title)}</title><pre>${escapeHtml(renderText(matrixTable(results, 'opsPerSecond')))}</pre>`;
}
