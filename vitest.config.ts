import { defineConfig } from 'vitest/config';

/** Where rows are fetched all the time (test/server/harness.ts) a test of many commands takes its time. */
const fetching = process.env.TIER !== undefined || process.env.FAULTS !== undefined;

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Servers, engines and child processes: forks keep native bindings apart (two RocksDB
    // bindings in one process crash it), and two workers fit two cores.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: fetching ? 300_000 : 60_000,
    hookTimeout: 60_000,
  },
});
