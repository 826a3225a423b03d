/** Versions that the server reports. */
import { readFileSync } from 'node:fs';

/** Version of Redis whose behaviour this server has; clients decide by it what they may send. */
export const REDIS_VERSION = '7.0.15';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/** This server's own version. */
export const VERSION = version;
