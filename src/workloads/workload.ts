/**
 * A workload: what is asked of a server, as data. Who sends it and when is the driver's and the
 * runner's business.
 */

/**
 * What a command does with the data. For reads and pops a null or empty reply is a miss: the data asked
 * for was not there.
 */
export type Access = 'read' | 'write' | 'pop' | 'none';

export interface OperationMix {
  /** A command line with placeholders, or several separated by `;` that are sent together. */
  line: string;
  /** Share of the operations, relative to the other weights. */
  weight: number;
  access: Access;
  /** Name in per-command results. */
  name: string;
  /** Sent in the inline form instead of as a RESP array. */
  inline?: boolean;
}

/** Data that must be there before the workload runs. */
export interface Preload {
  /** Loads with the same id are done once a session. */
  id: string;
  /** Sent before, e.g. `DEL mylist`. */
  reset?: string;
  line: string;
  /** How many times: a number, or what the run will use. */
  count: 'keyspace' | 'requests' | number;
  /** Proof: this command must answer a number of at least the count (times `each`). */
  proof: string;
  /** Elements that one command adds; 1 when absent. */
  each?: number;
  /** Done anew for every run, because the workload uses the data up. */
  everyRun?: boolean;
}

export interface Workload {
  id: string;
  label: string;
  family: 'none' | 'string' | 'list' | 'set' | 'hash' | 'sorted set' | 'stream' | 'mix';
  description: string;
  operations: OperationMix[];
  preload: Preload[];
  /** The run must not send more requests than were preloaded. */
  consumes?: boolean;
}

export function accessOf(workload: Workload): 'read' | 'write' | 'mixed' | 'none' {
  const kinds = new Set(workload.operations.map(({ access }) => (access === 'pop' ? 'write' : access)));
  if (kinds.size > 1) return 'mixed';
  return [...kinds][0];
}
