/**
 * An engine alone: as many rows as the server has, of the same bytes and in the same random order, are
 * written and then overwritten at random. Prints JSON: rows per second of both.
 *
 *     node engine-overwrites.mjs ENGINE DIRECTORY ROWS VALUE-BYTES BATCH-BYTES
 */
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { openEngine } from '../../dist/engines/open.js';

const [engineName, directory, rowsText, valueText, batchText] = process.argv.slice(2);
const rows = Number(rowsText);
const valueBytes = Number(valueText) + 4;
/** The server's row key: kind, database id, hash, `key:` and 12 digits. */
const KEY_BYTES = 25;
const ROW_BYTES = 8 + KEY_BYTES + valueBytes;
const PIECE_ROWS = 8192;

/** A hash that is a bijection of 32-bit numbers. */
function mix(n) {
  n = Math.imul(n ^ (n >>> 16), 0x85ebca6b);
  n = Math.imul(n ^ (n >>> 13), 0xc2b2ae35);
  return (n ^ (n >>> 16)) >>> 0;
}

function writeRows(path, pick) {
  const file = openSync(path, 'w');
  const piece = Buffer.alloc(PIECE_ROWS * ROW_BYTES);
  for (let i = 0; i < piece.length; i += 4) piece.writeUInt32LE(mix(i), i & ~3);
  for (let row = 0; row < rows;) {
    let at = 0;
    for (; row < rows && at < piece.length; row++, at += ROW_BYTES) {
      const key = pick(row);
      piece.writeUInt32LE(KEY_BYTES, at);
      piece.writeUInt32LE(valueBytes, at + 4);
      piece[at + 8] = 0x6b;
      piece.writeUInt32BE(1, at + 9);
      piece.writeUInt32BE(mix(key), at + 13);
      piece.write(`key:${String(key).padStart(12, '0')}`, at + 17, 'latin1');
    }
    writeSync(file, piece, 0, at);
  }
  closeSync(file);
}

async function timed(path) {
  const began = performance.now();
  await engine.applyRows(path, 0, rows * ROW_BYTES, { batchBytes: Number(batchText), sync: true });
  return rows / ((performance.now() - began) / 1000);
}

mkdirSync(directory, { recursive: true });
const loadFile = `${directory}/load.rows`;
const overwriteFile = `${directory}/overwrite.rows`;
writeRows(loadFile, (row) => row);
let state = 1;
writeRows(overwriteFile, () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * rows);
});
const engine = await openEngine(engineName, `${directory}/engine`);
const load = await timed(loadFile);
const overwrite = await timed(overwriteFile);
await engine.close();
rmSync(directory, { recursive: true, force: true });
console.log(JSON.stringify({ load, overwrite }));
