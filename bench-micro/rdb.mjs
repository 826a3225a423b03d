/**
 * The RDB codec by itself: checksum, compression, writing and reading of string keys and small hashes, in
 * ns of processor time a key and MB of file for a second of it. `node bench-micro/rdb.mjs [keys] [value-bytes]`, after `npm run build`.
 */
import { Slice, allocatePadded, viewOf } from '../dist/bytes/slice.js';
import { Crc64 } from '../dist/rdb/crc64.js';
import { lzfCompress } from '../dist/rdb/lzf.js';
import { RdbReader } from '../dist/rdb/reader.js';
import { RdbKey, RdbValue, RdbVisitor } from '../dist/rdb/visitor.js';
import { RdbWriter } from '../dist/rdb/writer.js';

const keys = Number(process.argv[2] ?? 500_000);
const valueBytes = Number(process.argv[3] ?? 128);

/** A million bytes that do not compress, and as many that do by half. */
const noise = allocatePadded(1 << 20);
for (let i = 0; i < noise.length; i++) noise[i] = Math.floor(Math.random() * 256);
const text = allocatePadded(1 << 20);
for (let i = 0; i < text.length; i++) text[i] = i % 64 < 32 ? 97 : 32 + Math.floor(Math.random() * 90);

function time(name, bytes, count, work) {
  let best = Infinity;
  for (let round = 0; round < 5; round++) {
    const start = process.cpuUsage();
    work();
    best = Math.min(best, process.cpuUsage(start).user / 1000);
  }
  const rate = bytes() / 1e3 / best;
  console.log(
    `${name.padEnd(44)} ${((best * 1e6) / count).toFixed(0).padStart(7)} ns ${rate.toFixed(0).padStart(6)} MB/s`,
  );
}

const crc = new Crc64();
time(
  'crc64, a call of 1 MB',
  () => noise.length * 64,
  64,
  () => {
    for (let i = 0; i < 64; i++) crc.update(noise, viewOf(noise.buffer), 0, noise.length);
  },
);
const packed = new Uint8Array(1 << 21);
for (const [name, memory] of [
  ['incompressible', noise],
  ['compressible', text],
]) {
  for (const size of [valueBytes, 8192]) {
    time(
      `lzf, ${name}, ${size} B`,
      () => 100_000 * 128,
      (100_000 * 128) / size,
      () => {
        for (let i = 0; i < (100_000 * 128) / size; i++) {
          const at = (i * 8) % (memory.length - size);
          lzfCompress(memory, viewOf(memory.buffer), at, at + size, packed, 0, size - 4);
        }
      },
    );
  }
}

function write(writer, memory, type) {
  const key = new RdbKey();
  const name = allocatePadded(32);
  const value = new Slice();
  key.type = type;
  key.count = type === RdbValue.String ? valueBytes : 10;
  writer.begin();
  for (let i = 0; i < keys; i++) {
    let at = 12;
    name.write('key:', 0);
    for (let n = i; at > 4; n = Math.floor(n / 10)) name[--at] = 48 + (n % 10);
    key.key.set(name, viewOf(name.buffer), 0, 12);
    at = (i * 8) % (memory.length - valueBytes);
    value.set(memory, viewOf(memory.buffer), at, at + valueBytes);
    writer.beginKey(key);
    if (type === RdbValue.String) {
      writer.stringPart(value);
    } else {
      for (let f = 0; f < 10; f++) {
        key.key.end = 6 + (f % 4);
        value.end = at + 10 + f;
        writer.field(key.key, value, -1);
      }
      key.key.end = 12;
    }
    writer.endKey();
  }
  writer.end();
}

for (const [name, memory] of [
  ['incompressible', noise],
  ['compressible', text],
]) {
  for (const [typeName, type] of [
    ['string', RdbValue.String],
    ['hash of 10', RdbValue.Hash],
  ]) {
    let parts = [];
    let bytes = 0;
    for (const options of [
      { compression: false, checksum: false },
      { compression: true, checksum: false },
      { compression: true, checksum: true },
    ]) {
      const collect = options.checksum;
      time(
        `write ${typeName}, ${name}${options.compression ? ', compressed' : ''}${options.checksum ? ', checksum' : ''}`,
        () => bytes,
        keys,
        () => {
          parts = [];
          bytes = 0;
          const writer = new RdbWriter({
            ...options,
            write: (part) => {
              bytes += part.length;
              if (collect) parts.push(Buffer.from(part));
            },
          });
          write(writer, memory, type);
        },
      );
    }
    for (const checksum of [false, true]) {
      time(
        `read ${typeName}, ${name}`,
        () => bytes,
        keys,
        () => {
          const reader = new RdbReader(new RdbVisitor(), { checksum });
          for (const part of parts) reader.feed(part);
          reader.finish();
        },
      );
    }
  }
}
