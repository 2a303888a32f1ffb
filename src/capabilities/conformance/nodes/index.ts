import { Type } from 'typebox';
import { AnyObject, NonEmpty } from '../../../protocol/format/schema.ts';
import type { NodeType } from '../../../runtime/node-type.ts';
import { delay } from '../../running/nodes/door.ts';
import { emitCost } from './cost.ts';
import { digestSecret, performProbe } from './effects.ts';
import { mockAgent } from './mock-agent.ts';
import { mockAi } from './mock-ai.ts';

export { REPLACING_NODES } from './replacing.ts';

/** Lacks a capability that no host provides, so that the failure can be tested. */
const requiresMissing: NodeType = {
  typeId: 'conformance.requiresMissing',
  description: 'Fails, because it lacks a capability that no host provides.',
  role: 'pure',
  lacks: { capability: 'conformance.never-provided' },
  run: () => ({ done: {} }),
};

/** The model that is asked where a node names none. */
export interface DefaultModel {
  readonly provider: string;
  readonly model: string;
}

const MISSING_ABILITY = 'nonexistent-capability-9b3f';

/** Needs a model that can do what no model can, so that the failure can be tested. */
export function requiresMissingAbility(asked: DefaultModel): NodeType {
  return {
    typeId: 'conformance.modelCapability.insufficient',
    description: 'Fails, because it needs a model that can do what no model can.',
    role: 'pure',
    lacks: {
      capability: MISSING_ABILITY,
      reasons: (nodeId) => [
        {
          type: 'model.capability.insufficient',
          nodeId,
          payload: { nodeId, ...asked, missingCapabilities: [MISSING_ABILITY], fallbackAttempted: false },
        },
      ],
    },
    run: () => ({ done: {} }),
  };
}

/** A delay that a replay waits for again. */
const hold: NodeType = { ...delay, typeId: 'core.conformance.hold' };

/** Performs one effect that is counted, so that repeats can be seen. */
const sideEffect: NodeType = {
  typeId: 'core.conformance.side-effect',
  description: 'Performs one effect that is counted.',
  role: 'side-effect',
  run: async (context) => ({ done: { outputs: await performProbe(context) } }),
};

/** Resolves a secret; its digest and its length become a variable with the node's id. */
const echoSecret: NodeType = {
  typeId: 'conformance.secret.echo',
  description: 'Sets a variable to the digest of a secret.',
  role: 'side-effect',
  config: Type.Object({ secretId: NonEmpty }),
  run: async (context) => {
    const digest = await digestSecret(context, String(context.config.secretId));
    return { done: { variables: { [context.node.id]: digest } } };
  },
};

/** Reports what a made-up model call has cost. */
const costEmit: NodeType = {
  typeId: 'conformance.cost.emit',
  description: 'Reports what a made-up model call has cost.',
  role: 'pure',
  config: Type.Object({ attrs: AnyObject }),
  run: emitCost,
};

/** Node types that conformance fixtures use. */
export const CONFORMANCE_NODES: readonly NodeType[] = [
  requiresMissing,
  hold,
  sideEffect,
  echoSecret,
  costEmit,
  mockAi,
  mockAgent,
];
