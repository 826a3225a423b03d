/** Numbers of the RDB format; docs/rdb.md describes it. */

/** Newest version that is read. */
export const RDB_VERSION_MAX = 12;
/** The version that is written, which Redis 7.0 reads. */
export const RDB_VERSION_WRITTEN = 10;

/** What a record begins with, when it is not the type of a value. */
export const Opcode = {
  SlotInfo: 244,
  Function2: 245,
  FunctionPreGa: 246,
  ModuleAux: 247,
  Idle: 248,
  Freq: 249,
  Aux: 250,
  ResizeDb: 251,
  ExpireMs: 252,
  Expire: 253,
  SelectDb: 254,
  Eof: 255,
} as const;

/** How a value is written: the byte before its key. */
export const RdbType = {
  String: 0,
  List: 1,
  Set: 2,
  ZSet: 3,
  Hash: 4,
  ZSet2: 5,
  ModulePreGa: 6,
  Module2: 7,
  HashZipmap: 9,
  ListZiplist: 10,
  SetIntset: 11,
  ZSetZiplist: 12,
  HashZiplist: 13,
  ListQuicklist: 14,
  StreamListpacks: 15,
  HashListpack: 16,
  ZSetListpack: 17,
  ListQuicklist2: 18,
  StreamListpacks2: 19,
  SetListpack: 20,
  StreamListpacks3: 21,
  HashMetadataPreGa: 22,
  HashListpackExPreGa: 23,
  HashMetadata: 24,
  HashListpackEx: 25,
} as const;

/** Names of the encodings, by type byte. */
export const RDB_TYPE_NAMES: readonly (string | undefined)[] = [
  'string',
  'list',
  'set',
  'zset',
  'hash',
  'zset2',
  'module (before its release)',
  'module2',
  undefined,
  'hash-zipmap',
  'list-ziplist',
  'set-intset',
  'zset-ziplist',
  'hash-ziplist',
  'list-quicklist',
  'stream-listpacks',
  'hash-listpack',
  'zset-listpack',
  'list-quicklist2',
  'stream-listpacks2',
  'set-listpack',
  'stream-listpacks3',
  'hash-metadata (before its release)',
  'hash-listpack-ex (before its release)',
  'hash-metadata',
  'hash-listpack-ex',
];

/** The low six bits of a length whose high two are set: a string that is not written as it is. */
export const StringEncoding = { Int8: 0, Int16: 1, Int32: 2, Lzf: 3 } as const;

/** Opcodes inside the value of a module type. */
export const ModuleOpcode = { Eof: 0, Sint: 1, Uint: 2, Float: 3, Double: 4, String: 5 } as const;

export const QuicklistContainer = { Plain: 1, Packed: 2 } as const;

/** Flags of an entry in a stream's listpack. */
export const StreamItem = { Deleted: 1, SameFields: 2 } as const;

/** Bytes of a stream id: milliseconds and sequence number, 64-bit big endian each. */
export const STREAM_ID_BYTES = 16;
