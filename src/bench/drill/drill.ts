/**
 * Backup drills: known content is saved under load, wiped, brought back and compared, value by value; and
 * what goes wrong with saves and files is provoked, to see that nothing is lost by it.
 */
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../../workloads/random.ts';
import { freshDirectory, removeDirectory } from '../child.ts';
import { LoadPool } from '../load.ts';
import { inspectFile } from '../save-load/inspect.ts';
import { compareContent, describeDifference, fillContent, readContent, type Digests } from './content.ts';
import { checkOrderedWrites, OrderedWrites } from './load.ts';
import { ardentDrillServer, redisDrillServer, type DrillServer } from './server.ts';

export const DRILLS = ['rdb', 'image', 'backup', 'round-trip', 'damaged', 'disk-full', 'kill'] as const;
export type DrillName = (typeof DRILLS)[number];

export const DRILL_TITLES: Record<DrillName, string> = {
  rdb: 'RDB saved under load, imported',
  image: 'image saved under load, imported',
  backup: 'BACKUP under load, opened',
  'round-trip': 'Redis to Ardent to Redis',
  damaged: 'damaged files refused',
  'disk-full': 'save on a full disk',
  kill: 'killed while saving',
};

export interface DrillPlan {
  engines: readonly string[];
  drills: readonly DrillName[];
  keys: number;
  seed: number;
  /** Rounds of the kill drill and damaged files of the damage drill. */
  rounds: number;
  settings: Record<string, string>;
  /** Redis for the round trip; null: it is left out. */
  redis: string | null;
  dataRoot: string;
}

export interface DrillResult {
  engine: string;
  drill: DrillName;
  state: 'ok' | 'failed' | 'not run';
  /** What was seen, or why it failed or was not run. */
  detail: string;
  seconds: number;
  /** Of reads beside it, ms; null where the drill has none. */
  p99Ms: { before: number; during: number | null; after: number } | null;
}

/** Something that the drill is for: a difference, a loss, a damaged file that was accepted. */
class DrillFailure extends Error {}

const PROBE_RATE = 500;
const PROBE_SECONDS = 1.5;
const PROBE_KEYS = 1_000;
const WAIT_MS = 5;
const SAVE_TIMEOUT_MS = 600_000;
/** Room on the small disk: at least, and for each key all that a server writes of it before the disk is filled up. */
const DISK_BYTES = 384 * 1024 * 1024;
const DISK_BYTES_A_KEY = 8 * 1024;

export async function runDrills(
  plan: DrillPlan,
  hooks: {
    begin(engine: string, drill: DrillName): void;
    finished(result: DrillResult): void;
    stopping(): boolean;
  },
): Promise<DrillResult[]> {
  const results: DrillResult[] = [];
  const pool = new LoadPool(1);
  try {
    for (const engine of plan.engines) {
      for (const drill of plan.drills) {
        if (hooks.stopping()) return results;
        hooks.begin(engine, drill);
        const began = performance.now();
        const one = new Drill(plan, engine, pool);
        const result: DrillResult = { engine, drill, state: 'ok', detail: '', seconds: 0, p99Ms: null };
        try {
          const seen = await one.run(drill);
          result.detail = seen.detail;
          if (seen.notRun === true) result.state = 'not run';
          result.p99Ms = one.latencies;
        } catch (error) {
          result.state = 'failed';
          result.detail = (error as Error).message;
        } finally {
          await one.clean();
        }
        result.seconds = (performance.now() - began) / 1000;
        results.push(result);
        hooks.finished(result);
      }
    }
  } finally {
    await pool.close();
  }
  return results;
}

interface Seen {
  detail: string;
  notRun?: boolean;
}

class Drill {
  latencies: DrillResult['p99Ms'] = null;
  private readonly plan: DrillPlan;
  private readonly engine: string;
  private readonly pool: LoadPool;
  private readonly servers: DrillServer[] = [];
  private readonly cleanups: (() => void)[] = [];

  constructor(plan: DrillPlan, engine: string, pool: LoadPool) {
    this.plan = plan;
    this.engine = engine;
    this.pool = pool;
  }

  run(drill: DrillName): Promise<Seen> {
    switch (drill) {
      case 'rdb':
        return this.saveAndImport('BGSAVE', 'dump.rdb');
      case 'image':
        return this.saveAndImport('BGSAVE image', 'dump.image');
      case 'backup':
        return this.backup();
      case 'round-trip':
        return this.roundTrip();
      case 'damaged':
        return this.damaged();
      case 'disk-full':
        return this.diskFull();
      case 'kill':
        return this.kill();
    }
  }

