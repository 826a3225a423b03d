/** What a file holds, as far as the comparison of servers needs it. */
import { createReadStream, statSync } from 'node:fs';
import type { Slice } from '../../bytes/slice.ts';
import { RdbReader } from '../../rdb/reader.ts';
import { RdbValue, RdbVisitor, type RdbKey } from '../../rdb/visitor.ts';

export interface FileContent {
  bytes: number;
  /** Keys that a server has after loading it now: those that have expired are not. */
  keys: number;
  expired: number;
  /** Values that only a module could load. */
  modules: number;
  /** Bytes of a string or element, their mean; null when there are none. */
  meanValueBytes: number | null;
}

class Counts extends RdbVisitor {
  keys = 0;
  expired = 0;
  modules = 0;
  values = 0;
  valueBytes = 0;
  private readonly now = Date.now();

  override beginKey({ type, expiresAt }: RdbKey): void {
    if (type === RdbValue.Module) this.modules++;
    else if (expiresAt >= 0 && expiresAt <= this.now) this.expired++;
    else this.keys++;
    if (type === RdbValue.String) this.values++;
  }

  override stringPart(bytes: Slice): void {
    this.valueBytes += bytes.length;
  }

  override element(bytes: Slice): void {
    this.values++;
    this.valueBytes += bytes.length;
  }

  override field(_field: Slice, value: Slice): void {
    this.element(value);
  }

  override member(member: Slice): void {
    this.element(member);
  }

  override streamEntry(_id: Slice, fields: readonly Slice[], count: number): void {
    for (let i = 1; i < count; i += 2) this.element(fields[i]);
  }
}

/** Reads the whole file. Throws RdbError where it is damaged. */
export async function inspectFile(path: string): Promise<FileContent> {
  const { size } = statSync(path);
  const counts = new Counts();
  const reader = new RdbReader(counts, { size });
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 }))
    reader.feed(chunk as Buffer);
  reader.finish();
  const { keys, expired, modules, values, valueBytes } = counts;
  return {
    bytes: size,
    keys,
    expired,
    modules,
    meanValueBytes: values === 0 ? null : Math.round(valueBytes / values),
  };
}
