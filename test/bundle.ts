import { cp, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The program, bundled from the sources as they are now. */
    program: string;
  }
}

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Packages that look for files beside their own. */
const EXTERNAL = [/^@jitl\//, /^quickjs-/, /^pino/];

/**
 * Bundles the program for the tests that start it hundreds of times: from one file it starts in a third of the time
 * that Node needs to find and read its sources and those of its packages one by one.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Right below the root, where the program finds the examples as it does from its sources.
  const folder = await mkdtemp(join(ROOT, '.bundle-'));
  const bundle = await rolldown({
    cwd: ROOT,
    input: {
      main: 'src/cli/main.ts',
      // What projects import as `capstan/build`, and what their tests are started with.
      index: 'src/build/index.ts',
      register: 'src/build/register.ts',
      'sandbox-worker': 'src/system/sandbox-worker.ts',
      'schema-worker': 'src/runtime/validation/schema-worker.ts',
    },
    platform: 'node',
    external: EXTERNAL,
    logLevel: 'silent',
  });
  await bundle.write({ dir: folder, chunkFileNames: '[name]-[hash].js' });
  await bundle.close();
  await cp(join(ROOT, 'src/http/front-door'), join(folder, 'front-door'), { recursive: true });
  project.provide('program', join(folder, 'main.js'));
  return () => rm(folder, { recursive: true, force: true });
}
