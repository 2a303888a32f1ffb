import type { AgentPackManifest } from '../../protocol/ai/packs.ts';

/** The pack whose agent conformance suites look for. */
export const AGENT_PACK: AgentPackManifest = {
  name: 'core.conformance.agent-pack',
  version: '1.0.0',
  description: 'An agent that suites look for.',
  engines: { openwop: '>=1.1.0 <2.0.0' },
  runtime: { language: 'remote', entry: 'pack.json' },
  agents: [
    {
      agentId: 'core.conformance.pack-installed-agent',
      persona: 'Agent from a pack',
      modelClass: 'general',
      systemPrompt: 'You answer in one sentence.',
      toolAllowlist: [],
    },
  ],
};
