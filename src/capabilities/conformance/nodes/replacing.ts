import { type Static, Type } from 'typebox';
import { NonEmpty, OneOf } from '../../../protocol/format/schema.ts';
import type { NodeType, Outcome } from '../../../runtime/node-type.ts';
import { orchestrationNodes } from '../../ai/agents/door.ts';
import { ApprovalConfig, approvalGate } from '../../people/interrupts/door.ts';
import { identity, noop } from '../../running/nodes/door.ts';
import { plannedSupervisor } from '../planned-supervisor.ts';
import { callPromptOrTool } from './call-prompt.ts';
import { performProbe } from './effects.ts';
import { agentThatErrs, returnNothing } from './handoff.ts';
import { MEMORY_ACTIONS, probeMemory } from './memory-probe.ts';

const Optional = Type.Optional;

const IdentityConfig = Type.Object({
  memoryAction: Optional(OneOf(MEMORY_ACTIONS)),
  byokSecretId: Optional(NonEmpty),
  probeMemoryRef: Optional(NonEmpty),
  emitDuplicateMessageId: Optional(Type.Boolean()),
});
type IdentityConfig = Static<typeof IdentityConfig>;

const MESSAGE = { messageId: 'conformance-message-1', from: 'core.conformance', content: 'said twice' };
const TWICE = [1, 2].map(() => ({ channel: 'messages', reducer: 'message', value: MESSAGE }));

/** `core.identity` that tries memory, errs like an agent, or says the same message twice, if the fixture tells it to. */
const identityOfFixtures: NodeType = {
  ...identity,
  config: IdentityConfig,
  usesEffects: ({ config }, { metadata }) =>
    config.memoryAction !== undefined || metadata.requiresAgentId !== undefined,
  run: (context) => {
    const { memoryAction, emitDuplicateMessageId } = context.config as IdentityConfig;
    const agentId = agentThatErrs(context);
    if (emitDuplicateMessageId) return { done: { channels: TWICE } };
    if (memoryAction) return probeMemory(context, memoryAction).then((variables) => ({ done: { variables } }));
    return agentId === undefined ? identity.run(context) : returnNothing(context, agentId);
  },
};

/** `core.noop` that stands for a tool which never answers twice alike, if its config says so. */
const noopOfFixtures: NodeType = {
  ...noop,
  usesEffects: ({ config }) => config.nondeterministic === true,
  run: (context) => {
    if (context.config.nondeterministic !== true) return noop.run(context);
    return performProbe(context).then(({ effectId }): Outcome => ({ done: { outputs: { value: effectId } } }));
  },
};

/** `core.approvalGate` that takes a wish to be granted by silence, to show that it is not. */
const approvalGateOfFixtures: NodeType = {
  ...approvalGate,
  config: Type.Object({ ...ApprovalConfig.properties, onTimeout: Optional(OneOf(['reject', 'approve'])) }),
};

/** Node types that replace those of the same id: their config may say what a model, a tool or a suite would. */
export const REPLACING_NODES: readonly NodeType[] = [
  identityOfFixtures,
  noopOfFixtures,
  approvalGateOfFixtures,
  callPromptOrTool,
  ...orchestrationNodes(plannedSupervisor),
];
