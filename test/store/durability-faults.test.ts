/**
 * Kills a process at every named step of what reaches the disk, and looks whether the next one finds
 * all that was acknowledged. ARDENT_FAULT_ROUNDS=20 (`npm run drill:faults`) does each step 20 times
 * with each engine; once with one engine is what every test run does. Needs the build in dist/.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { ENGINE_NAMES } from '../../src/engines/engine.ts';
import { FAULT_POINTS } from '../../src/store/fault-point.ts';
import { Random, seeds } from './random.ts';

const CHILD = fileURLToPath(new URL('./fault-child.mjs', import.meta.url));
const rounds = Number(process.env['ARDENT_FAULT_ROUNDS'] ?? 1);
const TURNS = 60;
const [seed] = seeds(1);

interface Ended {
  signal: NodeJS.Signals | null;
  code: number | null;
  found: number;
  acknowledged: number;
  closed: boolean;
  errors: string;
}

function run(directory: string, engine: string, turns: number, fault: string | null): Promise<Ended> {
  const env = { ...process.env };
  if (fault !== null) env['ARDENT_FAULT'] = fault;
  const child = spawn(process.execPath, [CHILD, directory, engine, String(turns)], { env });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const last = (word: string) =>
    Number([...output.matchAll(new RegExp(`^${word} (\\d+)$`, 'gm'))].at(-1)?.[1] ?? -1);
  return new Promise((resolve) => {
    child.on('close', (code, signal) => {
      resolve({
        code,
        signal,
        found: last('found'),
        acknowledged: last('acknowledged'),
        closed: output.includes('closed'),
        errors,
      });
    });
  });
}

const directories: string[] = [];
afterAll(() => {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
});

const cases = FAULT_POINTS.flatMap((point, i) =>
  (rounds > 1 ? ENGINE_NAMES : [ENGINE_NAMES[i % ENGINE_NAMES.length]]).map((engine) => ({ point, engine })),
);

test.each(cases)(
  `killed at $point with $engine (seed ${seed})`,
  async ({ point, engine }) => {
    const random = new Random(seed);
    const directory = mkdtempSync(`${tmpdir()}/ardent-fault-`);
    directories.push(directory);
    let acknowledged = 0;
    for (let round = 0; round < rounds; round++) {
      // Within applying, the moment is chosen by time; elsewhere by how often the step has been passed.
      const when = point === 'close' ? '1' : String(1 + random.below(3));
      const delay = point === 'redo-apply' ? `:${random.below(12)}` : '';
      const ended = await run(directory, engine, TURNS, `${point}:${when}${delay}`);
      const context = `${point}:${when}${delay}, round ${round}: ${ended.errors}`;
      expect(ended.signal, context).toBe('SIGKILL');
      if (ended.found >= 0) {
        expect(ended.found, context).toBeGreaterThanOrEqual(acknowledged);
        acknowledged = Math.max(ended.found, ended.acknowledged);
      }
    }
    const last = await run(directory, engine, 0, null);
    expect(last, last.errors).toMatchObject({ code: 0, closed: true });
    expect(last.found, last.errors).toBeGreaterThanOrEqual(acknowledged);
  },
  30_000 * Math.max(2, rounds / 2),
);
