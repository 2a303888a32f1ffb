import { createSandbox } from '../../../system/sandbox.ts';
import { defineCapability } from '../../capability.ts';
import { shareSettings } from '../../share-settings.ts';
import { javascript } from './nodes.ts';

/** Programs that run at the same time, each in a thread of its own. */
const THREADS = 2;

/** JavaScript in workflows, in a sandbox. */
export const code = defineCapability({
  name: 'code',
  settings: shareSettings,
  nodes: ({ tenantWeights }) => [
    javascript(createSandbox({ threads: THREADS, weightOf: (tenant) => tenantWeights.get(tenant) ?? 1 })),
  ],
  build: () => ({}),
});
