/**
 * A row source as plain as can be: named counters in a Map, changed by effects that must be applied
 * exactly once (`add`), so that a wrong recovery shows.
 */
import { ByteSink } from '../../src/bytes/sink.ts';
import { DELETE_LENGTH } from '../../src/engines/engine.ts';
import { RowError, type PurgeRange, type RowSource } from '../../src/store/row-source.ts';

export type Effect =
  { kind: 'add'; name: string; amount: number } | { kind: 'remove'; name: string } | { kind: 'drop' };

export class PlainSource implements RowSource {
  values = new Map<string, number>();
  /** Rows are named `k<generation>-<name>`; `drop` begins a new generation and purges the old one. */
  generation = 1;
  cutSink = new ByteSink();
  cutRows = 0;
  private purgeList: number[] = [];
  private purgeable: number[] = [];
  private dirty = new Set<string>();
  private cut: {
    rows: [string, number | null][];
    names: Set<string>;
    purge: number[];
    generation: number;
  } | null = null;
  private installed = false;

  get dirtyBytes(): number {
    return this.dirty.size * 20;
  }

  get cutBytes(): number {
    return (this.cut?.rows.length ?? 0) * 20;
  }

  apply(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind === 'drop') {
        this.purgeList.push(this.generation++);
        this.values.clear();
        this.dirty.clear();
        continue;
      }
      this.dirty.add(effect.name);
      if (effect.kind === 'remove') this.values.delete(effect.name);
      else this.values.set(effect.name, (this.values.get(effect.name) ?? 0) + effect.amount);
    }
  }

  private meta(): Buffer {
    return Buffer.from(
      JSON.stringify({ generation: this.generation, purge: this.purgeList, size: this.values.size }),
    );
  }

  beginCut(sink: ByteSink): Buffer {
    if (this.cut !== null) throw new Error('the cut before has not ended');
    this.cutSink = sink;
    this.cutRows = 0;
    this.cut = {
      rows: [...this.dirty].map((name) => [name, this.values.get(name) ?? null]),
      names: this.dirty,
      purge: [...this.purgeList],
      generation: this.generation,
    };
    this.dirty = new Set();
    return this.meta();
  }

  copyCut(): boolean {
    const cut = this.cut!;
    for (const [name, value] of cut.rows.splice(0, 7)) {
      const key = `k${cut.generation}-${name}`;
      const text = value === null ? null : String(value);
      this.cutSink.u32(key.length);
      this.cutSink.u32(text === null ? DELETE_LENGTH : text.length);
      this.cutSink.ascii(key);
      if (text !== null) this.cutSink.ascii(text);
      this.cutRows++;
    }
    return cut.rows.length === 0;
  }

  endCut(applied: boolean): boolean {
    const cut = this.cut!;
    this.cut = null;
    if (applied) this.purgeable = cut.purge.filter((generation) => this.purgeList.includes(generation));
    else if (cut.generation === this.generation) for (const name of cut.names) this.dirty.add(name);
    return true;
  }

  purgeRanges(): PurgeRange[] {
    return this.purgeable.map((generation) => ({
      start: Buffer.from(`k${generation}-`),
      end: Buffer.from(`k${generation}.`),
    }));
  }

  purged(range: PurgeRange): void {
    const generation = Number(/\d+/.exec(Buffer.from(range.start).latin1Slice())![0]);
    this.purgeable = this.purgeable.filter((other) => other !== generation);
    this.purgeList = this.purgeList.filter((other) => other !== generation);
  }

  private expectedSize = 0;

  restoreMeta(meta: Uint8Array): void {
    const { generation, purge, size } = JSON.parse(Buffer.from(meta).toString()) as {
      generation: number;
      purge: number[];
      size: number;
    };
    this.generation = generation;
    this.purgeList = [...purge];
    this.purgeable = [...purge];
    this.expectedSize = size;
  }

  installRow(
    key: Uint8Array,
    keyStart: number,
    keyEnd: number,
    value: Uint8Array,
    valueStart: number,
    valueEnd: number,
  ): void {
    const [, generation, name] = /^k(\d+)-(.*)$/.exec(Buffer.from(key).latin1Slice(keyStart, keyEnd)) ?? [];
    const amount = Number(Buffer.from(value).latin1Slice(valueStart, valueEnd));
    if (Number.isNaN(amount)) throw new RowError('not a number');
    if (Number(generation) === this.generation) this.values.set(name, amount);
  }

  damagedRow(): boolean {
    return false;
  }

  recovered(): void {
    if (this.installed) throw new Error('recovered twice');
    this.installed = true;
    if (this.values.size !== this.expectedSize) {
      throw new RowError(`${this.values.size} rows were installed, the meta row tells ${this.expectedSize}`);
    }
  }
}
