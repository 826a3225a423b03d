/** `ardent rdb verify`: what the reader checks, and what only somebody who remembers can. */
import { statSync } from 'node:fs';
import type { Slice } from '../bytes/slice.ts';
import { Damage } from '../rdb/error.ts';
import { RdbVisitor, RdbValue, type RdbKey, type StreamConsumer, type StreamGroup } from '../rdb/visitor.ts';
import { formatBytes, formatCount } from '../report/format.ts';
import { FileError, readFile } from './rdb-file.ts';

/** Collections above this many elements are not searched for repeated ones. */
const REMEMBERED_MAX = 1_000_000;

class VerifyVisitor extends RdbVisitor {
  private type: number = 0;
  /** Members and fields of the key so far. */
  private readonly seen = new Set<string>();
  private readonly groups = new Set<string>();
  private readonly consumers = new Set<string>();
  /** Pending entries of the group that no consumer has owned yet. */
  private readonly pending = new Set<string>();

  override beginKey(key: RdbKey): void {
    this.type = key.type;
    this.seen.clear();
    this.groups.clear();
  }

  private remember(what: string, bytes: Slice): void {
    const { seen } = this;
    if (seen.size >= REMEMBERED_MAX) return;
    const before = seen.size;
    seen.add(bytes.latin1());
    if (seen.size === before) throw new Damage(`a ${what} is there twice`);
  }

  override element(bytes: Slice): void {
    if (this.type === RdbValue.Set) this.remember('member', bytes);
  }

  override field(field: Slice): void {
    this.remember('field', field);
  }

  override member(member: Slice): void {
    this.remember('member', member);
  }

  override streamGroup(group: StreamGroup): void {
    this.groupEnds();
    this.consumers.clear();
    const name = group.name.latin1();
    if (this.groups.has(name)) throw new Damage('a group is there twice');
    this.groups.add(name);
  }

  override streamPending(id: Slice): void {
    const text = id.latin1();
    if (this.pending.has(text)) throw new Damage('a pending entry of a group is there twice');
    this.pending.add(text);
  }

  override streamConsumer(consumer: StreamConsumer): void {
    const name = consumer.name.latin1();
    if (this.consumers.has(name)) throw new Damage('a consumer is there twice');
    this.consumers.add(name);
  }

  override streamOwned(id: Slice): void {
    if (!this.pending.delete(id.latin1())) {
      throw new Damage('a consumer owns an entry that is not pending, or that another one owns');
    }
  }

  private groupEnds(): void {
    if (this.pending.size > 0) throw new Damage('a pending entry of a group belongs to no consumer');
  }

  override endKey(): void {
    this.groupEnds();
  }
}

/** Says on standard output that the file is sound, or on standard error what is wrong. False when it is not. */
export async function verifyFile(path: string): Promise<boolean> {
  try {
    const reader = await readFile(path, new VerifyVisitor());
    const { size } = statSync(path);
    const checksum = reader.checksumFound ? 'checksum right' : 'no checksum';
    process.stdout.write(
      `${path}: sound, version ${reader.version}, ${formatCount(reader.keys)} keys, ${formatBytes(size)}, ${checksum}\n`,
    );
    if (reader.emptyKeys > 0) {
      process.stderr.write(
        `${path}: notice: ${reader.emptyKeys} keys have no elements and are passed over\n`,
      );
    }
    if (size > reader.offset) {
      process.stderr.write(
        `${path}: notice: ${size - reader.offset} bytes follow after the end of the data\n`,
      );
    }
    return true;
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    process.stderr.write(`ardent: ${error.message}\n`);
    return false;
  }
}
