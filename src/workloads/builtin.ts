/**
 * redis-benchmark's built-in tests, under its names, with its key names and command lines
 * (https://redis.io/docs/latest/operate/oss_and_stack/management/optimization/benchmarks/). Beyond
 * redis-benchmark, every test brings the data that it reads, so that reads hit.
 */
import type { OperationMix, Preload, Workload } from './workload.ts';

export const STRINGS: Preload = {
  id: 'strings',
  line: 'SET {key sequential} {value}',
  count: 'keyspace',
  proof: 'DBSIZE',
};

/** Longest LRANGE, and a little more, so that the range never reaches the end. */
const LRANGE_ELEMENTS = 650;

const LRANGE_LIST: Preload = {
  id: 'lrange',
  line: 'LPUSH mylist {value}',
  count: LRANGE_ELEMENTS,
  proof: 'LLEN mylist',
};

interface Test {
  name: string;
  label: string;
  family: Workload['family'];
  line: string;
  access: OperationMix['access'];
  inline?: boolean;
  description: string;
  preload?: Preload[];
  consumes?: boolean;
}

/** What a popping test takes away, made anew for each run, one element a request. */
function toPop(reset: string, line: string, proof: string): Preload[] {
  return [{ id: line, reset, line, count: 'requests', proof, everyRun: true }];
}

function lrange(elements: number): Test {
  return {
    name: `lrange_${elements}`,
    label: `LRANGE_${elements}`,
    family: 'list',
    line: `LRANGE mylist 0 ${elements - 1}`,
    access: 'read',
    description: `the first ${elements} elements of a list`,
    preload: [LRANGE_LIST],
  };
}

const MSET_PAIRS = Array.from({ length: 10 }, () => 'key:__rand_int__ {value}').join(' ');

const TESTS: Test[] = [
  {
    name: 'ping_inline',
    label: 'PING_INLINE',
    family: 'none',
    line: 'PING',
    access: 'none',
    inline: true,
    description: 'PING in the inline form',
  },
  {
    name: 'ping_mbulk',
    label: 'PING_BULK',
    family: 'none',
    line: 'PING',
    access: 'none',
    description: 'PING as a RESP array',
  },
  {
    name: 'set',
    label: 'SET',
    family: 'string',
    line: 'SET key:__rand_int__ {value}',
    access: 'write',
    description: 'overwrite a random key',
    preload: [STRINGS],
  },
  {
    name: 'get',
    label: 'GET',
    family: 'string',
    line: 'GET key:__rand_int__',
    access: 'read',
    description: 'read a random key',
    preload: [STRINGS],
  },
  {
    name: 'incr',
    label: 'INCR',
    family: 'string',
    line: 'INCR counter:__rand_int__',
    access: 'write',
    description: 'count up a random counter',
  },
  {
    name: 'lpush',
    label: 'LPUSH',
    family: 'list',
    line: 'LPUSH mylist {value}',
    access: 'write',
    description: 'push to the head of one list',
  },
  {
    name: 'rpush',
    label: 'RPUSH',
    family: 'list',
    line: 'RPUSH mylist {value}',
    access: 'write',
    description: 'push to the tail of one list',
  },
  {
    name: 'lpop',
    label: 'LPOP',
    family: 'list',
    line: 'LPOP mylist',
    access: 'pop',
    description: 'pop from the head of one list',
    preload: toPop('DEL mylist', 'LPUSH mylist {value}', 'LLEN mylist'),
    consumes: true,
  },
  {
    name: 'rpop',
    label: 'RPOP',
    family: 'list',
    line: 'RPOP mylist',
    access: 'pop',
    description: 'pop from the tail of one list',
    preload: toPop('DEL mylist', 'LPUSH mylist {value}', 'LLEN mylist'),
    consumes: true,
  },
  {
    name: 'sadd',
    label: 'SADD',
    family: 'set',
    line: 'SADD myset element:__rand_int__',
    access: 'write',
    description: 'add a random member to one set',
  },
  {
    name: 'hset',
    label: 'HSET',
    family: 'hash',
    line: 'HSET myhash element:__rand_int__ {value}',
    access: 'write',
    description: 'set a random field of one hash',
  },
  {
    name: 'spop',
    label: 'SPOP',
    family: 'set',
    line: 'SPOP myset',
    access: 'pop',
    description: 'take a random member out of one set',
    preload: toPop('DEL myset', 'SADD myset element:{index insert}', 'SCARD myset'),
    consumes: true,
  },
  {
    name: 'zadd',
    label: 'ZADD',
    family: 'sorted set',
    line: 'ZADD myzset __rand_int__ element:__rand_int__',
    access: 'write',
    description: 'add or move a random member of one sorted set',
  },
  {
    name: 'zpopmin',
    label: 'ZPOPMIN',
    family: 'sorted set',
    line: 'ZPOPMIN myzset',
    access: 'pop',
    description: 'take the lowest member out of one sorted set',
    preload: toPop('DEL myzset', 'ZADD myzset {index insert} element:{same}', 'ZCARD myzset'),
    consumes: true,
  },
  {
    name: 'lpush_for_lrange',
    label: 'LPUSH (for LRANGE)',
    family: 'list',
    line: 'LPUSH mylist {value}',
    access: 'write',
    description: 'the pushes that LRANGE then reads; as LPUSH',
  },
  lrange(100),
  lrange(300),
  lrange(500),
  lrange(600),
  {
    name: 'mset',
    label: 'MSET (10 keys)',
    family: 'string',
    line: `MSET ${MSET_PAIRS}`,
    access: 'write',
    description: 'overwrite ten random keys',
    preload: [STRINGS],
  },
  {
    name: 'xadd',
    label: 'XADD',
    family: 'stream',
    line: 'XADD mystream * myfield {value}',
    access: 'write',
    description: 'append an entry to one stream',
  },
];

