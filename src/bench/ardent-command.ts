/** Our own server's command line, as the bench starts it: on loopback, on a port and a directory of its own. */
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../cli/main.js', import.meta.url));

/** Options of `ardent server` as words. */
export function optionWords(settings: Readonly<Record<string, string>>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
}

/** Arguments of Node.js (`process.execPath`). */
export function ardentArguments(
  port: number,
  data: string,
  settings: Readonly<Record<string, string>>,
): string[] {
  return [
    MAIN,
    'server',
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    data,
    ...optionWords(settings),
  ];
}
