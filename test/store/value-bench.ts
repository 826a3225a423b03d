import { Slice } from '../../src/bytes/slice.ts';
import { Arena } from '../../src/store/arena.ts';
import { CollectionTable } from '../../src/store/collection-table.ts';
import { Hasher } from '../../src/store/hash.ts';
import { Keyspace, type KeyspaceGround } from '../../src/store/keyspace.ts';
import { Pages } from '../../src/store/pages.ts';
import type { Ground, ValueHandle } from '../../src/store/record.ts';
import { RowWriter } from '../../src/store/row-format.ts';
import { TreeAhead } from '../../src/store/tree-ahead.ts';
import { KeyedTree } from '../../src/store/tree-keyed.ts';

/** What value handles need to work, without a tier: an arena, a hash and one keyspace. */
export class ValueBench {
  readonly arena = new Arena();
  readonly collections = new CollectionTable(this.arena);
  readonly keyspace: Keyspace;
  readonly ground: Ground;

  constructor(hasher = new Hasher(1, 2)) {
    const { arena, collections } = this;
    const pages = new Pages(collections);
    const ground: KeyspaceGround = {
      arena,
      hasher,
      collections,
      ahead: new TreeAhead(new Pages(collections), hasher),
      clockSeconds: 0,
      cutNumber: 0,
      appliedCut: 0,
      rows: new RowWriter(arena, hasher),
      deadlines: { pages, tree: new KeyedTree(pages, 2) },
      dropCollection: (slot) => collections.drop(slot),
      copyCollection: () => {
        throw new Error('nothing is copied here');
      },
    };
    this.ground = ground;
    this.keyspace = new Keyspace(ground, 1, 1);
  }

  /** Points the handle at the value of `name`, as a database does for a command. */
  open<T extends ValueHandle>(handle: T, type: number, name = 'key'): T {
    const key = Slice.from(name);
    const hash = this.ground.hasher.hash32(key);
    const ref = this.keyspace.table.find(hash, key.view, key.start, key.end);
    handle.value.open(this.keyspace, key, hash, type, ref);
    handle.opened();
    return handle;
  }

  /** Frees what was dropped. */
  settle(): void {
    while (this.collections.freeSlice(100));
  }
}
