import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// Every worker loads all sources, and so do programs that tests start: what Node compiled of them is stored for the next.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), 'node-compile-cache');

/** Workers make much that is soon garbage: where it fits into memory for longer, there is less of it to look through. */
const ROOM_FOR_THE_NEW = ['--min-semi-space-size=64', '--max-semi-space-size=64'];

/** Tests that need a PostgreSQL server share the one that the set-up file starts. */
const withPostgres = {
  globalSetup: ['test/postgres.ts'],
  testTimeout: 60_000,
  hookTimeout: 60_000,
};

export default defineConfig({
  test: {
    // Many tests wait for real time to pass, or for a program that they have started. The database has room for so many.
    maxWorkers: Math.min(availableParallelism() + 2, 8),
    // Node loads the sources by itself, as it does in production: nothing is transformed, and no module is mocked.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    projects: [
      { test: { name: 'unit', include: ['src/**/*.test.ts', 'test/*.test.ts'], testTimeout: 30_000 } },
      { test: { name: 'sim', include: ['test/sim/**/*.test.ts'], testTimeout: 120_000 } },
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
          // One of the packages that it uses has sources for those who develop it, which Node refuses to load.
          experimental: { viteModuleRunner: true },
          include: ['test/package/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'browser',
          include: ['test/browser/**/*.spec.ts'],
          globalSetup: ['test/browser.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      // Modules have no state of their own, so the files of a worker can share them: half of the time went into imports.
    ].map((project) => ({ ...project, test: { ...project.test, isolate: false, execArgv: ROOM_FOR_THE_NEW } })),
  },
});
