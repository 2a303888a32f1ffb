import type { NodeType } from '../../../runtime/node-type.ts';
import { delay } from '../../running/nodes/door.ts';
import { memoryProbe } from './memory-probe.ts';
import { mockAgent } from './mock-agent.ts';
import { mockAi } from './mock-ai.ts';

/** Needs something that no host provides, so that its refusal can be seen. */
const requiresMissing: NodeType = {
  typeId: 'conformance.requiresMissing',
  role: 'pure',
  requires: ['conformance.never-provided'],
  run: () => ({ done: {} }),
};

/** A delay that a replay repeats. */
const hold: NodeType = { ...delay, typeId: 'core.conformance.hold' };

/** One real, harmless effect, so that repeats can be counted. */
const sideEffect: NodeType = {
  typeId: 'core.conformance.side-effect',
  role: 'side-effect',
  run: async ({ effects }) => ({ done: { outputs: { effectId: (await effects.probe({})).effectId } } }),
};

/** Reachable only where the conformance switch is on. */
export const CONFORMANCE_NODES: readonly NodeType[] = [
  requiresMissing,
  hold,
  sideEffect,
  mockAi,
  memoryProbe,
  mockAgent,
];
