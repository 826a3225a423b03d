/** The file or payload is not what an RDB writer would have written, or ends too early. */
export class RdbError extends Error {
  override readonly name = 'RdbError';
  readonly code = 'RDB_DAMAGED';
  /** Byte of the file at which reading stopped. */
  readonly offset: number;
  /** What is wrong there. */
  readonly reason: string;
  /** The key whose value was being read, and its database. */
  readonly key: Buffer | null;
  readonly db: number;

  constructor(reason: string, offset: number, key: Buffer | null, db: number) {
    super(`offset ${offset}${key === null ? '' : `, key ${showKey(key)} in database ${db}`}: ${reason}`);
    this.reason = reason;
    this.offset = offset;
    this.key = key;
    this.db = db;
  }
}

/** Longest part of a key that a message shows, bytes. */
const SHOWN_KEY_MAX = 100;

/** A key for people: in quotes, with what is not printable ASCII as `\xHH`, long ones cut. */
export function showKey(key: Uint8Array): string {
  let text = '"';
  for (const byte of key.subarray(0, SHOWN_KEY_MAX)) {
    if (byte === 34 || byte === 92) text += `\\${String.fromCharCode(byte)}`;
    else if (byte >= 32 && byte < 127) text += String.fromCharCode(byte);
    else text += `\\x${byte.toString(16).padStart(2, '0')}`;
  }
  return `${text}"${key.length > SHOWN_KEY_MAX ? `... (${key.length} bytes)` : ''}`;
}

/** Found by those who know neither offset nor key; the reader makes an RdbError of it. */
export class Damage extends Error {}
