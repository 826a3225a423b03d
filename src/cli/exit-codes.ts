/** How `ardent bench`, `matrix`, `engines`, `compare` and `report` end. */
export const EXIT = {
  ok: 0,
  /** A wrong option, or a fault of the bench itself. */
  usage: 1,
  unreachable: 2,
  /** Something that was read was not what had been written. */
  verification: 3,
  /** Nothing usable was measured, or part of it failed. */
  invalid: 4,
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
    const { name, code } = error as { name?: string; code?: string };
    const expected =
      error instanceof UsageError ||
      error instanceof RangeError ||
      name === 'CommandLineError' ||
      name === 'ResultsError' ||
      code === 'ENOENT' ||
      code === 'EACCES' ||
      code === 'ENOSPC';
    process.stderr.write(
      `ardent: ${expected ? (error as Error).message : ((error as Error).stack ?? String(error))}\n`,
    );
    process.exitCode =
      error instanceof UsageError ? error.exitCode : code === 'TARGET' ? EXIT.unreachable : EXIT.usage;
  }
}
