import { defineCapability } from '../../capability.ts';
import { governanceGate } from './nodes.ts';

/** The governance gate: approval by role or scope, by a quorum of people, with an override that is recorded. */
export const approvals = defineCapability({ name: 'approvals', nodes: () => [governanceGate], build: () => ({}) });
