/** Where results go: `bench-results/<tool>/<timestamp>/`. Files appear complete or not at all. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export class ResultsDirectory {
  readonly path: string;

  /** @param root usually `bench-results`; @param exact a directory given by the user, taken as it is */
  constructor(root: string, tool: string, exact?: string) {
    const stamp = new Date().toISOString().slice(0, 19).replaceAll(':', '-');
    this.path = exact ?? join(root, tool, stamp);
    mkdirSync(this.path, { recursive: true });
  }

  write(name: string, content: string): string {
    const path = join(this.path, name);
    const unfinished = `${path}.new`;
    writeFileSync(unfinished, content);
    renameSync(unfinished, path);
    return path;
  }
}
