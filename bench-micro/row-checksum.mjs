/** What a row's checksum costs the engine's thread: node bench-micro/row-checksum.mjs */
import { packRows } from '../dist/engines/packed.js';
import { openRows, sealRows } from '../dist/engines/row-checksum.js';

for (const valueBytes of [16, 128, 1984]) {
  const rows = Array.from({ length: 5000 }, (_, i) => ({
    key: Buffer.from(`key-${String(i).padStart(16, '0')}`),
    value: Buffer.alloc(valueBytes, i),
  }));
  const seal = [];
  const open = [];
  for (let round = 0; round < 15; round++) {
    const batch = packRows(rows);
    const started = performance.now();
    const sealed = sealRows(batch);
    const between = performance.now();
    openRows(sealed);
    seal.push(between - started);
    open.push(performance.now() - between);
  }
  const median = (times) => ((times.sort((a, b) => a - b)[7] / rows.length) * 1e6).toFixed(0);
  console.log(`${valueBytes} B values: seal ${median(seal)} ns a row, open ${median(open)} ns a row`);
}
