/** `ardent check` over directories that real processes left behind. Needs the build in dist/. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkDirectory } from '../../src/store/check.ts';
import { DataDirectory, DataDirectoryError } from '../../src/store/data-directory.ts';
import { NodeDisk } from '../../src/store/disk.ts';

const CHILD = fileURLToPath(new URL('./fault-child.mjs', import.meta.url));
const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

interface Ended {
  code: number | null;
  output: string;
}

function runNode(args: string[], env: Record<string, string> = {}): Promise<Ended> {
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })));
}

/** Does some turns, each of which must be there wholly or not at all, and dies at `fault` or closes. */
const turns = (engine: string, count: number, fault = '') =>
  runNode([CHILD, directory, engine, String(count)], fault === '' ? {} : { ARDENT_FAULT: fault });

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(`${tmpdir()}/ardent-check-`);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function flip(path: string, offset: number): void {
  const bytes = readFileSync(path);
  bytes[offset] ^= 1;
  writeFileSync(path, bytes);
}

const found = (ended: Ended) => Number(/found (\d+)/.exec(ended.output)?.[1] ?? -1);

describe('ardent check', () => {
  test('a directory after a clean end and one after a kill are sound', async () => {
    expect((await turns('leveldb', 40)).code).toBe(0);
    const clean = await checkDirectory(directory, { repair: false });
    expect(clean).toMatchObject({ ok: true, problems: [], notices: [], log: { frames: 0 } });
    expect(clean.engine).toMatchObject({ damagedRows: 0, collections: 2 });
    expect(clean.engine.rows).toBeGreaterThan(100);
    await turns('leveldb', 40, 'log-appended:5');
    const killed = await checkDirectory(directory, { repair: false });
    expect(killed).toMatchObject({ ok: true, problems: [], log: { frames: 5 } });
  });

  test('a damaged log is named by file and offset, and cut off there on request', async () => {
    await turns('lmdb', 40, 'log-appended:10'); // before the first checkpoint
    const [name] = readdirSync(`${directory}/log`);
    const path = `${directory}/log/${name}`;
    flip(path, 300);
    const report = await checkDirectory(directory, { repair: false });
    expect(report.ok).toBe(false);
    expect(report.problems).toHaveLength(1);
    const { part, offset } = report.problems[0];
    expect({ part, path: report.problems[0].path }).toEqual({ part: 'log', path });
    expect(offset).toBeGreaterThan(128);
    expect(offset).toBeLessThanOrEqual(300);

    const text = await runNode([MAIN, 'check', directory]);
    expect(text.code).toBe(3);
    expect(text.output).toContain(`${path} at offset ${offset}`);
    expect(text.output).toContain('--repair');
    const refused = await turns('lmdb', 1);
    expect(refused.output).toContain(`ardent check ${directory} --repair`);

    const repaired = await runNode([MAIN, 'check', directory, '--repair', '--json']);
    expect(repaired.code, repaired.output).toBe(0);
    expect((JSON.parse(repaired.output) as { repaired: string[] }).repaired[0]).toContain('log-damaged-');
    const again = await turns('lmdb', 1);
    expect(again.code, again.output).toBe(0);
    expect(found(again)).toBeLessThan(10);
  });

  test('a log that is gone is begun anew on request, at the checkpoint', async () => {
    expect((await turns('leveldb', 40)).code).toBe(0);
    for (const name of readdirSync(`${directory}/log`)) rmSync(`${directory}/log/${name}`);
    const report = await checkDirectory(directory, { repair: false });
    expect(report.problems[0]).toMatchObject({
      part: 'log',
      message: expect.stringContaining('no log segment'),
    });
    expect((await checkDirectory(directory, { repair: true })).ok).toBe(true);
    const again = await turns('leveldb', 3);
    expect(again.code, again.output).toBe(0);
    expect(found(again)).toBe(40);
  });

  test('a checkpoint that a kill left is told, and finished on request', async () => {
    await turns('leveldb', 40, 'redo-committed:1');
    const report = await checkDirectory(directory, { repair: false });
    expect(report).toMatchObject({ ok: true, redo: { files: 1 } });
    expect(report.notices[0]).toContain('the next start gives them to the engine');
    const repaired = await checkDirectory(directory, { repair: true });
    expect(repaired).toMatchObject({ ok: true, redo: { files: 1 }, engine: { collections: 2 } });
    expect(readdirSync(`${directory}/redo`)).toEqual([]);
    const again = await turns('leveldb', 1);
    expect(again.code, again.output).toBe(0);
  });

  test('a damaged redo file stops the start; the repair saves what is sound and drops what is not', async () => {
    await turns('leveldb', 40, 'redo-committed:1');
    const [name] = readdirSync(`${directory}/redo`);
    const path = `${directory}/redo/${name}`;
    flip(path, 500);
    const report = await checkDirectory(directory, { repair: false });
    expect(report.ok).toBe(false);
    expect(report.problems[0]).toMatchObject({ part: 'redo', path });
    const refused = await turns('leveldb', 1);
    expect(refused.output).toContain('damaged at offset');
    expect(refused.output).toContain('--repair');

    const losses: string[] = [];
    const repaired = await checkDirectory(directory, { repair: true, onLoss: (loss) => losses.push(loss) });
    expect(repaired).toMatchObject({ ok: true, problems: [] });
    expect(losses[0]).toMatch(/redo: \d+ rows are damaged; their keys will be dropped/);
    expect(losses.some((loss) => loss.includes('will be dropped with its value'))).toBe(true);
    expect(readdirSync(`${directory}/redo`)).toEqual([]);
    expect(readdirSync(directory).filter((entry) => entry.startsWith('redo-damaged-'))).toHaveLength(1);
    expect(await checkDirectory(directory, { repair: false })).toMatchObject({ ok: true, problems: [] });
  });

  test('a flipped bit in the engine’s file is found in its row, and never served', async () => {
    expect((await turns('lmdb', 40)).code).toBe(0);
    const path = `${directory}/engine/data-000001.mdb`;
    const bytes = readFileSync(path);
    // LMDB keeps old versions of pages: every copy of one key's value is damaged.
    for (let at = bytes.indexOf('value 40'); at >= 0; at = bytes.indexOf('value 40', at + 1)) bytes[at] ^= 1;
    writeFileSync(path, bytes);
    const report = await checkDirectory(directory, { repair: false });
    expect(report.ok).toBe(false);
    expect(report.engine.damagedRows).toBeGreaterThan(0);
    expect(report.problems[0]).toMatchObject({ part: 'rows', message: expect.stringContaining('checksum') });
    const served = await turns('lmdb', 1);
    expect(served.output).toMatch(/DamagedValueError: [0-9a-f]+/);
  });

  test('a directory in use, or of something else, is left alone', async () => {
    expect((await turns('leveldb', 1)).code).toBe(0);
    const holder = await DataDirectory.openExisting(directory, new NodeDisk());
    try {
      await expect(checkDirectory(directory, { repair: true })).rejects.toMatchObject({
        code: 'DIRECTORY_LOCKED',
      });
      const cli = await runNode([MAIN, 'check', directory]);
      expect(cli.code).toBe(1);
      expect(cli.output).toContain(`process ${process.pid}`);
    } finally {
      holder.close();
    }
    await expect(checkDirectory(tmpdir(), { repair: true })).rejects.toThrow(DataDirectoryError);
  });
});
