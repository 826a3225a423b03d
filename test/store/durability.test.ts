import { describe, expect, test, vi } from 'vitest';
import { EngineError } from '../../src/engines/engine.ts';
import { DataDirectory } from '../../src/store/data-directory.ts';
import { LogDamagedError } from '../../src/store/log-reader.ts';
import { PersistentStore, type DurabilityOptions } from '../../src/store/persistent-store.ts';
import { RowDamagedError } from '../../src/store/recovery.ts';
import { RedoDamagedError } from '../../src/store/redo.ts';
import { PlainSource, type Effect } from './plain-source.ts';
import { seeds, uniform } from './random.ts';
import { DiskFault, SimulatedDisk } from './simulated-disk.ts';
import { SimulatedEngine } from './simulated-engine.ts';

const PATH = '/simulated/data';
/** The meta row and its copy. */
const META_ROWS = 2;

interface Machine {
  disk: SimulatedDisk;
  engine: SimulatedEngine;
}

function newMachine(): Machine {
  const disk = new SimulatedDisk();
  return { disk, engine: new SimulatedEngine(disk) };
}

function afterKill({ disk, engine }: Machine): Machine {
  const next = disk.afterKill();
  return { disk: next, engine: engine.afterKill(next) };
}

function afterPowerLoss({ disk, engine }: Machine, random: () => number): Machine {
  const next = disk.afterPowerLoss(random);
  return { disk: next, engine: engine.afterPowerLoss(next, random) };
}

type Opened = PersistentStore<PlainSource>;

async function open(machine: Machine, options: Partial<DurabilityOptions> = {}): Promise<Opened> {
  const { disk, engine } = machine;
  const store = new PlainSource();
  const directory = await DataDirectory.open(PATH, disk, 'leveldb', 'none');
  return PersistentStore.open(
    { directory, disk, logDisk: disk, engine, store },
    {
      appendfsync: 'no',
      segmentBytes: 2000,
      replay: (payload) => store.apply(JSON.parse(payload.latin1()) as Effect[]),
      ...options,
    },
  );
}

function write(opened: Opened, effects: Effect[]): void {
  opened.store.apply(effects);
  opened.log.append(Buffer.from(JSON.stringify(effects)));
}

const add = (name: string, amount = 1): Effect => ({ kind: 'add', name, amount });

/** The state after the first `count` turns of a history. */
function stateAfter(history: readonly Effect[][], count: number): Record<string, number> {
  const model = new PlainSource();
  for (const effects of history.slice(0, count)) model.apply(effects);
  return Object.fromEntries(model.values);
}

const stateOf = (opened: Opened) => Object.fromEntries(opened.store.values);

