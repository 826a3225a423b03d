import { EngineError, type EngineName } from './engine.ts';

/** What bindings and the system say, tried in this order, and the next step that goes with it. */
const FAILURES: readonly { pattern: RegExp; code: EngineError['code']; next: string }[] = [
  {
    pattern: /no space left|ENOSPC|disk quota|EDQUOT/i,
    code: 'ENGINE_FULL',
    next: 'free space on its disk and open it again (restart the server); nothing that was written is lost',
  },
  {
    pattern:
      /\block\b.*(temporarily unavailable|already held)|lock hold by current process|LEVEL_LOCKED|held by process/i,
    code: 'ENGINE_LOCKED',
    next: 'another server or tool has it open: stop that one, or use another directory',
  },
  {
    pattern: /MDB_VERSION_MISMATCH|format version|unknown footer version/i,
    code: 'ENGINE_FORMAT',
    next: 'use the version that wrote it, or import from a dump',
  },
  {
    pattern:
      /corrupt|checksum|MDB_INVALID|MDB_PAGE_NOTFOUND|MDB_PANIC|MDB_PROBLEM|create_if_missing|missing files|no such file|ENOENT|not an? (sstable|lmdb)|bad (magic|record|block)|CURRENT file|MANIFEST/i,
    code: 'ENGINE_DAMAGED',
    next: '`ardent check` tells what can be read, and its `--repair` keeps that',
  },
];

/** Whether a binding says that what it read is not what was written. */
export function isDamage(error: unknown): boolean {
  return FAILURES.find(({ pattern }) => pattern.test(causes(error)))?.code === 'ENGINE_DAMAGED';
}

/** An error of a binding as one that names the directory and the next step. */
export function engineFailure(engine: EngineName, directory: string, error: unknown): EngineError {
  if (error instanceof EngineError) return error;
  const said = causes(error);
  for (const { pattern, code, next } of FAILURES) {
    if (pattern.test(said)) {
      return new EngineError(code, `engine ${engine} in ${directory}: ${said}; ${next}`, error);
    }
  }
  return new EngineError(
    'ENGINE_IO',
    `engine ${engine} in ${directory}: ${said}; look at the disk and the system log, then start again`,
    error,
  );
}

/** What an error and those behind it say, each once. */
export function causes(error: unknown): string {
  const parts: string[] = [];
  for (let at: unknown = error; at !== undefined && at !== null;) {
    if (!(at instanceof Error)) {
      parts.push(String(at));
      break;
    }
    const code = (at as NodeJS.ErrnoException).code;
    const text = code !== undefined && !at.message.includes(code) ? `${at.message} (${code})` : at.message;
    if (!parts.includes(text)) parts.push(text);
    at = at.cause;
  }
  return parts.join(': ');
}