export const BUILTIN_WORKLOADS: readonly Workload[] = TESTS.map((test) => ({
  id: test.name,
  label: test.label,
  family: test.family,
  description: test.description,
  operations: [
    { line: test.line, weight: 1, access: test.access, name: test.label, inline: test.inline ?? false },
  ],
  preload: test.preload ?? [],
  consumes: test.consumes ?? false,
}));

/** The rows of the table by which Ardb and its kin present themselves, in its order. */
export const CLASSIC_ROWS = [
  'ping_inline',
  'ping_mbulk',
  'set',
  'get',
  'incr',
  'lpush',
  'lpop',
  'sadd',
  'spop',
  'lpush_for_lrange',
  'lrange_100',
  'lrange_300',
  'lrange_500',
  'lrange_600',
  'mset',
] as const;

/** What redis-benchmark itself calls a test or accepts after `-t`. */
const ALIASES: Record<string, string[]> = {
  ping: ['ping_inline', 'ping_mbulk'],
  ping_bulk: ['ping_mbulk'],
  lrange: ['lpush_for_lrange', 'lrange_100', 'lrange_300', 'lrange_500', 'lrange_600'],
  classic: [...CLASSIC_ROWS],
  all: TESTS.map((test) => test.name),
};

/** Tests for the names of `-t set,get,…`, in the order given, each once. */
export function builtinWorkloads(names: readonly string[]): Workload[] {
  const ids = names.flatMap((name) => ALIASES[name.toLowerCase()] ?? [name.toLowerCase()]);
  return [...new Set(ids)].map((id) => {
    const workload = BUILTIN_WORKLOADS.find((candidate) => candidate.id === id);
    if (workload === undefined) {
      throw new RangeError(
        `unknown test "${id}"; known are ${[...Object.keys(ALIASES), ...TESTS.map((test) => test.name)].join(', ')}`,
      );
    }
    return workload;
  });
}
