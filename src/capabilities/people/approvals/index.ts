import type { LegacyCapability as Capability } from '../../legacy.ts';
import { governanceGate } from './nodes.ts';

/** The governance gate: approval by role or scope, by a quorum of people, with an override that leaves a trace. */
export const approvals: Capability<'approvals', object> = {
  name: 'approvals',
  nodes: () => [governanceGate],
  service: () => ({}),
};
