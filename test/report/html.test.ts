/** The report in a real browser: Chromium, headless, from a file. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { renderHtml } from '../../src/report/html/page.ts';
import { METRICS } from '../../src/results/document.ts';
import { formatMetric } from '../../src/report/table.ts';
import { launchChromium } from '../chromium.ts';
import { sampleResults } from './sample.ts';

const results = sampleResults();
let directory: string;
let browser: Browser;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'ardent-test-report-'));
  writeFileSync(join(directory, 'report.html'), renderHtml(results));
  browser = await launchChromium();
});
afterAll(async () => {
  await browser.close();
  rmSync(directory, { recursive: true, force: true });
});

interface Opened {
  page: Page;
  complaints: string[];
  close(): Promise<void>;
}

async function open(options: Parameters<Browser['newContext']>[0] = {}): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith('file:') && !request.url().startsWith('data:'))
      complaints.push(request.url());
  });
  await page.goto(`file://${join(directory, 'report.html')}`);
  return { page, complaints, close: () => context.close() };
}

/** What the matrix shows: a text for each row and column. Expressions for the page are text: this file knows no DOM. */
const shown = (page: Page): Promise<Record<string, string>> =>
  page.evaluate(`Object.fromEntries(
    [...document.querySelectorAll('#cells tbody td')].map((cell) => [
      cell.closest('tr').dataset.workload + ' ' + cell.dataset.target,
      cell.querySelector('.value').textContent,
    ]))`);

function expected(metric: (typeof METRICS)[number]): Record<string, string> {
  return Object.fromEntries(
    results.cells.map((cell) => {
      const estimate = cell.metrics[metric];
      const text =
        cell.state === 'failed'
          ? 'failed'
          : estimate === undefined
            ? '–'
            : formatMetric(metric, estimate.median);
      return [`${cell.workload} ${cell.target}`, text];
    }),
  );
}

describe('the report', () => {
  it('asks for nothing from anywhere and complains of nothing', async () => {
    const { page, complaints, close } = await open();
    await page.waitForTimeout(200);
    expect(complaints).toEqual([]);
    await close();
  });

  it('shows the values of the results, metric by metric', async () => {
    const { page, close } = await open();
    expect(await shown(page)).toEqual(expected('opsPerSecond'));
    for (const metric of METRICS) {
      const button = page.locator(`[data-metric=${metric}]`);
      if ((await button.count()) === 0) {
        expect(results.cells.every((cell) => cell.metrics[metric] === undefined)).toBe(true);
        continue;
      }
      await button.click();
      expect(await button.getAttribute('aria-pressed')).toBe('true');
      expect(await shown(page)).toEqual(expected(metric));
    }
    await close();
  });

  it('filters and sorts', async () => {
    const { page, close } = await open();
    const rows = (): Promise<string[]> =>
      page.evaluate(`[...document.querySelectorAll('#cells tbody tr')]
        .filter((row) => row.offsetParent !== null)
        .map((row) => row.dataset.workload)`);
    expect(await rows()).toEqual(['get', 'set', 'spop']);
    await page.selectOption('#family', 'set');
    expect(await rows()).toEqual(['spop']);
    await page.selectOption('#family', '');
    await page.fill('#search', 'row s');
    expect(await rows()).toEqual(['set', 'spop']);
    await page.fill('#search', '');
    const head = page.locator('#cells th[data-target=lmdb]');
    await head.locator('button').click();
    expect([await head.getAttribute('aria-sort'), await rows()]).toEqual([
      'descending',
      ['get', 'set', 'spop'],
    ]);
    await head.locator('button').click();
    expect([await head.getAttribute('aria-sort'), await rows()]).toEqual([
      'ascending',
      ['spop', 'set', 'get'],
    ]);
    await head.locator('button').click();
    expect(await rows()).toEqual(['get', 'set', 'spop']);
    await close();
  });

  it('is readable without script', async () => {
    const { page, complaints, close } = await open({ javaScriptEnabled: false });
    expect(await page.locator('#cells tbody tr').count()).toBe(3);
    expect(await page.locator('.controls').isVisible()).toBe(false);
    expect(await page.locator('td .value').first().textContent()).toBe('150,000');
    expect(await page.locator('#rows svg').first().isVisible()).toBe(true);
    expect(complaints).toEqual([]);
    await close();
  });

  it.each([
    ['light', 1200],
    ['dark', 1200],
    ['light', 400],
  ] as const)(
    '%s, %d pixels wide: the page does not scroll sideways, text stands out',
    async (colorScheme, width) => {
      const { page, close } = await open({ colorScheme, viewport: { width, height: 900 } });
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
      const colors: string[] = await page.evaluate(
        '[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]',
      );
      const [paper, ink] = colors.map((color) =>
        color
          .match(/\d+/g)!
          .slice(0, 3)
          .reduce((sum, part) => sum + Number(part) / 3, 0),
      );
      expect(Math.abs(paper - ink)).toBeGreaterThan(150);
      expect(paper > ink).toBe(colorScheme === 'light');
      await close();
    },
  );

  it('markup in names stays text', async () => {
    const { page, close } = await open();
    expect(await page.locator('h1').textContent()).toBe('Engines <against> Redis');
    expect(await page.locator('.notes li').first().textContent()).toBe('A note </script> with markup');
    await close();
  });

  it('prints, with every row opened', async () => {
    const { page, close } = await open();
    const pdf = await page.pdf();
    expect(pdf.length).toBeGreaterThan(10_000);
    await close();
  });
});
