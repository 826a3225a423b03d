import type { MessagePort } from 'node:worker_threads';
import type {
  ApplyOptions,
  EngineError,
  EngineName,
  EngineOptions,
  EngineStats,
  PackedBatch,
  PackedKeys,
  PackedRows,
  Range,
} from './engine.ts';

/** What a client asks of the engine's thread. A request with an id is answered by a Reply. */
export type Request =
  | { op: 'getMany'; id: number; keys: PackedKeys }
  | { op: 'getPrefixed'; id: number; prefixes: PackedKeys }
  | { op: 'write'; id: number; batch: PackedBatch; sync: boolean }
  | { op: 'applyRows'; id: number; path: string; offset: number; length: number; options: ApplyOptions }
  | {
      op: 'scan';
      id: number;
      scan: number;
      range: Range;
      keysOnly: boolean;
      salvage: boolean;
      chunkBytes: number;
    }
  | { op: 'scanNext'; id: number; scan: number; chunkBytes: number }
  | { op: 'scanEnd'; scan: number }
  | { op: 'deleteRange'; id: number; range: Range }
  | { op: 'compact'; id: number }
  | { op: 'backup'; id: number; directory: string }
  | { op: 'stats'; id: number }
  | { op: 'connect'; port: MessagePort }
  | { op: 'close'; id: number; abandon: boolean };

export type Result = PackedRows | EngineStats | number | undefined;

export type Reply =
  { id: number; result: Result } | { id: number; code: EngineError['code']; message: string };

/** The first message of the thread, over the worker's own port. */
export type Opened = { opened: true } | { opened: false; code: EngineError['code']; message: string };

/** What the thread is started with. */
export interface Start {
  engine: EngineName;
  directory: string;
  options: EngineOptions;
  salvage: boolean;
  redone: boolean;
  port: MessagePort;
}
