// Opens an engine and says what came of it; holds it until standard input ends.
import { openEngine } from '../../dist/engines/open.js';

const [name, directory] = process.argv.slice(2);
try {
  const engine = await openEngine(name, directory);
  process.stdout.write('open\n');
  process.stdin.resume();
  process.stdin.on('end', () => void engine.close());
} catch (error) {
  process.stdout.write(`${error.code} ${error.message}\n`);
}
