import { createSandbox } from '../../../system/sandbox.ts';
import { defineCapability } from '../../capability.ts';
import { javascript } from './nodes.ts';

/** Programs that run at the same time, each in a thread of its own. */
const THREADS = 2;

/** JavaScript in workflows, in a sandbox. */
export const code = defineCapability({
  name: 'code',
  nodes: () => [javascript(createSandbox({ threads: THREADS }))],
  build: () => ({}),
});
