import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LatencyCounts } from '../../src/bench/latency.ts';
import { load, startRedis, type RedisServer } from './fixtures.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** How often Redis itself has run a command. */
async function calls(command: string): Promise<number> {
  const text = await redis.client.info('commandstats');
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(text)?.[1] ?? 0);
}

const p99 = (counts: Float64Array): number => {
  const latencies = new LatencyCounts();
  latencies.merge(counts);
  return latencies.percentileUs(0.99);
};

describe('closed loop', () => {
  it.each([
    [1, 1000],
    [16, 1000],
    [64, 10_007],
  ])('with a pipeline of %d exactly %d requests are sent and counted', async (pipeline, requests) => {
    const before = await calls('set');
    const report = await load(redis.port, {
      mix: [{ line: 'SET {key} {value}', weight: 1, access: 'write', name: 'SET' }],
      pipeline,
      requests,
    });
    expect(report.failure).toBeNull();
    expect(report.requests).toBe(requests);
    expect((await calls('set')) - before).toBe(requests);
    expect(report.userBytes).toBe(requests * 26);
    expect(report.intervals.reduce((sum, interval) => sum + interval.requests, 0)).toBe(requests);
  });

  it('the warm-up is sent and not counted', async () => {
    const before = await calls('incr');
    const report = await load(redis.port, {
      mix: [{ line: 'INCR counter', weight: 1, access: 'write', name: 'INCR' }],
      requests: 300,
      warmupSeconds: 5,
      warmupRequests: 200,
    });
    expect(report.requests).toBe(300);
    expect((await calls('incr')) - before).toBe(500);
  });

  it('hits, misses and errors', async () => {
    await redis.client.flushall();
    await redis.client.set('key:000000000000', 'x');
    const read = await load(redis.port, {
      mix: [{ line: 'GET {key sequential 4}', weight: 1, access: 'read', name: 'GET' }],
      requests: 400,
      pipeline: 8,
    });
    expect([read.hits, read.misses]).toEqual([100, 300]);
    const wrong = await load(redis.port, {
      mix: [{ line: 'LPUSH key:000000000000 x', weight: 1, access: 'write', name: 'LPUSH' }],
      requests: 50,
    });
    expect([wrong.requests, wrong.errors]).toEqual([50, 50]);
    expect(wrong.firstError).toMatch(/^WRONGTYPE/);
  });

  it('a mix counts each command on its own', async () => {
    const report = await load(redis.port, {
      mix: [
        { line: 'SET {key} {value 1-100}', weight: 1, access: 'write', name: 'SET' },
        { line: 'GET absent', weight: 3, access: 'read', name: 'GET' },
      ],
      requests: 4000,
      pipeline: 10,
    });
    const [set, get] = report.operations!;
    expect(set.requests + get.requests).toBe(4000);
    expect(get.requests / set.requests).toBeGreaterThan(2.3);
    expect(get.misses).toBe(get.requests);
    expect(set.misses).toBe(0);
  });

  it('big values', async () => {
    const report = await load(redis.port, {
      mix: [{ line: 'SET big:{index sequential} {value 1500000}', weight: 1, access: 'write', name: 'SET' }],
      keyspace: 5,
      requests: 10,
      pipeline: 2,
    });
    expect([report.failure, report.errors, report.requests]).toEqual([null, 0, 10]);
    expect(await redis.client.strlen('big:000000000001')).toBe(1_500_000);
  });

  it('big replies', async () => {
    await redis.client.set('big', Buffer.alloc(1_000_000, 0x0a));
    const report = await load(redis.port, {
      mix: [{ line: 'GET big', weight: 1, access: 'read', name: 'GET' }],
      requests: 40,
      pipeline: 4,
    });
    expect([report.requests, report.hits]).toEqual([40, 40]);
  });

  it('ioredis counts the same', async () => {
    const before = await calls('set');
    const report = await load(redis.port, {
      driver: 'ioredis',
      mix: [{ line: 'SET {key} {value}', weight: 1, access: 'write', name: 'SET' }],
      requests: 500,
      pipeline: 5,
    });
    expect([report.failure, report.requests, report.errors]).toEqual([null, 500, 0]);
    expect((await calls('set')) - before).toBe(500);
  });
});

