import { defineCapability } from '../../capability.ts';
import { Storage } from '../../integrations/storage/door.ts';
import { bindRoutes } from '../../request.ts';
import { WorkflowWarnings } from '../../running/workflows/door.ts';
import { Models } from '../models/door.ts';
import { Packs } from '../packs/door.ts';
import { Agents } from './door.ts';
import { AGENT_NODES } from './nodes.ts';
import { FAN_OUT, TURNS_MAX } from './orchestration.ts';
import { routes } from './routes.ts';
import { AgentService } from './service.ts';
import { hostTools } from './tools.ts';
import { unknownAgents } from './warnings.ts';

const LIVE = { supported: true, structuredOutput: true, confidenceEscalation: true, sources: ['workflow-node'] };

/** The level of the execution model, and what each level up to it promises. */
const EXECUTION_MODEL = {
  supported: true,
  version: 6,
  confidenceEscalationInterruptKind: 'approval',
  // A replay takes every answer of a model from the log, whatever the key of its question is.
  replayDeterminism: { supported: true, llmCacheKeyRecipe: 'spec-rfc-0041', refusalDivergenceEmission: true },
  statefulResume: true,
  verifier: { supported: true, gating: true },
};

/** Agents that packs install, and the nodes that run them: single agents and supervised runs. */
export const agents = defineCapability({
  name: 'agents',
  provides: Agents,
  needs: [Packs, Models, Storage],
  nodes: () => AGENT_NODES,
  build: (host, needs) => {
    const service = new AgentService(host, needs);
    return {
      service,
      advertise: () => ({
        limits: { maxLoopIterations: TURNS_MAX },
        agents: {
          supported: true,
          orchestrator: true,
          dispatch: true,
          dispatchMapping: true,
          reasoning: { verbosity: 'summary', streaming: true },
          manifestRuntime: { supported: true, handoffValidation: true, installScope: 'tenant' },
          // Agents cannot run without a model provider.
          ...(needs.models.providers.length > 0 ? { liveRuntime: LIVE } : {}),
        },
        orchestrator: { supported: true, fanOutSupported: true },
        dispatch: {
          supported: true,
          models: ['child-run'],
          fanOutSupported: true,
          fanOutPolicies: [...FAN_OUT.policies],
          joinModes: [...FAN_OUT.joins],
          onChildFailureModes: [...FAN_OUT.failures],
          maxFanOut: FAN_OUT.max,
          askUserRoutings: ['clarification', 'auto'],
        },
        multiAgent: { executionModel: EXECUTION_MODEL },
        prompts: { agentBindings: true },
        budget: { dimensions: ['toolCalls'] },
      }),
      routes: bindRoutes(routes, { agents: service }),
      seams: { agent: service.seam },
      extensions: [WorkflowWarnings.of(unknownAgents(host.runtime, needs))],
      tools: hostTools(host.runtime, needs.storage),
    };
  },
});