describe('open and close', () => {
  test('what was written is there after a kill, without any checkpoint', async () => {
    const machine = newMachine();
    const first = await open(machine);
    for (let i = 0; i < 100; i++) write(first, [add('x'), add(`y${i % 7}`)]);
    const again = await open(afterKill(machine));
    expect(stateOf(again)).toEqual(stateOf(first));
    expect(again.recovered).toMatchObject({ rows: 0, replayedFrames: 100, meta: null });
    expect(again.log.replicationId).not.toBe(first.log.replicationId);
  });

  test('a clean end leaves nothing to replay and keeps the replication history', async () => {
    let machine = newMachine();
    const first = await open(machine);
    for (let i = 0; i < 100; i++) write(first, [add(`x${i}`)]);
    const { replicationId, replicationOffset } = first.log;
    expect(await first.close()).toBe(true);
    const again = await open((machine = afterKill(machine)));
    expect(stateOf(again)).toEqual(stateOf(first));
    expect(again.recovered).toMatchObject({ rows: 100, replayedFrames: 0 });
    expect(again.log).toMatchObject({ replicationId, replicationOffset });
    expect(machine.disk.list(`${PATH}/redo`)).toEqual([]);
    // Killed without a word, the next one begins a history of its own.
    const third = await open(afterKill(machine));
    expect(third.log.replicationId).not.toBe(replicationId);
    expect(third.log.position).toBe(again.log.position);
  });

  test('a checkpoint replaces the log before it, and the engine gets each row once', async () => {
    const machine = newMachine();
    const opened = await open(machine);
    for (let i = 0; i < 300; i++) write(opened, [add('x'), add(`y${i % 50}`)]);
    await opened.checkpointer.checkpoint();
    expect(machine.engine.rows.size).toBe(51 + META_ROWS);
    expect(opened.log.segments).toBe(1);
    expect(opened.log.oldest).toBe(opened.log.position);
    write(opened, [add('x'), { kind: 'remove', name: 'y3' }]);
    const again = await open(afterKill(machine));
    expect(stateOf(again)).toEqual(stateOf(opened));
    expect(again.recovered).toMatchObject({ rows: 51, replayedFrames: 1 });
  });

  test('closing with no time left leaves everything to the log', async () => {
    const machine = newMachine();
    const opened = await open(machine);
    for (let i = 0; i < 300; i++) write(opened, [add(`y${i}`)]);
    expect(await opened.close(0)).toBe(true);
    expect(machine.engine.rows.size).toBe(0);
    const again = await open(afterKill(machine));
    expect(stateOf(again)).toEqual(stateOf(opened));
    expect(again.log.replicationId).toBe(opened.log.replicationId);
  });

  test('closing while the engine is slow gives the checkpoint up, and is a clean end', async () => {
    const machine = newMachine();
    const onFatal = vi.fn();
    const opened = await open(machine, { onFatal });
    for (let i = 0; i < 300; i++) write(opened, [add(`y${i}`)]);
    let closed = false;
    machine.engine.fault = () => (closed ? new EngineError('ENGINE_DEAD', 'closed') : new Error('busy'));
    const { engine } = machine;
    const close = engine.close.bind(engine);
    engine.close = async () => {
      closed = true;
      await close();
    };
    expect(await opened.close(200)).toBe(true);
    expect(onFatal).not.toHaveBeenCalled();
    const again = await open(afterKill(machine));
    expect(stateOf(again)).toEqual(stateOf(opened));
    expect(again.recovered).toMatchObject({ redoRows: 300 + META_ROWS, replayedFrames: 0 });
    expect(again.log.replicationId).toBe(opened.log.replicationId);
  });

  test('dropped generations are purged from the engine, also when a crash came between', async () => {
    let machine = newMachine();
    let opened = await open(machine);
    for (let i = 0; i < 60; i++) write(opened, [add(`old${i}`)]);
    await opened.checkpointer.checkpoint();
    write(opened, [{ kind: 'drop' }, add('new')]);
    machine.engine.fault = () => null;
    let commits = 0;
    machine.engine.fault = () =>
      machine.engine.rows.get('k2-new') !== undefined && commits++ > 0 ? new Error('busy') : null;
    await opened.checkpointer.checkpoint().catch(() => undefined);
    expect([...machine.engine.rows.keys()].some((key) => key.startsWith('k1-'))).toBe(true);
    machine = afterKill(machine);
    opened = await open(machine);
    await expect.poll(() => [...machine.engine.rows.keys()].sort()).toEqual(['M', 'k2-new', 'm']);
    await opened.checkpointer.checkpoint();
    const third = afterKill(machine);
    const last = await open(third);
    expect(stateOf(last)).toEqual({ new: 1 });
    expect(last.store.purgeRanges()).toEqual([]);
  });
});

describe('ceilings', () => {
  test('checkpoints begin by themselves, and pressure rises towards the ceiling', async () => {
    const opened = await open(newMachine(), {
      checkpoint: { dirtyBytes: 1000, dirtyBytesMax: 2000, logBytes: 1e9, logBytesMax: 2e9, ageMs: 1e9 },
    });
    expect(opened.checkpointer.pressure).toBe(0);
    for (let i = 0; i < 75; i++) write(opened, [add(`x${i}`)]);
    expect(opened.checkpointer.pressure).toBe(0.5);
    expect(opened.checkpointer.writerDelayMs).toBeCloseTo(12.5);
    await expect.poll(() => opened.checkpointer.info().checkpoints, { timeout: 5000 }).toBe(1);
    await expect.poll(() => opened.checkpointer.pressure, { timeout: 5000 }).toBe(0);
    await opened.close();
  });

  test('age alone is reason enough, an idle store is not', async () => {
    const opened = await open(newMachine(), { checkpoint: { ageMs: 150 } });
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(opened.checkpointer.info().checkpoints).toBe(0);
    write(opened, [add('x')]);
    await expect.poll(() => opened.checkpointer.info().checkpoints, { timeout: 5000 }).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(opened.checkpointer.info().checkpoints).toBe(1);
    await opened.close();
  });

  test('no cut is taken while effects are not in the log', async () => {
    const machine = newMachine();
    const opened = await open(machine);
    write(opened, [add('x')]);
    opened.flush = () => false;
    await expect(opened.checkpointer.checkpoint()).rejects.toThrow('no cut');
    expect(machine.engine.rows.size).toBe(0);
    opened.flush = () => true;
    await opened.checkpointer.checkpoint();
    expect(machine.engine.rows.size).toBe(1 + META_ROWS);
  });
});

