/** One handle for each type of value, to be pointed at one payload after the other. */
import { Type } from './api.ts';
import type { Collection } from './collection.ts';
import { HashHandle } from './hash-value.ts';
import { ListHandle } from './list.ts';
import type { Ground } from './record.ts';
import { SetHandle } from './set.ts';
import { StreamHandle } from './stream.ts';
import { StringHandle } from './string-value.ts';
import { ZSetHandle } from './zset.ts';

export class Values {
  readonly string: StringHandle;
  readonly list: ListHandle;
  readonly set: SetHandle;
  readonly hash: HashHandle;
  readonly zset: ZSetHandle;
  readonly stream: StreamHandle;

  constructor(ground: Ground) {
    this.string = new StringHandle(ground);
    this.list = new ListHandle(ground);
    this.set = new SetHandle(ground);
    this.hash = new HashHandle(ground);
    this.zset = new ZSetHandle(ground);
    this.stream = new StreamHandle(ground);
  }

  /** The handle for a type that values have. */
  of(type: number): Collection {
    switch (type) {
      case Type.String:
        return this.string;
      case Type.List:
        return this.list;
      case Type.Set:
        return this.set;
      case Type.Hash:
        return this.hash;
      case Type.ZSet:
        return this.zset;
      case Type.Stream:
        return this.stream;
      default:
        throw new RangeError(`there are no values of type ${type}`);
    }
  }
}
