import { describe, expect, it } from 'vitest';
import { builtinWorkloads, CLASSIC_ROWS } from '../../src/workloads/builtin.ts';
import {
  parseCommandLine,
  parseOperation,
  splitCommandLine,
  type CommandDefaults,
} from '../../src/workloads/command-line.ts';
import { parseDistribution } from '../../src/workloads/distribution.ts';
import {
  createRequestSource,
  decodeRequest,
  KeyDraws,
  type RequestSource,
} from '../../src/workloads/request-source.ts';
import { parseSizes, ValuePool } from '../../src/workloads/values.ts';
import type { OperationMix } from '../../src/workloads/workload.ts';
import { ycsbWorkload } from '../../src/workloads/ycsb.ts';

const defaults: CommandDefaults = {
  distribution: parseDistribution('uniform'),
  keyspace: 1000,
  values: parseSizes('8'),
};

function source(mix: OperationMix[], batch = 4, verifiable = false): RequestSource {
  return createRequestSource({
    mix,
    defaults,
    pool: new ValuePool(1, 0, 4096),
    seed: 1,
    batch,
    draws: new KeyDraws(1),
    verifiable,
  });
}

const operation = (line: string, weight = 1, access: OperationMix['access'] = 'write'): OperationMix => ({
  line,
  weight,
  access,
  name: line,
});

/** Requests in `bytes`, one array of arguments each. */
function requests(bytes: Buffer): string[][] {
  const text = bytes.toString('latin1');
  const starts = [...text.matchAll(/\*\d+\r\n\$/g)].map(({ index }) => index);
  return starts.map((start, i) =>
    decodeRequest(bytes.subarray(start, starts[i + 1] ?? bytes.length)).map((arg) => arg.toString('latin1')),
  );
}

describe('command lines', () => {
  it('splits as a shell would, and leaves placeholders whole', () => {
    expect(splitCommandLine(String.raw`SET {key zipfian 10} "a b\x41\n" 'c d' ""`)).toEqual([
      'SET',
      '{key zipfian 10}',
      'a bA\n',
      'c d',
      '',
    ]);
  });

  it.each([
    ['', 'empty'],
    ['SET {key', 'not closed'],
    ['SET "x', 'quote'],
    ['SET {nonsense}', 'unknown placeholder'],
    ['SET {key gaussian}', 'unknown distribution'],
    ['SET {key uniform 0}', '0 keys'],
    ['SET {value 1-}', 'value size'],
    ['GETRANGE k x{range 10 2}', 'of its own'],
    ['GETRANGE k {range 10 20}', 'width'],
  ])('refuses %j and says why', (line, why) => {
    expect(() => parseCommandLine(line, defaults)).toThrow(why);
  });

  it('an operation may be several commands on one key', () => {
    const commands = parseOperation('SET {key} ";";EXPIRE key:{same} 10', defaults);
    expect(commands.map(({ line }) => line)).toEqual(['SET {key} ";"', 'EXPIRE key:{same} 10']);
    expect(() => parseOperation('GET key:{same}', defaults)).toThrow('{same} before');
  });
});

describe('requests', () => {
  it('of one length are built once, and only digits change', () => {
    const made = source([operation('SET key:__rand_int__ {value}')]);
    const first = made.next(4);
    const copy = Buffer.from(first);
    expect(requests(copy)).toHaveLength(4);
    for (const [name, key, value] of requests(copy)) {
      expect(name).toBe('SET');
      expect(key).toMatch(/^key:000000000\d{3}$/);
      expect(value).toHaveLength(8);
    }
    const second = made.next(4);
    expect(second.buffer).toBe(first.buffer);
    expect(second.length).toBe(copy.length);
    expect(requests(second)).not.toEqual(requests(copy));
    expect(made.userBytes).toBe(8 * (16 + 8));
  });

  it('the last batch may be smaller', () => {
    expect(requests(source([operation('GET {key}')]).next(3))).toHaveLength(3);
  });

  it('of any length are well formed', () => {
    const made = source([
      operation('APPEND {key zipfian 50} {value 0-300}'),
      operation('GETRANGE doc {range 100 10}', 2),
    ]);
    const operations = [0, 0];
    for (let i = 0; i < 300; i++) {
      for (const [at, args] of requests(made.next(4)).entries()) {
        operations[made.operations[at]]++;
        if (args[0] === 'GETRANGE') expect(Number(args[3]) - Number(args[2])).toBe(9);
        else expect(Number(args[1].slice(4))).toBe(made.keys[at]);
      }
    }
    expect(operations[1] / operations[0]).toBeGreaterThan(1.5);
    expect(operations[1] / operations[0]).toBeLessThan(2.7);
  });

  it('that are kept are not written over', () => {
    const made = source([operation('SET {key} {value 1-20}')]);
    const first = made.next(2);
    const text = first.toString('latin1');
    made.keep();
    made.next(4);
    expect(first.toString('latin1')).toBe(text);
  });

  it('{same} repeats the key of the command before', () => {
    const made = source([operation('SET {key} x;EXPIRE key:{same} 10')], 8);
    const sent = requests(made.next(8));
    for (let i = 0; i < 8; i += 2) expect(sent[i + 1][1]).toBe(sent[i][1]);
  });

  it('verifiable values depend on their key alone', () => {
    const made = source([operation('SET {key uniform 3} {value 5-50}')], 100, true);
    const byKey = new Map<string, string>();
    for (const [, key, value] of requests(made.next(100))) {
      expect(byKey.get(key) ?? value).toBe(value);
      byKey.set(key, value);
    }
    expect(byKey.size).toBe(3);
  });

  it('inline', () => {
    const [ping] = builtinWorkloads(['ping_inline']);
    expect(source(ping.operations, 2).next(2).toString()).toBe('PING\r\nPING\r\n');
  });
});

describe('tests of redis-benchmark', () => {
  it('the classic table has its fifteen rows', () => {
    expect(builtinWorkloads(['classic']).map(({ id }) => id)).toEqual([...CLASSIC_ROWS]);
    expect(CLASSIC_ROWS).toHaveLength(15);
  });

  it('aliases as redis-benchmark has them; unknown names are refused with the known ones', () => {
    expect(builtinWorkloads(['PING', 'set']).map(({ id }) => id)).toEqual([
      'ping_inline',
      'ping_mbulk',
      'set',
    ]);
    expect(() => builtinWorkloads(['sett'])).toThrow(/unknown test "sett".*lrange_600/);
  });

  it.each(['a', 'b', 'c', 'd', 'e', 'f'])('YCSB %s is well formed', (letter) => {
    const made = source(ycsbWorkload(`ycsb-${letter}`).operations, 16);
    for (let i = 0; i < 20; i++) expect(requests(made.next(16))).toHaveLength(16);
  });
});