describe('errors on the way', () => {
  test('a redo file that cannot be written gives the checkpoint up; the next one has its rows', async () => {
    const warnings: string[] = [];
    const machine = newMachine();
    const opened = await open(machine, { onWarning: (message) => warnings.push(message) });
    for (let i = 0; i < 40; i++) write(opened, [add(`x${i}`)]);
    machine.disk.fault = (operation, path) =>
      path.includes('/redo/') && operation === 'sync' ? new DiskFault('ENOSPC') : null;
    await expect(opened.checkpointer.checkpoint()).rejects.toThrow('ENOSPC');
    expect(warnings.join()).toContain('ENOSPC');
    expect(opened.checkpointer.info()).toMatchObject({ last_ok: false, failures: 1 });
    write(opened, [add('x0'), add('later')]);
    machine.disk.fault = () => null;
    await opened.checkpointer.checkpoint();
    expect(opened.checkpointer.info()).toMatchObject({ last_ok: true, last_error: '' });
    const again = await open(afterKill(machine));
    expect(again.recovered).toMatchObject({ rows: 41, replayedFrames: 0 });
    expect(stateOf(again)).toEqual(stateOf(opened));
  });

  test('an engine that fails for a while gets the rows later; a crash meanwhile loses nothing', async () => {
    const machine = newMachine();
    const opened = await open(machine);
    for (let i = 0; i < 40; i++) write(opened, [add(`x${i}`)]);
    machine.engine.fault = () => new EngineError('ENGINE_FULL', 'no space left');
    const checkpoint = opened.checkpointer.checkpoint();
    await expect.poll(() => opened.checkpointer.info().failures, { timeout: 5000 }).toBe(1);
    write(opened, [add('x0')]);
    const again = await open(afterKill(machine));
    expect(stateOf(again)).toEqual(stateOf(opened));
    expect(again.recovered).toMatchObject({ redoRows: 40 + META_ROWS, replayedFrames: 1 });
    machine.engine.fault = () => null;
    await checkpoint;
    expect(machine.engine.rows.size).toBe(40 + META_ROWS);
  });

  test('a dead engine is fatal', async () => {
    const machine = newMachine();
    const onFatal = vi.fn();
    const opened = await open(machine, { onFatal });
    write(opened, [add('x')]);
    machine.engine.fault = () => new EngineError('ENGINE_DEAD', 'the thread has ended');
    await expect(opened.checkpointer.checkpoint()).rejects.toThrow('has ended');
    expect(onFatal).toHaveBeenCalledOnce();
    await expect(opened.checkpointer.checkpoint()).rejects.toThrow('no more checkpoints');
  });

  test('a failed log sync is mended by itself', async () => {
    const machine = newMachine();
    const opened = await open(machine, { appendfsync: 'always' });
    machine.disk.fault = (operation) => (operation === 'sync' ? new DiskFault('EIO') : null);
    write(opened, [add('x')]);
    await expect.poll(() => opened.log.failure).toContain('EIO');
    machine.disk.fault = () => null;
    await expect.poll(() => opened.log.failure, { timeout: 5000 }).toBeNull();
    expect(opened.log.syncedPosition).toBe(opened.log.position);
    await opened.close();
  });
});

