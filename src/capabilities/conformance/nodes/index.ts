import { Type } from 'typebox';
import { NodeFailure, type NodeType } from '../../../runtime/node-type.ts';
import { orchestrationNodes } from '../../ai/agents/door.ts';
import { delay, identity } from '../../running/nodes/door.ts';
import { plannedSupervisor } from '../planned-supervisor.ts';
import { PROBE_TOOL } from '../probe-tool.ts';
import { callPromptOrTool } from './call-prompt.ts';
import { memoryProbe } from './memory-probe.ts';
import { mockAgent } from './mock-agent.ts';
import { mockAi } from './mock-ai.ts';

/** Requires a capability that no host provides, so that the refusal can be tested. */
const requiresMissing: NodeType = {
  typeId: 'conformance.requiresMissing',
  role: 'pure',
  requires: ['conformance.never-provided'],
  run: () => ({ done: {} }),
};

/** A delay that a replay waits for again. */
const hold: NodeType = { ...delay, typeId: 'core.conformance.hold' };

/** Performs one effect that is counted, so that repeats can be seen. */
const sideEffect: NodeType = {
  typeId: 'core.conformance.side-effect',
  role: 'side-effect',
  run: async ({ effects }) => {
    const result = await effects.tool({ agentId: 'core.conformance', name: PROBE_TOOL, arguments: {} });
    if ('error' in result) throw new NodeFailure({ ...result.error, retryable: false });
    return { done: { outputs: { effectId: (result.outcome as { effectId: string }).effectId } } };
  },
};

const Fixture = Type.Optional(Type.Unknown());

/** `core.identity` that takes the config keys of public fixtures. */
const identityOfFixtures: NodeType = {
  ...identity,
  config: Type.Object({
    memoryAction: Fixture,
    byokSecretId: Fixture,
    probeMemoryRef: Fixture,
    emitDuplicateMessageId: Fixture,
  }),
};

/** Node types that conformance fixtures use. */
export const CONFORMANCE_NODES: readonly NodeType[] = [
  requiresMissing,
  hold,
  sideEffect,
  mockAi,
  memoryProbe,
  mockAgent,
];

/** Node types that replace those of the same id: their config may say what a model or a tool would answer. */
export const REPLACING_NODES: readonly NodeType[] = [
  callPromptOrTool,
  identityOfFixtures,
  ...orchestrationNodes(plannedSupervisor),
];
