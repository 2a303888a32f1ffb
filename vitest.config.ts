import { defineConfig } from 'vitest/config';

/** Tests that need a PostgreSQL server share the one that the set-up file starts. */
const withPostgres = {
  globalSetup: ['test/postgres.ts'],
  testTimeout: 60_000,
  hookTimeout: 60_000,
  isolate: false,
};

export default defineConfig({
  test: {
    // Many tests wait for real time to pass, so there is work for one more than two cores.
    maxWorkers: 3,
    projects: [
      // Modules have no state of their own, so the files of a worker can share them: half of the time went into imports.
      { test: { name: 'unit', include: ['src/**/*.test.ts', 'test/*.test.ts'], testTimeout: 30_000, isolate: false } },
      { test: { name: 'sim', include: ['test/sim/**/*.test.ts'], testTimeout: 120_000, isolate: false } },
      { test: { name: 'contract', include: ['test/contract/**/*.test.ts'], ...withPostgres } },
      {
        test: {
          name: 'blackbox',
          include: ['test/blackbox/**/*.test.ts'],
          ...withPostgres,
          globalSetup: [...withPostgres.globalSetup, 'test/migrated.ts', 'test/bundle.ts', 'test/recordings.ts'],
          setupFiles: ['test/recorder.ts'],
        },
      },
      {
        test: {
          name: 'package',
          include: ['test/package/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'browser',
          include: ['test/browser/**/*.spec.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
