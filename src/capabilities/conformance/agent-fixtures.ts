import type { JsonObject } from '../../protocol/json.ts';
import type { AgentRef, WorkflowDefinition, WorkflowNode } from '../../protocol/workflows.ts';
import { line, node } from './fixtures.ts';

/** The workflows of agents that conformance suites start by name. */

const pinned = (id: string, typeId: string, agent: AgentRef, config: JsonObject = {}): WorkflowNode => ({
  ...node(id, typeId, config),
  agent,
});

const reasoning = (agentId: string): AgentRef => ({ agentId, modelClass: 'reasoning' });

export const AGENT_FIXTURES: readonly WorkflowDefinition[] = [
  line('conformance-agent-identity', 'Stands for an agent', [
    pinned('echo', 'core.identity', { agentId: 'core.conformance.identity-agent', modelClass: 'chat' }),
  ]),
  line('conformance-agent-reasoning', 'Does what agents do', [
    pinned('reasoner', 'core.conformance.mock-agent', reasoning('core.conformance.reasoning-agent'), {
      mockReasoning: { summary: 'Looked at the question, asked a tool, handed it on.', tokenCount: 11 },
      mockToolCalls: [{ toolId: 'openwop.echo:echo', arguments: { x: 1 }, result: { x: 1 }, durationMs: 1 }],
      mockHandoff: { toAgentId: 'core.conformance.handoff-target', reason: 'to show it' },
      mockDecision: { decision: { next: 'done' }, confidence: 1 },
    }),
  ]),
  line('conformance-agent-low-confidence', 'Is not sure', [
    pinned('low-conf-decider', 'core.conformance.mock-agent', reasoning('core.conformance.low-conf-decider'), {
      mockDecision: { decision: { kind: 'unsure' }, confidence: 0.5 },
    }),
  ]),
  line('conformance-agent-pack-install', 'Does nothing, beside a pack of agents', [node('noop', 'core.identity')]),
  line('conformance-agent-pack-provenance', 'Stands for an agent from a pack', [
    pinned('pack-installed-node', 'core.identity', {
      agentId: 'core.conformance.pack-installed-agent',
      sourceManifestId: 'core.conformance.agent-pack.installed-agent',
      modelClass: 'chat',
    }),
  ]),
];
