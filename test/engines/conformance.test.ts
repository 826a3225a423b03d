import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Worker } from 'node:worker_threads';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import {
  DELETE_LENGTH,
  ENGINE_NAMES,
  type EngineName,
  type EngineOptions,
} from '../../src/engines/engine.ts';
import { connectEngine, openEngine, type OwnedEngine } from '../../src/engines/open.ts';
import { packKeys, packRows, unpackRows } from '../../src/engines/packed.ts';
import { countKeys, drain, fill, get, key, numbered, put, scanAll, Scratch } from './fixture.ts';

const START = new Uint8Array(0);
const MB = 1024 ** 2;
const REPOSITORY = new URL('../..', import.meta.url);

describe.each(ENGINE_NAMES)('%s', (name) => {
  const scratch = new Scratch();
  const opened: OwnedEngine[] = [];

  async function open(directory = scratch.next(), options?: EngineOptions): Promise<OwnedEngine> {
    const engine = await openEngine(name, directory, options);
    opened.push(engine);
    return engine;
  }

  afterEach(async () => {
    for (const engine of opened.splice(0)) await engine.kill();
  });
  afterAll(() => scratch.dispose());

  test('gives back what was put, in the order asked', async () => {
    const engine = await open();
    await put(engine, { b: 'two', a: 'one', c: '' });
    expect(await get(engine, ['c', 'missing', 'a', 'b', 'a'])).toEqual(['', null, 'one', 'two', 'one']);
    await put(engine, { a: null, b: 'changed' });
    expect(await get(engine, ['a', 'b'])).toEqual([null, 'changed']);
  });

  test('an absent row has its key, DELETE_LENGTH and no value', async () => {
    const engine = await open();
    const found = await engine.getMany(packKeys([key('absent')]));
    expect(found.length).toBe(8 + 'absent'.length);
    expect(new DataView(found.bytes).getUint32(4, true)).toBe(DELETE_LENGTH);
  });

  test('keys are ordered as bytes, and a scan is half open', async () => {
    const engine = await open();
    const names = ['\x00', '\x00\x00', 'a', 'a\x00', 'aa', 'b', '\x7f', '\x80', '\xff', '\xff\xff'];
    await put(engine, Object.fromEntries(names.map((one) => [one, one])));
    expect((await scanAll(engine, { start: START })).map(([one]) => one)).toEqual(names);
    const middle = await scanAll(engine, { start: key('a\x00'), end: key('\x80') });
    expect(middle.map(([one]) => one)).toEqual(['a\x00', 'aa', 'b', '\x7f']);
    expect(await scanAll(engine, { start: key('c'), end: key('d') })).toEqual([]);
    expect(await scanAll(engine, { start: key('d'), end: key('c') })).toEqual([]);
  });

  test('getPrefixed: all rows of each prefix, in the order asked for', async () => {
    const engine = await open();
    const names = ['a', 'a\xff', 'a\xff\xff', 'a\xff\xff0', 'ab', 'b', '\xff', '\xff\x00'];
    await put(engine, Object.fromEntries(names.map((one) => [one, `value of ${one}`])));
    const rows = async (...prefixes: string[]): Promise<string[]> => {
      const found = unpackRows(await engine.getPrefixed(packKeys(prefixes.map(key))));
      return found.map((row) => Buffer.from(row.key).toString('latin1'));
    };
    const [first] = unpackRows(await engine.getPrefixed(packKeys([key('ab')])));
    expect(first.value).toEqual(key('value of ab'));
    expect(await rows('b', 'nothing', 'a\xff')).toEqual(['b', 'a\xff', 'a\xff\xff', 'a\xff\xff0']);
    expect(await rows('\xff')).toEqual(['\xff', '\xff\x00']);
    expect(await rows('nothing')).toEqual([]);
    await fill(engine, 3000, 100);
    expect(await rows('row:')).toHaveLength(3000);
  });

  test('takes keys of 1 to 1,978 bytes and values from nothing to megabytes', async () => {
    const engine = await open();
    const rows = [
      { key: Buffer.alloc(1), value: Buffer.alloc(0) },
      { key: Buffer.alloc(1100, 'k'), value: Buffer.alloc(1, 'v') },
      { key: Buffer.alloc(1978, 'k'), value: Buffer.alloc(2000, 'v') },
      { key: key('large'), value: Buffer.alloc(20 * MB, 'L') },
    ];
    await engine.write(packRows(rows));
    const found = unpackRows(await engine.getMany(packKeys(rows.map((row) => row.key))));
    found.forEach((row, i) => expect(Buffer.compare(row.value!, rows[i].value)).toBe(0));
    for (const bytes of [0, 1979]) {
      const bad = [{ key: Buffer.alloc(bytes), value: Buffer.alloc(1) }];
      await expect(engine.write(packRows(bad))).rejects.toMatchObject({ code: 'ENGINE_IO' });
      const wanted = packKeys([Buffer.alloc(bytes)]);
      await expect(engine.getMany(wanted)).rejects.toMatchObject({ code: 'ENGINE_IO' });
    }
  });

  test('a batch that is cut short changes nothing', async () => {
    const engine = await open();
    await put(engine, { a: 'before' });
    const batch = packRows([
      { key: key('a'), value: key('after') },
      { key: key('b'), value: key('after') },
    ]);
    batch.length -= 1;
    await expect(engine.write(batch)).rejects.toMatchObject({ code: 'ENGINE_IO' });
    expect(await get(engine, ['a', 'b'])).toEqual(['before', null]);
  });

  test('writes take effect in the order they were asked for', async () => {
    const engine = await open();
    const writes = [];
    for (let i = 0; i < 200; i++) writes.push(put(engine, { same: String(i) }));
    await Promise.all(writes);
    expect(await get(engine, ['same'])).toEqual(['199']);
  });

  test('a scan shows the state of its first chunk, whatever is written meanwhile', async () => {
    const engine = await open();
    await fill(engine, 5000, 100);
    const chunks = engine.scan({ start: START, chunkBytes: 4096 });
    const iterator = chunks[Symbol.asyncIterator]();
    const first = await iterator.next();
    expect(first.done).toBe(false);
    await fill(engine, 5000, 90);
    await engine.deleteRange({ start: numbered(1000), end: numbered(4000) });
    await put(engine, { 'row:000002500x': 'new' });
    await engine.compact();
    const rest = await drain({ [Symbol.asyncIterator]: () => iterator });
    expect(rest.length + first.value!.rows).toBe(5000);
    expect(new Set(rest.map(([, value]) => value))).toEqual(new Set(['v'.repeat(100)]));
    expect(await countKeys(engine, { start: START })).toBe(2001);
  });

  test('a scan left early is released, and several run side by side', async () => {
    const engine = await open();
    await fill(engine, 2000, 100);
    for (let i = 0; i < 300; i++) {
      for await (const chunk of engine.scan({ start: numbered(i), chunkBytes: 100 })) {
        expect(chunk.rows).toBeGreaterThan(0);
        break;
      }
    }
    const counts = [0, 500, 1000].map((from) => countKeys(engine, { start: numbered(from) }));
    expect(await Promise.all(counts)).toEqual([2000, 1500, 1000]);
  });

  test('getMany is served during a write of 64 MB', async () => {
    const engine = await open();
    await put(engine, { small: 'here' });
    const value = Buffer.alloc(1000, 'x');
    const rows = [];
    for (let i = 0; i < 64_000; i++) rows.push({ key: numbered(i), value });
    let written = false;
    const write = engine.write(packRows(rows), { sync: true }).then(() => (written = true));
    let served = 0;
    for (;;) {
      const found = await get(engine, ['small']);
      if (written) break;
      expect(found).toEqual(['here']);
      served++;
    }
    await write;
    expect(served).toBeGreaterThan(3);
    expect(await countKeys(engine, { start: START })).toBe(64_001);
  });

  test('a large deleteRange is paced', async () => {
    const count = Number(process.env['ARDENT_DELETE_ROWS'] ?? 300_000);
    const engine = await open();
    await fill(engine, count, 16);
    await put(engine, { 'a before': '1', 'z after': '2' });
    let deleted = false;
    const range = { start: numbered(0), end: numbered(count) };
    const deletion = engine.deleteRange(range).then(() => (deleted = true));
    let served = 0;
    do {
      expect(await get(engine, ['a before', 'z after'])).toEqual(['1', '2']);
      await put(engine, { 'a written': String(served++) });
    } while (!deleted);
    await deletion;
    expect(await scanAll(engine, { start: START })).toEqual([
      ['a before', '1'],
      ['a written', String(served - 1)],
      ['z after', '2'],
    ]);
    expect(served).toBeGreaterThan(name === 'rocksdb' ? 0 : 10);
  }, 900_000);

  test('getMany and write are served during scan, backup and compact', async () => {
    const engine = await open();
    await fill(engine, 100_000, 300);
    const backup = scratch.next();
    let running = 3;
    const done = (): void => void running--;
    const work = [
      countKeys(engine, { start: START }).then(done),
      engine.backup(backup).then(done),
      engine.compact().then(done),
    ];
    let served = 0;
    while (running > 0) {
      const found = unpackRows(await engine.getMany(packKeys([numbered(served % 100_000)])));
      expect(found[0].value).toHaveLength(300);
      served++;
    }
    await Promise.all(work);
    expect(served).toBeGreaterThan(3);
  });

  test('compact gives space back and loses nothing', async () => {
    const engine = await open();
    await fill(engine, 50_000, 400);
    await engine.compact();
    const before = await engine.stats();
    await engine.deleteRange({ start: numbered(5000) });
    await engine.compact();
    const after = await engine.stats();
    expect(after.diskBytes).toBeLessThan(before.diskBytes / 3);
    expect(await countKeys(engine, { start: START })).toBe(5000);
    await put(engine, { later: 'x' });
    expect(await get(engine, ['later'])).toEqual(['x']);
  });

  test('a backup opens as an engine, with one consistent state', async () => {
    const directory = scratch.next();
    const engine = await open(directory);
    await fill(engine, 20_000, 300);
    const to = scratch.next();
    const backup = engine.backup(to);
    // Whatever of these the backup has, it has whole batches, in order.
    for (let i = 1; i <= 20; i++) await put(engine, { first: String(i), second: String(i) });
    await backup;
    await expect(engine.backup(to)).rejects.toMatchObject({ code: 'ENGINE_IO' });
    const copy = await open(to);
    expect(await countKeys(copy, { start: numbered(0), end: key('row;') })).toBe(20_000);
    const [first, second] = await get(copy, ['first', 'second']);
    expect(first).toBe(second);
    await put(copy, { only: 'here' });
    expect(await get(engine, ['first', 'only'])).toEqual(['20', null]);
  });

  test('what was closed is there when opened again', async () => {
    const directory = scratch.next();
    const engine = await open(directory);
    await fill(engine, 1000, 100);
    await engine.close();
    await expect(put(engine, { a: 'b' })).rejects.toMatchObject({ code: 'ENGINE_DEAD' });
    const again = await open(directory);
    expect(await countKeys(again, { start: START })).toBe(1000);
    expect(readFileSync(join(directory, 'ENGINE'), 'utf8')).toContain(`engine: ${name}\n`);
  });

  test('close lets writes under way finish', async () => {
    const directory = scratch.next();
    const engine = await open(directory);
    const write = fill(engine, 20_000, 100);
    await engine.close();
    await write;
    const again = await open(directory);
    expect(await countKeys(again, { start: START })).toBe(20_000);
  });

  test('a close that abandons the write under way leaves all of its batch or nothing', async () => {
    const directory = scratch.next();
    const engine = await open(directory);
    await put(engine, { before: 'there' });
    const write = fill(engine, 20_000, 100).then(
      () => true,
      () => false,
    );
    await engine.close({ abandon: true });
    const written = await write;
    const again = await open(directory);
    expect(await get(again, ['before'])).toEqual(['there']);
    expect(await countKeys(again, { start: numbered(0), end: key('row;') })).toBe(written ? 20_000 : 0);
  });

  test('close ends open scans', async () => {
    const directory = scratch.next();
    const engine = await open(directory);
    await fill(engine, 5000, 100);
    const scan = engine.scan({ start: START, chunkBytes: 1000 })[Symbol.asyncIterator]();
    await scan.next();
    await engine.close();
    const again = await open(directory);
    expect(await countKeys(again, { start: START })).toBe(5000);
  });

  test('after kill -9 in the middle of a write every batch is whole', async () => {
    for (let round = 0; round < 3; round++) {
      const directory = scratch.next();
      const { acknowledged, child } = startWriter(name, directory);
      await acknowledged(5 + round * 7);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
      child.kill('SIGKILL');
      await once(child, 'exit');
      const last = await acknowledged(0);
      const engine = await open(directory);
      const batches = new Set<number>();
      let rows = 0;
      for await (const chunk of engine.scan({ start: START })) {
        for (const { value } of unpackRows(chunk)) {
          batches.add(Buffer.from(value!).readUInt32LE());
          rows++;
        }
      }
      expect(rows).toBe(200);
      expect(batches.size).toBe(1);
      // A process that is killed takes nothing with it that it gave to the system.
      expect([...batches][0]).toBeGreaterThanOrEqual(last);
      await engine.close();
    }
  });

  test('is locked against another process, and against itself', async () => {
    const directory = scratch.next();
    const engine = await open(directory);
    await put(engine, { a: 'b' });
    expect(await holdIn(name, directory)).toContain('ENGINE_LOCKED');
    await expect(open(directory)).rejects.toMatchObject({ code: 'ENGINE_LOCKED' });
    expect(await get(engine, ['a'])).toEqual(['b']);
    await engine.close();
    expect(await holdIn(name, directory)).toBe('open');
    const again = await open(directory);
    expect(await get(again, ['a'])).toEqual(['b']);
  });

  test('refuses the directory of another engine, of another format, or of nobody', async () => {
    const other = ENGINE_NAMES.find((one) => one !== name)!;
    const directory = scratch.next();
    const engine = await openEngine(other, directory);
    await put(engine, { a: 'b' });
    await engine.close();
    const before = readdirSync(directory).sort();
    const refusal = await open(directory).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: 'ENGINE_MISMATCH' });
    expect(String(refusal)).toContain(`written by engine ${other}, not ${name}`);
    expect(String(refusal)).toContain(directory);
    expect(readdirSync(directory).sort()).toEqual(before);

    const newer = scratch.next();
    mkdirSync(newer);
    writeFileSync(join(newer, 'ENGINE'), `engine: ${name}\nbinding: x 1\nformat: 2\n`);
    await expect(open(newer)).rejects.toMatchObject({ code: 'ENGINE_FORMAT' });

    const strange = scratch.next();
    mkdirSync(strange);
    writeFileSync(join(strange, 'precious'), 'text');
    await expect(open(strange)).rejects.toMatchObject({ code: 'ENGINE_MISMATCH' });
    expect(readdirSync(strange)).toEqual(['precious']);
  });

  test('an engine whose making was cut short is made again', async () => {
    const directory = scratch.next();
    mkdirSync(directory);
    writeFileSync(join(directory, 'ENGINE.new'), 'engi');
    const engine = await open(directory);
    await put(engine, { a: 'b' });
    expect(existsSync(join(directory, 'ENGINE.new'))).toBe(false);
  });

  test('damage is refused by name, and nothing is overwritten', async () => {
    const directory = scratch.next();
    const engine = await open(directory);
    await fill(engine, 1000, 100);
    await engine.close();
    const names = { leveldb: /^MANIFEST-/, lmdb: /^data-.*mdb$/, rocksdb: /^MANIFEST-/ };
    const victim = readdirSync(directory).find((file) => names[name].test(file))!;
    const path = join(directory, victim);
    const whole = readFileSync(path);
    const spoiled: [string, () => void][] = [
      ['garbage', () => writeFileSync(path, Buffer.alloc(whole.length, 0xa5))],
      ['emptied', () => truncateSync(path, 0)],
    ];
    for (const [what, spoil] of spoiled) {
      spoil();
      const failure = await open(directory).catch((error: unknown) => error);
      expect(failure, what).toMatchObject({ code: 'ENGINE_DAMAGED' });
      expect(String(failure)).toContain(directory);
      writeFileSync(path, whole);
    }
    const again = await open(directory);
    expect(await countKeys(again, { start: START })).toBe(1000);
  });

  test('a directory whose data files are gone is damaged, not new', async () => {
    const directory = scratch.next();
    await (await open(directory)).close();
    const identity = readFileSync(join(directory, 'ENGINE'));
    const bare = scratch.next();
    mkdirSync(bare);
    writeFileSync(join(bare, 'ENGINE'), identity);
    await expect(open(bare)).rejects.toMatchObject({ code: 'ENGINE_DAMAGED' });
  });

  test('a missing binding is named, and leaves no trace', async () => {
    // A copy of the built program without its packages.
    const copy = scratch.next();
    for (const part of ['dist/engines', 'dist/bytes', 'test/engines/hold-process.mjs']) {
      cpSync(new URL(part, REPOSITORY), join(copy, part), { recursive: true });
    }
    writeFileSync(join(copy, 'package.json'), '{ "type": "module" }');
    const script = join(copy, 'test/engines/hold-process.mjs');
    const directory = scratch.next();
    const said = await holdIn(name, directory, script);
    const binding = { leveldb: 'classic-level', lmdb: 'lmdb', rocksdb: 'rocksdb-native' };
    expect(said).toContain(`ENGINE_MISSING engine ${name}`);
    expect(said).toContain(`its binding ${binding[name]} cannot be loaded`);
    expect(existsSync(directory)).toBe(false);
  });

  test('an unknown or bad option is refused, and the valid ones are listed', async () => {
    const unknown = await open(scratch.next(), { [`${name}.speed`]: 'high' }).catch(String);
    expect(unknown).toContain(`no option ${name}.speed`);
    const valid = { leveldb: 'write-buffer-size', lmdb: 'map-size', rocksdb: 'write-buffer-size' };
    const option = `${name}.${valid[name]}`;
    expect(unknown).toContain(option);
    for (const value of ['lots', -1, 'yes', '1kb']) {
      const refused = open(scratch.next(), { [option]: value });
      await expect(refused).rejects.toMatchObject({ code: 'ENGINE_OPTION' });
    }
    const engine = await open(scratch.next(), { [option]: '64mb' });
    await put(engine, { a: 'b' });
  });

  test('applyRows writes the rows of a file region', async () => {
    const engine = await open();
    await put(engine, { 'row:000000007': 'to be deleted', other: 'stays' });
    const rows = [];
    for (let i = 0; i < 200; i++) {
      const value = i === 7 ? undefined : Buffer.alloc(i * 15, String(i % 10));
      rows.push({ key: numbered(i), value });
    }
    const { bytes, length } = packRows(rows);
    const path = scratch.next();
    const header = Buffer.from('header');
    writeFileSync(path, Buffer.concat([header, Buffer.from(bytes, 0, length), header]));
    for (const batchBytes of [100, 5000, 64 * MB]) {
      const options = { batchBytes, sync: true };
      expect(await engine.applyRows(path, header.length, length, options)).toBe(200);
    }
    const found = await scanAll(engine, { start: numbered(0), end: numbered(200) });
    expect(found.length).toBe(199);
    for (const [name, value] of found) {
      const i = Number(name.slice(4));
      expect(value).toBe(String(i % 10).repeat(i * 15));
    }
    expect(await get(engine, ['row:000000007', 'other'])).toEqual([null, 'stays']);
    expect(await engine.applyRows(path, 3, 0)).toBe(0);
  });

  test('applyRows names file and offset of a torn row', async () => {
    const engine = await open();
    const rows = [
      { key: key('a'), value: Buffer.alloc(100) },
      { key: key('b'), value: Buffer.alloc(100) },
    ];
    const { bytes, length } = packRows(rows);
    const second = length / 2;
    const path = scratch.next();
    writeFileSync(path, Buffer.from(bytes, 0, length));
    const short = await engine.applyRows(path, 0, length - 1).catch((error: unknown) => error);
    expect(short).toMatchObject({ code: 'ENGINE_IO' });
    expect(String(short)).toContain(`${path}: the row at offset ${second} `);
    const beyond = await engine.applyRows(path, 0, length + 5).catch((error: unknown) => error);
    expect(String(beyond)).toContain(`${path} ends at ${length}`);
    const odd = Buffer.from(bytes, 0, length);
    odd.writeUInt32LE(0, second);
    writeFileSync(path, odd);
    const empty = await engine.applyRows(path, 0, length).catch((error: unknown) => error);
    expect(String(empty)).toContain(`${path}: the row at offset ${second} `);
    const absent = engine.applyRows(`${path}-absent`, 0, 10);
    await expect(absent).rejects.toMatchObject({ name: 'EngineError' });
  });

  test('another thread reads and writes through a port', async () => {
    const engine = await open();
    await put(engine, { a: 'from here' });
    const port = engine.connect();
    const thread = new Worker(
      `const { workerData } = require('node:worker_threads');
       (async () => {
         const at = (file) => import(new URL('dist/engines/' + file, workerData.root).href);
         const { connectEngine } = await at('open.js');
         const { packKeys, packRows, unpackRows } = await at('packed.js');
         const engine = connectEngine(workerData.name, workerData.port);
         const [row] = unpackRows(await engine.getMany(packKeys([Buffer.from('a')])));
         const value = Buffer.concat([row.value, Buffer.from(', from there')]);
         await engine.write(packRows([{ key: Buffer.from('b'), value }]));
         await engine.close();
       })();`,
      {
        eval: true,
        execArgv: [],
        workerData: { name, port, root: REPOSITORY.href },
        transferList: [port],
      },
    );
    await once(thread, 'exit');
    expect(await get(engine, ['b'])).toEqual(['from here, from there']);
  });

  test('a dead thread rejects pending and later calls, of every client', async () => {
    const directory = scratch.next();
    const engine = await open(directory);
    const client = connectEngine(name, engine.connect());
    await put(client, { a: 'b' });
    const value = Buffer.alloc(1000, 'x');
    const rows = [];
    for (let i = 0; i < 50_000; i++) rows.push({ key: numbered(i), value });
    const pending = [
      engine.write(packRows(rows)),
      client.deleteRange({ start: numbered(0) }),
      engine.compact(),
    ];
    const outcomes = Promise.allSettled(pending);
    await engine.kill();
    for (const outcome of await outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'ENGINE_DEAD' } });
    }
    await expect(put(engine, { c: 'd' })).rejects.toMatchObject({ code: 'ENGINE_DEAD' });
    await expect(put(client, { c: 'd' })).rejects.toMatchObject({ code: 'ENGINE_DEAD' });
    expect(() => engine.connect()).toThrow('has ended');
    const again = await open(directory);
    expect(await get(again, ['a'])).toEqual(['b']);
  });

  test('stats give the size on disk, the memory budget and the engine’s own figures', async () => {
    const engine = await open();
    await fill(engine, 10_000, 500);
    const stats = await engine.stats();
    expect(stats.diskBytes).toBeGreaterThan(1000);
    expect(stats.memoryBytes).toBeGreaterThan(0);
    expect(Object.keys(stats.details).every((one) => one.startsWith(`${name}.`))).toBe(true);
  });
});

/** Starts a process that writes until it is killed; `acknowledged(n)` waits for its n-th batch. */
function startWriter(
  name: EngineName,
  directory: string,
): { child: ChildProcess; acknowledged: (batch: number) => Promise<number> } {
  const script = new URL('writer-process.mjs', import.meta.url);
  const child = spawn(process.execPath, [script.pathname, name, directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let last = 0;
  const lines = createInterface({ input: child.stdout! });
  lines.on('line', (line) => (last = Number(line)));
  return {
    child,
    acknowledged: async (batch) => {
      while (last < batch && child.exitCode === null) await once(lines, 'line');
      return last;
    },
  };
}

/** What another process gets when it opens the directory: `open`, or the error's code and message. */
async function holdIn(
  name: EngineName,
  directory: string,
  script = new URL('hold-process.mjs', import.meta.url).pathname,
): Promise<string> {
  const child = spawn(process.execPath, [script, name, directory], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  child.stdin.end();
  await exited;
  return line;
}