describe('damage stops the start', () => {
  async function closedMachine(): Promise<Machine> {
    const machine = newMachine();
    const opened = await open(machine);
    for (let i = 0; i < 40; i++) write(opened, [add(`x${i}`)]);
    await opened.checkpointer.checkpoint();
    for (let i = 0; i < 40; i++) write(opened, [add(`x${i}`)]);
    return afterKill(machine);
  }

  test('a damaged log frame', async () => {
    const machine = await closedMachine();
    const name = machine.disk.list(`${PATH}/log`)[0];
    const bytes = Buffer.from(machine.disk.read(`${PATH}/log/${name}`));
    bytes[300] ^= 1;
    machine.disk.put(`${PATH}/log/${name}`, bytes);
    await expect(open(machine)).rejects.toThrow(LogDamagedError);
    await expect(open(machine)).rejects.toThrow(/ardent check \/simulated\/data --repair/);
  });

  test('a torn tail is cut off with a warning', async () => {
    const machine = await closedMachine();
    const name = machine.disk.list(`${PATH}/log`).at(-1)!;
    const bytes = machine.disk.read(`${PATH}/log/${name}`);
    machine.disk.put(`${PATH}/log/${name}`, bytes.subarray(0, bytes.length - 3));
    const warnings: string[] = [];
    const again = await open(machine, { onWarning: (message) => warnings.push(message) });
    expect(again.recovered.replayedFrames).toBe(39);
    expect(warnings.join()).toMatch(/torn tail at offset \d+ \(log position \d+\)/);
    write(again, [add('after')]);
    const third = await open(afterKill(machine));
    expect(stateOf(third)).toEqual(stateOf(again));
  });

  test('a damaged redo file, meta row or row', async () => {
    const machine = await closedMachine();
    const rows = new Map(machine.engine.rows);
    machine.disk.put(`${PATH}/redo/${'9'.padStart(16, '0')}.redo`, Buffer.alloc(200, 1));
    await expect(open(machine)).resolves.toBeDefined(); // older than the engine's rows
    machine.disk.put(`${PATH}/redo/${'9'.repeat(16)}.redo`, Buffer.alloc(200, 1));
    await expect(open(machine)).rejects.toThrow(RedoDamagedError);
    machine.disk.remove(`${PATH}/redo/${'9'.repeat(16)}.redo`);
    machine.engine.rows.set('k1-x5', Buffer.from('not a number'));
    await expect(open(machine)).rejects.toThrow(RowDamagedError);
    machine.engine.rows.set('k1-x5', rows.get('k1-x5')!);
    const meta = Buffer.from(rows.get('m')!);
    meta[10] ^= 1;
    machine.engine.rows.set('m', meta);
    await expect(open(machine)).resolves.toBeDefined(); // its copy serves
    machine.engine.rows.set('m', meta);
    machine.engine.rows.set('M', meta);
    await expect(open(machine)).rejects.toThrow('meta row');
  });

  test('another engine, another format', async () => {
    const { disk } = await closedMachine();
    await expect(DataDirectory.open(PATH, disk, 'lmdb', 'none')).rejects.toThrow('--engine leveldb');
    const identity = JSON.parse(disk.read(`${PATH}/ardent.json`).toString()) as Record<string, unknown>;
    disk.put(`${PATH}/ardent.json`, Buffer.from(JSON.stringify({ ...identity, format: 2 })));
    await expect(DataDirectory.open(PATH, disk, 'leveldb', 'none')).rejects.toThrow('data format 2');
    disk.put(`${PATH}/ardent.json`, Buffer.from('{"format'));
    await expect(DataDirectory.open(PATH, disk, 'leveldb', 'none')).rejects.toThrow('not JSON');
    disk.remove(`${PATH}/ardent.json`);
    await expect(DataDirectory.open(PATH, disk, 'leveldb', 'none')).rejects.toThrow('holds log');
  });
});

test('a crash at any moment: nothing acknowledged is lost, nothing is half-done', async () => {
  const seed = seeds(1)[0];
  const random = uniform(seed);
  for (let round = 0; round < 60; round++) {
    let machine = newMachine();
    let history: Effect[][] = [];
    for (let life = 0; life < 4; life++) {
      const context = `seed ${seed} round ${round} life ${life}`;
      const opened = await open(machine, { checkpoint: { batchBytes: 200 } });
      expect(stateOf(opened), context).toEqual(stateAfter(history, history.length));
      const turns = Math.floor(random() * 120);
      for (let turn = 0; turn < turns; turn++) {
        const effects: Effect[] = [add('turns')];
        for (let n = Math.floor(random() * 4); n >= 0; n--) {
          const name = `x${Math.floor(random() * 40)}`;
          const dice = random();
          effects.push(dice < 0.75 ? add(name, Math.floor(random() * 9)) : { kind: 'remove', name });
        }
        if (random() < 0.02) effects.splice(1, 0, { kind: 'drop' }, add('turns', history.length + 1));
        write(opened, effects);
        history.push(effects);
        if (random() < 0.1) void opened.checkpointer.checkpoint().catch(() => undefined);
        if (random() < 0.05) void opened.log.sync().catch(() => undefined);
        if (random() < 0.5) await new Promise(setImmediate);
      }
      const powerLoss = random() < 0.6;
      const synced = opened.log.syncedPosition;
      const ends = history.length;
      const before = machine;
      machine = powerLoss ? afterPowerLoss(machine, random) : afterKill(machine);
      // The old life must not go on.
      before.disk.fault = () => new DiskFault('EIO');
      before.engine.fault = () => new EngineError('ENGINE_DEAD', 'gone');
      opened.checkpointer.close(0).catch(() => undefined);

      const survivor = afterKill(machine);
      const again = await open(survivor).catch((cause: unknown) => {
        throw new Error(context, { cause });
      });
      const survived = history.length === 0 ? 0 : (stateOf(again)['turns'] ?? 0);
      expect(stateOf(again), context).toEqual(stateAfter(history, survived));
      if (powerLoss) expect(again.log.position, context).toBeGreaterThanOrEqual(synced);
      else expect(survived, context).toBe(ends);
      history = history.slice(0, survived);
      machine = survivor;
      machine = afterKill(machine);
    }
  }
});
