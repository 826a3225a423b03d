/**
 * The core workloads of YCSB (B. Cooper et al., "Benchmarking cloud serving systems with YCSB", 2010;
 * https://github.com/brianfrankcooper/YCSB/wiki/Core-Workloads) on hashes, as YCSB's own Redis binding
 * keeps records: one hash a record, ten fields, and a sorted set of all keys for scans.
 *
 * Where ours differs: field values take the run's value sizes (YCSB: 100 bytes); a scan reads up to 50
 * keys of the index and not the records after it; read-modify-write sends its two commands together.
 */
import type { OperationMix, Preload, Workload } from './workload.ts';

const FIELDS = Array.from({ length: 10 }, (_, field) => `field${field} {value}`).join(' ');

const RECORDS: Preload = {
  id: 'ycsb-records',
  line: `HSET user:{index sequential} ${FIELDS}`,
  count: 'keyspace',
  proof: 'DBSIZE',
};

const INDEX: Preload = {
  id: 'ycsb-index',
  line: 'ZADD ycsb:index {index sequential} user:{same}',
  count: 'keyspace',
  proof: 'ZCARD ycsb:index',
};

const read = (weight: number, distribution: string): OperationMix => ({
  line: `HGETALL user:{index ${distribution}}`,
  weight,
  access: 'read',
  name: 'READ',
});
const update = (weight: number): OperationMix => ({
  line: 'HSET user:{index zipfian} field0 {value}',
  weight,
  access: 'write',
  name: 'UPDATE',
});
const insert = (weight: number): OperationMix => ({
  line: `HSET user:{index insert} ${FIELDS};ZADD ycsb:index {same} user:{same}`,
  weight,
  access: 'write',
  name: 'INSERT',
});

const MIXES: Record<string, { description: string; operations: OperationMix[]; index?: boolean }> = {
  a: {
    description: 'update heavy: half reads, half updates, zipfian',
    operations: [read(50, 'zipfian'), update(50)],
  },
  b: {
    description: 'read mostly: 95% reads, 5% updates, zipfian',
    operations: [read(95, 'zipfian'), update(5)],
  },
  c: { description: 'read only, zipfian', operations: [read(100, 'zipfian')] },
  d: {
    description: 'read latest: 95% reads of new records, 5% inserts',
    operations: [read(95, 'latest'), insert(5)],
  },
  e: {
    description: 'short ranges: 95% scans of the index, 5% inserts',
    operations: [
      {
        line: 'ZRANGEBYSCORE ycsb:index {index zipfian} +inf LIMIT 0 50',
        weight: 95,
        access: 'read',
        name: 'SCAN',
      },
      insert(5),
    ],
    index: true,
  },
  f: {
    description: 'read-modify-write: half reads, half reads followed by an update of the same record',
    operations: [
      read(50, 'zipfian'),
      {
        line: 'HGETALL user:{index zipfian};HSET user:{same} field0 {value}',
        weight: 50,
        access: 'write',
        name: 'READ-MODIFY-WRITE',
      },
    ],
  },
};

export function isYcsb(name: string): boolean {
  return /^ycsb-[a-f]$/i.test(name);
}

/** @param name `ycsb-a` to `ycsb-f` */
export function ycsbWorkload(name: string): Workload {
  const letter = name.slice(-1).toLowerCase();
  const mix = MIXES[letter];
  return {
    id: `ycsb-${letter}`,
    label: `YCSB ${letter.toUpperCase()}`,
    family: 'mix',
    description: mix.description,
    operations: mix.operations,
    preload: mix.index ? [RECORDS, INDEX] : [RECORDS],
  };
}