  async clean(): Promise<void> {
    for (const server of this.servers) await server.remove();
    for (const cleanup of this.cleanups.reverse()) cleanup();
  }

  private async server(data?: string): Promise<DrillServer> {
    const server = ardentDrillServer(this.engine, this.plan.dataRoot, this.plan.settings, data);
    this.servers.push(server);
    return server.start();
  }

  private fill(server: DrillServer): Promise<Digests> {
    return fillContent(server.client, this.plan.seed, this.plan.keys);
  }

  private async compare(server: DrillServer, expected: Digests): Promise<void> {
    const difference = describeDifference(compareContent(expected, await readContent(server.client)));
    if (difference !== null) throw new DrillFailure(difference);
  }

  /** p99 of reads that come at a steady rate, in ms. */
  private async probe(server: DrillServer, until: Promise<unknown> | null): Promise<number | null> {
    const run = this.pool.run({
      address: { host: '127.0.0.1', port: server.port },
      driver: 'raw',
      mix: [{ line: 'GET probe:{index}', weight: 1, access: 'none', name: 'get' }],
      ...{
        keyspace: PROBE_KEYS,
        distribution: 'uniform',
        valueSizes: '100',
        compressibility: 0,
        verify: false,
      },
      ...{ connections: 2, pipeline: 1, open: { rate: PROBE_RATE, arrivals: 'regular' as const } },
      ...{ requests: null, seconds: until === null ? PROBE_SECONDS : SAVE_TIMEOUT_MS / 1000 },
      ...{ warmupSeconds: 0, warmupRequests: null, intervalSeconds: 1, timeoutSeconds: 60 },
      ...{ seed: this.plan.seed, workers: 1 },
    });
    if (until !== null) {
      await until.catch(() => {});
      this.pool.stop();
    }
    const { intended, failure } = await run;
    if (failure !== null) throw new Error(`the reads beside it failed: ${failure}`);
    return intended === null ? null : intended.p99Us / 1000;
  }

  /** Does `work` beside reads and ordered writes. Returns what was acknowledged before and after it. */
  private async underLoad(
    server: DrillServer,
    work: () => Promise<void>,
  ): Promise<{ low: number; high: number }> {
    const writes = new OrderedWrites(await connected(server));
    const before = (await this.probe(server, null))!;
    writes.start();
    await sleep(50);
    const low = writes.acknowledged;
    const working = work();
    const during = await this.probe(server, working);
    try {
      await working;
    } catch (error) {
      await writes.stop(true);
      throw error;
    }
    const high = writes.acknowledged;
    await writes.stop();
    this.latencies = { before, during, after: (await this.probe(server, null))! };
    return { low, high };
  }

  private async saveAndImport(command: string, file: string): Promise<Seen> {
    const server = await this.server();
    const content = await this.fill(server);
    const path = join(server.data, file);
    let seconds = 0;
    const { low, high } = await this.underLoad(server, async () => {
      const began = performance.now();
      await backgroundSave(server, command);
      seconds = (performance.now() - began) / 1000;
    });
    const bytes = statSync(path).size;
    // Into the emptied server, and into a fresh one.
    await server.client.flushall();
    await server.client.call('IMPORT', path);
    await this.compare(server, content);
    const mixed = await checkOrderedWrites(server.client, low, high);
    if (mixed !== null) throw new DrillFailure(mixed);
    // What was imported was acknowledged: it is there after a crash.
    await server.end('SIGKILL');
    await server.start();
    await this.compare(server, content);
    const other = await this.server();
    await other.client.call('IMPORT', path);
    await this.compare(other, content);
    return {
      detail: `${content.size} keys, ${(bytes / 1024 / 1024).toFixed(1)} MB saved in ${seconds.toFixed(2)} s`,
    };
  }

  private async backup(): Promise<Seen> {
    const server = await this.server();
    const content = await this.fill(server);
    const parent = freshDirectory('drill-backup', this.plan.dataRoot);
    this.cleanups.push(() => removeDirectory(parent));
    const copy = join(parent, 'copy');
    let seconds = 0;
    const { low, high } = await this.underLoad(server, async () => {
      const began = performance.now();
      await server.client.call('BACKUP', copy);
      seconds = (performance.now() - began) / 1000;
    });
    await server.client.flushall();
    const opened = await this.server(copy);
    await this.compare(opened, content);
    const mixed = await checkOrderedWrites(opened.client, low, high);
    if (mixed !== null) throw new DrillFailure(mixed);
    return { detail: `${content.size} keys copied in ${seconds.toFixed(2)} s` };
  }