describe('verification', () => {
  const mix = [
    { line: 'SET {key} {value}', weight: 1, access: 'write' as const, name: 'SET' },
    { line: 'GET {key}', weight: 2, access: 'read' as const, name: 'GET' },
  ];

  it('finds nothing where nothing is wrong', async () => {
    await redis.client.flushall();
    const report = await load(redis.port, {
      mix,
      verify: true,
      valueSizes: '20-60',
      requests: 3000,
      pipeline: 7,
    });
    expect(report.verified!.checked).toBeGreaterThan(100);
    expect(report.verified!.wrong).toBe(0);
  });

  it('finds a value that is not what was written, and tells which', async () => {
    await redis.client.set('key:000000000007', 'something else');
    const report = await load(redis.port, {
      mix: [mix[1]],
      verify: true,
      valueSizes: '20-60',
      requests: 1000,
    });
    expect(report.verified!.wrong).toBeGreaterThan(0);
    expect(report.verified!.firstWrong).toMatch(/^key number 7: 14 bytes 736f6d65/);
  });
});

describe('failures', () => {
  it('no server', async () => {
    const report = await load(1, {});
    expect(report.failure).toMatch(/^cannot connect: .*ECONNREFUSED/);
  });

  it('a wrong password', async () => {
    const report = await load(redis.port, {
      address: { host: '127.0.0.1', port: redis.port, password: 'x' },
    });
    expect(report.failure).toMatch(/^cannot connect: .*password/i);
  });

  it('a server that never answers', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await new Promise((resolve) => silent.once('listening', resolve));
    const report = await load((silent.address() as AddressInfo).port, { timeoutSeconds: 0.3 });
    expect(report.failure).toBe('no reply for 0.3 s');
    silent.close();
  });

  it('a server that dies: what was measured is kept', async () => {
    const mortal = await startRedis();
    setTimeout(() => mortal.process.kill('SIGKILL'), 300);
    const report = await load(mortal.port, { requests: null, seconds: 20 });
    expect(report.failure).toMatch(/^connection lost/);
    expect(report.requests).toBeGreaterThan(0);
    await mortal.stop();
  });
});

describe('open loop', () => {
  /** Passes bytes on, and stops doing so for a while at fixed intervals. */
  function stallingProxy(
    target: number,
    everyMs: number,
    stallMs: number,
  ): Promise<{ port: number; server: Server }> {
    const began = performance.now();
    const server = createServer((front: Socket) => {
      front.setNoDelay(true);
      const back = connect({ port: target, host: '127.0.0.1', noDelay: true });
      const pass = (to: Socket) => (bytes: Buffer) => {
        const phase = (performance.now() - began) % everyMs;
        const wait = phase < stallMs ? stallMs - phase : 0;
        if (wait === 0) to.write(bytes);
        else setTimeout(() => to.write(bytes), wait);
      };
      front.on('data', pass(back));
      back.on('data', pass(front));
      for (const [socket, other] of [
        [front, back],
        [back, front],
      ]) {
        socket.on('error', () => other.destroy());
        socket.on('close', () => other.destroy());
      }
    }).listen(0, '127.0.0.1');
    return new Promise((resolve) =>
      server.once('listening', () => resolve({ port: (server.address() as AddressInfo).port, server })),
    );
  }

  it('a server that stops for 200 ms every second: the corrected p99 shows it, the uncorrected does not', async () => {
    const { port, server } = await stallingProxy(redis.port, 1000, 200);
    const report = await load(port, {
      connections: 2,
      open: { rate: 1000, arrivals: 'regular' },
      requests: null,
      seconds: 4,
    });
    server.close();
    expect(report.failure).toBeNull();
    expect(p99(report.intended!)).toBeGreaterThan(150_000);
    expect(p99(report.service)).toBeLessThan(p99(report.intended!) / 3);
  });

  it.each(['regular', 'poisson'] as const)('%s arrivals come at the rate asked for', async (arrivals) => {
    const report = await load(redis.port, {
      open: { rate: 500, arrivals },
      requests: null,
      seconds: 2,
      warmupSeconds: 0.2,
    });
    const expected = 1000;
    // Poisson: the count's deviation is its root; 6 of them.
    expect(Math.abs(report.requests + report.unsent - expected)).toBeLessThan(
      arrivals === 'regular' ? 5 : 190,
    );
  });

  it('what was due and not sent counts with the time that it waited', async () => {
    const { port, server } = await stallingProxy(redis.port, 100_000, 99_000);
    const report = await load(port, {
      connections: 2,
      open: { rate: 200, arrivals: 'regular' },
      requests: null,
      seconds: 1,
    });
    server.close();
    expect(report.unsent).toBeGreaterThan(150);
    expect(p99(report.intended!)).toBeGreaterThan(900_000);
  });
});
