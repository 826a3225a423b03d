import type { ArgumentsCamelCase, Argv, CommandModule } from 'yargs';

/** A command's module: read only when the command is given. */
interface CommandBody {
  builder(yargs: Argv): Argv;
  handler(args: never): Promise<void>;
}

function lazy(command: string, describe: string, load: () => Promise<unknown>): CommandModule {
  const body = load as () => Promise<CommandBody>;
  return {
    command,
    describe,
    builder: async (yargs) => (await body()).builder(yargs),
    handler: async (args: ArgumentsCamelCase) => (await body()).handler(args as never),
  };
}

/** Every `ardent` command, in the order of `--help`. */
export const commands: CommandModule[] = [
  lazy('server [config-file]', 'Serve the Redis protocol over an engine', () => import('./server.ts')),
  lazy('bench [command..]', 'Measure one server, with redis-benchmark’s flags', () => import('./bench.ts')),
  lazy('matrix', 'Measure engines against Redis: workloads by servers', () => import('./matrix.ts')),
  lazy('engines', 'Measure the engines themselves, without a server', () => import('./engines.ts')),
  lazy('rdb', 'Look into an RDB file, verify it, convert it, print it', () => import('./rdb.ts')),
  lazy('rdb-save-load', 'Measure how servers load and save RDB files', () => import('./rdb-save-load.ts')),
  lazy('rdb-perf', 'Measure how servers load and save generated data', () => import('./rdb-perf.ts')),
  lazy('drill', 'Try whether backups come back, whatever happens meanwhile', () => import('./drill.ts')),
  lazy('compare <before> <after>', 'Compare two result sets', () => import('./compare.ts')),
  lazy('report <results>', 'Show a result set as tables, CSV or HTML', () => import('./report.ts')),
  lazy('check <directory>', 'Verify a data directory that no server has open', () => import('./check.ts')),
];