  private async roundTrip(): Promise<Seen> {
    if (this.plan.redis === null) return { detail: 'no redis-server was found', notRun: true };
    const first = redisDrillServer(this.plan.redis, this.plan.dataRoot);
    this.servers.push(first);
    await first.start();
    const content = await this.fill(first);
    const digest = await first.client.call('DEBUG', 'DIGEST');
    await first.client.call('SAVE');
    const server = await this.server();
    await server.client.call('IMPORT', join(first.directory, 'dump.rdb'));
    await this.compare(server, content);
    await server.client.call('SAVE');
    const second = redisDrillServer(this.plan.redis, this.plan.dataRoot);
    this.servers.push(second);
    copyFileSync(join(server.data, 'dump.rdb'), join(second.directory, 'dump.rdb'));
    await second.start();
    await this.compare(second, content);
    const after = await second.client.call('DEBUG', 'DIGEST');
    if (after !== digest)
      throw new DrillFailure(`Redis's digest was ${String(digest)} and is ${String(after)}`);
    return { detail: `${content.size} keys, Redis's own digest equal` };
  }

  private async damaged(): Promise<Seen> {
    const server = await this.server();
    const content = await this.fill(server);
    const random = new Random(this.plan.seed, 77);
    const below = (n: number): number => Math.floor((random.next() / 2 ** 32) * n);
    let refused = 0;
    for (const [command, file] of [
      ['SAVE', 'dump.rdb'],
      ['SAVE image', 'dump.image'],
    ]) {
      await server.client.call(command.split(' ')[0], ...command.split(' ').slice(1));
      const bytes = readFileSync(join(server.data, file));
      for (let round = 0; round < this.plan.rounds; round++) {
        const cut = round % 2 === 0;
        const at = below(bytes.length - 1);
        const damaged = cut ? bytes.subarray(0, at) : Buffer.from(bytes);
        if (!cut) damaged[at] ^= 1 << below(8);
        const path = join(server.directory, `damaged-${file}`);
        writeFileSync(path, damaged);
        const what = `${file} ${cut ? 'cut off' : 'with a changed bit'} at ${at}`;
        const reply = await server.client.call('IMPORT', path, 'REPLACE').catch((error: Error) => error);
        if (!(reply instanceof Error)) throw new DrillFailure(`${what} was accepted`);
        if ((await server.client.ping()) !== 'PONG') throw new DrillFailure(`${what}: no answer afterwards`);
        refused++;
      }
    }
    await this.compare(server, content);
    return { detail: `${refused} damaged files refused, all ${content.size} keys as before` };
  }

