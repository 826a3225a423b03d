import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Engine, PackedRows, Range } from '../../src/engines/engine.ts';
import { packKeys, packRows, unpackRows } from '../../src/engines/packed.ts';

/** A directory of its own, removed by `dispose`. */
export class Scratch {
  readonly path = mkdtempSync(join(tmpdir(), 'ardent-engine-'));
  private count = 0;

  /** A path in it that does not exist yet. */
  next(): string {
    return join(this.path, String(++this.count));
  }

  dispose(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

export const key = (text: string): Buffer => Buffer.from(text, 'latin1');
export const numbered = (i: number): Buffer => key(`row:${String(i).padStart(9, '0')}`);

export async function put(engine: Engine, rows: Record<string, string | null>): Promise<void> {
  await engine.write(
    packRows(
      Object.entries(rows).map(([name, value]) => ({
        key: key(name),
        value: value === null ? undefined : key(value),
      })),
    ),
  );
}

export async function get(engine: Engine, names: string[]): Promise<(string | null)[]> {
  const rows = unpackRows(await engine.getMany(packKeys(names.map(key))));
  return rows.map(({ value }) => (value === undefined ? null : Buffer.from(value).toString('latin1')));
}

export async function scanAll(engine: Engine, range: Range): Promise<[string, string][]> {
  return drain(engine.scan(range));
}

export async function drain(chunks: AsyncIterable<PackedRows>): Promise<[string, string][]> {
  const rows: [string, string][] = [];
  for await (const chunk of chunks) {
    for (const row of unpackRows(chunk)) {
      rows.push([Buffer.from(row.key).toString('latin1'), Buffer.from(row.value ?? []).toString('latin1')]);
    }
  }
  return rows;
}

/** Writes `count` numbered rows of `valueBytes` each, in batches. */
export async function fill(engine: Engine, count: number, valueBytes: number): Promise<void> {
  const value = Buffer.alloc(valueBytes, 'v');
  const perBatch = 20_000;
  for (let at = 0; at < count; at += perBatch) {
    const rows = [];
    for (let i = at; i < Math.min(count, at + perBatch); i++) rows.push({ key: numbered(i), value });
    await engine.write(packRows(rows));
  }
}

export async function countKeys(engine: Engine, range: Range): Promise<number> {
  let rows = 0;
  for await (const chunk of engine.scan({ ...range, keysOnly: true })) rows += chunk.rows;
  return rows;
}
