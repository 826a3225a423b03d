/** `ardent check DIR [--repair]`: is a data directory as it was written? */
import type { Argv } from 'yargs';
import pc from 'picocolors';
import { DataDirectoryError } from '../store/data-directory.ts';
import { checkDirectory, type CheckReport } from '../store/check.ts';
import { EXIT } from './exit-codes.ts';

interface Arguments {
  directory: string;
  repair: boolean;
  json: boolean;
}

export const builder = (yargs: Argv): Argv<Arguments> =>
  yargs
    .positional('directory', { type: 'string', demandOption: true, describe: 'The server’s --dir' })
    .option('repair', {
      type: 'boolean',
      default: false,
      describe: 'Mend what can be mended: a damaged log, an unfinished checkpoint, damaged rows and blocks',
    })
    .option('json', { type: 'boolean', default: false, describe: 'Print the report as JSON' })
    .epilogue('Exit code 0: sound or repaired; 1: not a data directory, or in use; 3: damaged.');

export const handler = async ({ directory, repair, json }: Arguments): Promise<void> => {
  const live = process.stderr.isTTY && !json;
  const show = (message: string): void => void process.stderr.write(`\r\x1b[K${message}`);
  let report: CheckReport;
  try {
    report = await checkDirectory(directory, {
      repair,
      onProgress: live ? show : undefined,
      onLoss: (message) => void process.stderr.write(`${live ? '\r\x1b[K' : ''}loss: ${message}\n`),
    });
  } catch (error) {
    if (!(error instanceof DataDirectoryError)) throw error;
    process.stderr.write(`ardent: ${error.message}\n`);
    const damaged = error.code === 'DIRECTORY_DAMAGED' || error.code === 'DIRECTORY_FORMAT';
    process.exitCode = damaged ? EXIT.data : EXIT.usage;
    return;
  }
  if (live) show('');
  process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : text(report, repair));
  if (!report.ok) process.exitCode = EXIT.data;
};

function text(report: CheckReport, repair: boolean): string {
  const { identity, log, redo, engine } = report;
  const state = (parts: string[]): string =>
    report.problems.some(({ part }) => parts.includes(part)) ? pc.red('damaged') : pc.green('sound');
  const lines = [
    `${report.directory}: engine ${identity.engine} (${identity.binding}), format ${identity.format}, made ${identity.created}`,
    `log     ${log.frames} frames in ${log.segments} segments, position ${log.from} to ${log.to}: ${state(['log'])}`,
    redo.files === 0
      ? 'redo    no checkpoint under way'
      : `redo    ${redo.files} file, ${redo.rows} rows, ${redo.rowBytes} bytes: ${state(['redo'])}`,
    `engine  ${engine.rows} rows, ${engine.bytes} bytes, ${engine.collections} collections, checkpoint ${engine.checkpoint} at position ${engine.position}: ${state(['engine', 'rows', 'trees'])}`,
  ];
  for (const { path, offset, message } of report.problems) {
    lines.push(pc.red(`damage: ${path}${offset === undefined ? '' : ` at offset ${offset}`}: ${message}`));
  }
  for (const notice of report.notices) lines.push(pc.yellow(`notice: ${notice}`));
  for (const repaired of report.repaired) lines.push(pc.yellow(`repaired: ${repaired}`));
  if (!report.ok && !repair) {
    lines.push(
      `\`ardent check ${report.directory} --repair\` keeps the log before its damage, makes the engine anew of what can be read of it, drops damaged keys and puts the rest aside; a server that starts without it serves all other keys.`,
    );
  } else if (!report.ok) {
    lines.push('Restore the directory from a backup: what is damaged here is nowhere else.');
  }
  return `${lines.join('\n')}\n`;
}
