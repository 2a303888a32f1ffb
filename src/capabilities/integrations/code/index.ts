import { createSandbox } from '../../../system/sandbox.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { javascript } from './nodes.ts';

/** Programs that run at the same time, each in a thread of its own. */
const THREADS = 2;

/** Steps of a workflow that its author wrote as programs. */
export const code: Capability<'code', undefined> = {
  name: 'code',
  service: () => undefined,
  nodes: () => [javascript(createSandbox({ threads: THREADS }))],
};