  private async diskFull(): Promise<Seen> {
    const disk = freshDirectory('drill-disk', this.plan.dataRoot);
    this.cleanups.push(() => removeDirectory(disk));
    const size = Math.max(DISK_BYTES, this.plan.keys * DISK_BYTES_A_KEY);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', disk], { stdio: 'ignore' });
    } catch {
      return { detail: 'a small file system could not be mounted: it needs root', notRun: true };
    }
    this.cleanups.push(() => execFileSync('umount', ['-l', disk], { stdio: 'ignore' }));
    const server = await this.server(join(disk, 'data'));
    const content = await this.fill(server);
    await server.client.call('SAVE');
    const path = join(server.data, 'dump.rdb');
    const good = await inspectFile(path);
    // What is left is less than another file needs, and enough for the log.
    const ballast = join(disk, 'ballast');
    const free = Number(execFileSync('df', ['--output=avail', '-B1', disk]).toString().trim().split('\n')[1]);
    const spare = Math.min(free, Math.max(128 * 1024, Math.floor(good.bytes / 3)));
    writeFileSync(ballast, Buffer.alloc(free - spare));
    const failures: string[] = [];
    for (const command of [['SAVE'], ['SAVE', 'image']]) {
      const reply = await server.client.call(command[0], ...command.slice(1)).catch((error: Error) => error);
      if (!(reply instanceof Error))
        throw new DrillFailure(`${command.join(' ')} said ${String(reply)} on a full disk`);
      failures.push(reply.message);
    }
    await backgroundSave(server, 'BGSAVE').then(
      () => {
        throw new DrillFailure('BGSAVE on a full disk ended as if it had saved');
      },
      (error: Error) => {
        if (error instanceof DrillFailure) throw error;
      },
    );
    const kept = await inspectFile(path);
    if (kept.keys !== good.keys) throw new DrillFailure('the old file is not what it was');
    const left = leftovers(server.data);
    if (left.length > 0) throw new DrillFailure(`unfinished files are left: ${left.join(', ')}`);
    await this.compare(server, content);
    unlinkSync(ballast);
    await server.client.set('drill-after', '1');
    await server.client.del('drill-after');
    await server.client.call('SAVE');
    await this.compare(server, content);
    return { detail: `refused (${failures[0]}), the old file kept; saved once there was room` };
  }

  private async kill(): Promise<Seen> {
    const server = await this.server();
    const content = await this.fill(server);
    const random = new Random(this.plan.seed, 78);
    const parent = freshDirectory('drill-backup', this.plan.dataRoot);
    this.cleanups.push(() => removeDirectory(parent));
    const path = join(server.data, 'dump.rdb');
    const image = join(server.data, 'dump.image');
    await server.client.call('SAVE');
    const source = join(parent, 'source.rdb');
    copyFileSync(path, source);
    let usual = 0;
    const began = performance.now();
    await backgroundSave(server, 'BGSAVE');
    usual = performance.now() - began;
    let low = 0;
    let inTheAct = 0;
    for (let round = 0; round < this.plan.rounds; round++) {
      const what = (['BGSAVE', 'BGSAVE image', 'BACKUP', 'IMPORT'] as const)[round % 4];
      const writes = new OrderedWrites(await connected(server));
      writes.acknowledged = low;
      writes.start();
      let done = false;
      const copy = join(parent, `copy-${round}`);
      const work =
        what === 'BACKUP'
          ? server.client.call('BACKUP', copy)
          : what === 'IMPORT'
            ? server.client.call('IMPORT', source, 'REPLACE')
            : backgroundSave(server, what);
      const watched = Promise.resolve(work).then(
        () => (done = true),
        () => {},
      );
      await sleep(1 + (random.next() / 2 ** 32) * usual);
      if (!done) inTheAct++;
      await server.end('SIGKILL');
      await watched;
      await writes.stop(true);
      const high = writes.acknowledged;
      await server.start();
      const where = `round ${round + 1}, ${what}`;
      const left = leftovers(server.data);
      if (left.length > 0) throw new DrillFailure(`${where}: unfinished files are left: ${left.join(', ')}`);
      const saved = await inspectFile(path).catch((error: Error) => {
        throw new DrillFailure(`${where}: the file is damaged: ${error.message}`);
      });
      if (saved.keys < content.size) throw new DrillFailure(`${where}: the file has ${saved.keys} keys`);
      if (existsSync(image) && statSync(image).size === 0)
        throw new DrillFailure(`${where}: the image is empty`);
      try {
        await this.compare(server, content);
        // An import of all keys brings back old slots, at once or not at all: it has none of them here.
        const mixed = await checkOrderedWrites(server.client, high, high);
        if (mixed !== null) throw new DrillFailure(mixed);
      } catch (error) {
        throw new DrillFailure(`${where}: ${(error as Error).message}`);
      }
      low = await highest(server);
      if (what === 'BACKUP' && done) {
        const opened = await this.server(copy);
        await this.compare(opened, content);
        await opened.end('SIGKILL');
      }
      removeDirectory(copy);
      mkdirSync(parent, { recursive: true });
    }
    return {
      detail: `${this.plan.rounds} kills, ${inTheAct} of them in the act: nothing lost, no file half-written`,
    };
  }
}

async function connected(server: DrillServer): Promise<ReturnType<DrillServer['connect']>> {
  const client = server.connect();
  await client.connect();
  return client;
}

/** The next number of the ordered writes after a crash: what was in flight may be there as well. */
async function highest({ client }: DrillServer): Promise<number> {
  const keys = await client.keys('load:*');
  if (keys.length === 0) return 0;
  return Math.max(...(await client.mget(keys)).map(Number));
}

/** Files of a save that did not end. */
function leftovers(directory: string): string[] {
  return readdirSync(directory).filter((name) => /^temp-|\.(?:tmp|new|unfinished)$/.test(name));
}

/** BGSAVE until it has ended. Rejects when it failed. */
async function backgroundSave(server: DrillServer, command: string): Promise<void> {
  const [name, ...args] = command.split(' ');
  await server.client.call(name, ...args);
  const deadline = performance.now() + SAVE_TIMEOUT_MS;
  for (;;) {
    const info = await server.info();
    if (info.rdb_bgsave_in_progress === '0') {
      if (info.rdb_last_bgsave_status !== 'ok') throw new Error(`${command} failed`);
      return;
    }
    if (performance.now() > deadline)
      throw new Error(`${command} has not ended after ${SAVE_TIMEOUT_MS / 1000} s`);
    await sleep(WAIT_MS);
  }
}
