// Writes atomic batches of 200 rows that all carry the batch's number, and says when each is done,
// until it is killed: node writer-process.mjs <engine> <directory>
import { openEngine } from '../../dist/engines/open.js';
import { packRows } from '../../dist/engines/packed.js';

const [name, directory] = process.argv.slice(2);
const engine = await openEngine(name, directory);
for (let batch = 1; ; batch++) {
  const value = Buffer.alloc(2000, String(batch % 10));
  value.writeUInt32LE(batch);
  const rows = [];
  for (let i = 0; i < 200; i++) rows.push({ key: Buffer.from(`row:${i}`), value });
  await engine.write(packRows(rows), { sync: batch % 10 === 0 });
  process.stdout.write(`${batch}\n`);
}
