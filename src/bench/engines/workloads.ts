/**
 * What is asked of an engine, in the spirit of db_bench of LevelDB and RocksDB, under its names. An
 * operation is a row (seekrandom: a seek); rows travel in batches, as the server's do.
 */
export interface EngineWorkload {
  id: string;
  description: string;
  access: 'read' | 'write' | 'mixed';
  /** Begins with an empty engine. */
  fresh?: boolean;
  /** Rows that must be there: all of the key space, loaded first unless a workload before left them. */
  loaded?: boolean;
  call: 'put' | 'get' | 'delete' | 'scan' | 'seek' | 'compact';
  order: 'sequential' | 'random';
  /** Reads keys that do not exist. */
  missing?: boolean;
  /** One further requester overwrites at random meanwhile; it is not counted. */
  writer?: boolean;
  /** Leaves fewer rows than the key space has. */
  consumes?: boolean;
}

export const ENGINE_WORKLOADS: readonly EngineWorkload[] = [
  {
    id: 'fillseq',
    description: 'write all keys in order into an empty engine',
    access: 'write',
    fresh: true,
    call: 'put',
    order: 'sequential',
  },
  {
    id: 'fillrandom',
    description: 'write random keys into an empty engine',
    access: 'write',
    fresh: true,
    call: 'put',
    order: 'random',
    consumes: true,
  },
  {
    id: 'overwrite',
    description: 'overwrite random keys',
    access: 'write',
    loaded: true,
    call: 'put',
    order: 'random',
  },
  {
    id: 'readrandom',
    description: 'read random keys',
    access: 'read',
    loaded: true,
    call: 'get',
    order: 'random',
  },
  {
    id: 'readmissing',
    description: 'read keys that do not exist',
    access: 'read',
    loaded: true,
    call: 'get',
    order: 'random',
    missing: true,
  },
  {
    id: 'readseq',
    description: 'read all rows in order',
    access: 'read',
    loaded: true,
    call: 'scan',
    order: 'sequential',
  },
  {
    id: 'seekrandom',
    description: 'begin a scan at a random key and take its first rows',
    access: 'read',
    loaded: true,
    call: 'seek',
    order: 'random',
  },
  {
    id: 'readwhilewriting',
    description: 'read random keys while one writer overwrites',
    access: 'read',
    loaded: true,
    call: 'get',
    order: 'random',
    writer: true,
  },
  {
    id: 'compact',
    description: 'compact everything; rows per second',
    access: 'mixed',
    loaded: true,
    call: 'compact',
    order: 'sequential',
  },
  {
    id: 'deleterandom',
    description: 'delete random keys',
    access: 'write',
    loaded: true,
    call: 'delete',
    order: 'random',
    consumes: true,
  },
];

export function engineWorkloads(names: readonly string[]): EngineWorkload[] {
  return names.map((name) => {
    const workload = ENGINE_WORKLOADS.find(({ id }) => id === name);
    if (workload === undefined) {
      throw new RangeError(
        `unknown workload "${name}"; known are ${ENGINE_WORKLOADS.map(({ id }) => id).join(', ')}`,
      );
    }
    return workload;
  });
}
