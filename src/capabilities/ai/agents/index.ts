import type { LegacyCapability as Capability } from '../../legacy.ts';
import { orchestration } from './orchestration.ts';
import { routes } from './routes.ts';
import { runAgent } from './run-agent.ts';
import { type AgentService, agentService } from './service.ts';
import { ownTools } from './tools.ts';

const LIVE = { supported: true, structuredOutput: true, confidenceEscalation: true, sources: ['workflow-node'] };

/** Agents that packs bring: who they are, what they may do, and the node that has them do it. */
export const agents: Capability<'agents', AgentService> = {
  name: 'agents',
  advertise: ({ models, conformance }) => ({
    agents: {
      supported: true,
      orchestrator: true,
      dispatch: true,
      dispatchMapping: true,
      reasoning: { verbosity: 'summary', streaming: false },
      manifestRuntime: { supported: true, handoffValidation: true, installScope: 'tenant' },
      // Without a model nobody thinks.
      ...(models.length > 0 || conformance ? { liveRuntime: LIVE } : {}),
    },
    orchestrator: { supported: true, fanOutSupported: true },
    dispatch: {
      supported: true,
      models: ['child-run'],
      fanOutSupported: false,
      fanOutPolicies: ['sequential', 'reject'],
      askUserRoutings: ['clarification', 'auto'],
    },
    prompts: { agentBindings: true },
    budget: { dimensions: ['toolCalls'] },
  }),
  nodes: (settings) => [runAgent, ...orchestration(settings)],
  service: agentService,
  routes,
  seams: (_host, { seam }) => ({ agent: seam }),
  tools: ({ runtime }) => ownTools(runtime),
};
