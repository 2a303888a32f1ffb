import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { bundleProgram, PORTABLE } from '../scripts/bundle.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The program, bundled from the sources as they are now. */
    program: string;
  }
}

/** Programs that only tests start, and what scripts of users import. */
const BESIDE: Readonly<Record<string, string>> = {
  ...PORTABLE,
  'poison-host': 'test/support/poison-host.ts',
  'worker-process': 'test/support/worker-process.ts',
};

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Bundles the program as the package does, for the tests that start it hundreds of times. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(ROOT, '.bundle-'));
  await bundleProgram(folder, BESIDE);
  project.provide('program', join(folder, 'main.js'));
  return () => rm(folder, { recursive: true, force: true });
}
