/** Writes a stream: nodes of some entries each, then its state. Groups and what is in them follow. */
import { allocatePadded, Slice, viewOf } from '../bytes/slice.ts';
import { RdbType, STREAM_ID_BYTES, StreamItem } from './format.ts';
import { ListpackBuilder } from './listpack-builder.ts';
import type { RdbOutput } from './output.ts';
import { Text } from './text.ts';
import type { StreamGroup, StreamState } from './visitor.ts';

/** Redis's defaults for a node (`stream-node-max-bytes`, `stream-node-max-entries`). */
const NODE_BYTES_MAX = 4096;
const NODE_ENTRIES_MAX = 100;
const TWO_32 = 0x1_0000_0000;

export class StreamWriter {
  private readonly out: RdbOutput;
  /** Writes what stands before a value. */
  private readonly header: (type: number) => void;
  private readonly body = new ListpackBuilder();
  private readonly node = new ListpackBuilder();
  private readonly nodeId = new Slice();
  /** The field names of the node's first entry. */
  private readonly names: Text[] = [];
  private nameCount = 0;
  /** Entries of the node in progress. */
  private entries = 0;
  private nodes = 0;
  /** Where the count of nodes is to be filled in; -1: nothing is written yet. */
  private countAt = -1;

  constructor(out: RdbOutput, header: (type: number) => void) {
    this.out = out;
    this.header = header;
    const memory = allocatePadded(STREAM_ID_BYTES);
    this.nodeId.set(memory, viewOf(memory.buffer), 0, STREAM_ID_BYTES);
  }

  begin(): void {
    this.entries = 0;
    this.nodes = 0;
    this.countAt = -1;
    this.body.begin();
  }

  entry(id: Slice, fields: readonly Slice[], count: number): void {
    const { body, names } = this;
    if (this.entries >= NODE_ENTRIES_MAX || (this.entries > 0 && body.pos >= NODE_BYTES_MAX)) {
      if (this.countAt < 0) {
        this.header(RdbType.StreamListpacks2);
        this.countAt = this.out.reserveLength();
      }
      this.writeNode();
    }
    if (this.entries === 0) {
      id.u8.copy(this.nodeId.u8, 0, id.start, id.end);
      this.nameCount = count / 2;
      for (let i = 0; i < count; i += 2) (names[i / 2] ??= new Text()).keep(fields[i]);
    }
    let same = this.nameCount === count / 2;
    for (let i = 0; same && i < count; i += 2) same = names[i / 2].slice.equals(fields[i]);
    body.appendInteger(same ? StreamItem.SameFields : 0);
    this.appendDifference(id, 0);
    this.appendDifference(id, 8);
    if (!same) body.appendInteger(count / 2);
    for (let i = 0; i < count; i += 2) {
      if (!same) body.append(fields[i]);
      body.append(fields[i + 1]);
    }
    body.appendInteger(same ? 3 + count / 2 : 4 + count);
    this.entries++;
  }

  /** Half of an id as its difference to the node's. */
  private appendDifference(id: Slice, at: number): void {
    const { body, nodeId } = this;
    const high = id.view.getUint32(id.start + at);
    const baseHigh = nodeId.view.getUint32(at);
    if (high < 1 << 20 && baseHigh < 1 << 20) {
      const low = id.view.getUint32(id.start + at + 4);
      body.appendInteger((high - baseHigh) * TWO_32 + low - nodeId.view.getUint32(at + 4));
      return;
    }
    const difference = id.view.getBigUint64(id.start + at) - nodeId.view.getBigUint64(at);
    const wrapped = BigInt.asIntN(64, difference);
    if (wrapped >= Number.MIN_SAFE_INTEGER && wrapped <= Number.MAX_SAFE_INTEGER) {
      body.appendInteger(Number(wrapped));
    } else {
      body.appendInt64(wrapped);
    }
  }

  private writeNode(): void {
    const { out, node, body, nodeId } = this;
    node.begin();
    node.appendInteger(this.entries);
    node.appendInteger(0);
    node.appendInteger(this.nameCount);
    for (let i = 0; i < this.nameCount; i++) node.append(this.names[i].slice);
    node.appendInteger(0);
    node.appendAll(body);
    node.finish();
    out.length(STREAM_ID_BYTES);
    out.slice(nodeId);
    out.stringOf(node.u8, node.view, 0, node.pos);
    this.nodes++;
    this.entries = 0;
    body.begin();
  }

  end(state: StreamState): void {
    const { out } = this;
    if (this.countAt < 0) {
      this.header(RdbType.StreamListpacks2);
      out.length(this.entries > 0 ? 1 : 0);
    }
    if (this.entries > 0) this.writeNode();
    if (this.countAt >= 0) out.fillLength(this.countAt, this.nodes);
    out.length(state.length);
    this.id(state.lastId);
    this.id(state.firstId);
    this.id(state.maxDeletedId);
    out.length(state.entriesAdded);
    out.length(state.groups);
  }

  group(group: StreamGroup): void {
    const { out } = this;
    out.string(group.name);
    this.id(group.lastId);
    if (group.entriesRead >= 0) out.length(group.entriesRead);
    else out.length64(UNKNOWN, 0);
    out.length(group.pending);
  }

  private id(id: Slice): void {
    this.out.length64(id.view, id.start);
    this.out.length64(id.view, id.start + 8);
  }
}

/** 2^64 - 1: what a group has read is not known. */
const UNKNOWN = new DataView(new Uint8Array(8).fill(0xff).buffer);
