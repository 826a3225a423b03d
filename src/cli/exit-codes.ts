/** How every `ardent` command ends: its exit code, and what it says of an error. */

export const EXIT = {
  ok: 0,
  /** A wrong option or argument, or a fault of the command itself. */
  usage: 1,
  /** `bench`, `matrix`: no target could be reached. `server`: an address cannot be listened on. */
  unreachable: 2,
  /** What is stored is not what was written, or cannot be opened. */
  data: 3,
  /** `bench`, `matrix`, `engines`: part of the run failed. `server`: an error while serving. */
  failed: 4,
  /** `compare`: a proven regression. */
  regression: 99,
  interrupted: 130,
} as const;

/** An error that is the user's to solve: printed as one line, without a stack. */
export class UsageError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.usage) {
    super(message);
    this.name = 'UsageError';
    this.exitCode = exitCode;
  }
}

/** Runs a command: what it throws becomes one line on stderr, what it returns the exit code. */
export async function exitWith(command: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await command();
  } catch (error) {
    const { name, code, syscall } = error as { name?: string; code?: string; syscall?: string };
    const expected =
      error instanceof UsageError ||
      error instanceof RangeError ||
      name === 'CommandLineError' ||
      name === 'ResultsError' ||
      // A file, directory or disk is not as it should be: the system's words name it.
      syscall !== undefined;
    process.stderr.write(
      `ardent: ${expected ? (error as Error).message : ((error as Error).stack ?? String(error))}\n`,
    );
    process.exitCode =
      error instanceof UsageError ? error.exitCode : code === 'TARGET' ? EXIT.unreachable : EXIT.usage;
  }
}
