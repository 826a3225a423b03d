/**
 * A process that opens a data directory, checks that it holds exactly what follows from the number of
 * turns in it, does some more turns with checkpoints among them, and closes. It tells the number of each
 * turn when its effects are in the log. Somewhere on the way ARDENT_FAULT kills it.
 *
 *     node fault-child.mjs DIRECTORY ENGINE TURNS
 */
import { writeSync } from 'node:fs';
import { Slice } from '../../dist/bytes/slice.js';
import { openPersistentStore } from '../../dist/store/persistent-store.js';
import { Tier } from '../../dist/store/tier.js';

const [directory, engine, turns] = process.argv.slice(2);
const KEYS = 200;

/** Turn n: several changes, of which all or none must be there. */
function turn(tier, n) {
  tier.now = 0;
  const db = tier.database(0);
  const other = tier.database(1);
  const number = Slice.from(String(n));
  db.setString(Slice.from('turns'), number);
  const text = db.string(Slice.from('text'), true);
  text.write(text.length, Slice.from(String.fromCharCode(97 + (n % 26)).repeat(50)));
  db.list(Slice.from('list'), true).pushRight(number);
  db.set(Slice.from('set'), true).add(Slice.from(`member ${n % 90}`));
  if (n % 40 === 0) tier.flush(1);
  for (let i = 0; i < 5; i++)
    other.setString(Slice.from(`key ${(n * 5 + i) % KEYS}`), Slice.from(`value ${n}`.repeat(9)));
  if (n % 7 === 0) other.remove(Slice.from(`key ${n % KEYS}`));
}

function turnsIn(tier) {
  const value = new Slice();
  return tier.database(0).getString(Slice.from('turns'), value) ? Number(value.latin1()) : 0;
}

function contentOf(tier) {
  tier.now = 0;
  const content = [];
  for (let index = 0; index < 2; index++) {
    const db = tier.database(index);
    const keys = [];
    let cursor = 0;
    do {
      cursor = db.scan(cursor, 1000, (key) => keys.push(key.latin1()));
    } while (cursor !== 0);
    for (const key of keys.sort()) {
      const items = [];
      const slice = Slice.from(key);
      if (key === 'list') db.list(slice).forEachFrom(0, 1, (item) => items.push(item.latin1()) > 0);
      else if (key === 'set') db.set(slice).forEachFrom(0, (item) => items.push(item.latin1()) > 0);
      else db.string(slice).forEachRun(0, db.string(slice).length, (run) => items.push(run.latin1()));
      content.push(
        `${index} ${key} ${key === 'set' ? items.sort() : key === 'list' ? items : items.join('')}`,
      );
    }
    content.push(`${index}: ${db.size}`);
  }
  return content.join('\n');
}

const tier = new Tier({ databases: 2 });
const opened = await openPersistentStore(tier, {
  path: directory,
  engine,
  appendfsync: 'always',
  segmentBytes: 2000,
  checkpoint: { batchBytes: 4096 },
  replay: (payload) => turn(tier, Number(payload.latin1())),
});
const found = turnsIn(tier);
const model = new Tier({ databases: 2 });
for (let n = 1; n <= found; n++) turn(model, n);
if (contentOf(tier) !== contentOf(model)) {
  writeSync(2, `after ${found} turns\nfound:\n${contentOf(tier)}\nexpected:\n${contentOf(model)}\n`);
  process.exit(1);
}
writeSync(1, `found ${found}\n`);

for (let n = found + 1; n <= found + Number(turns); n++) {
  turn(tier, n);
  opened.log.append(Buffer.from(String(n)));
  writeSync(1, `acknowledged ${n}\n`);
  if (n % 15 === 0) await opened.checkpointer.checkpoint();
  if (n % 4 === 0) await new Promise(setImmediate);
}
if (!(await opened.close())) process.exit(2);
writeSync(1, 'closed\n');
