import type { Capability } from '../capability.ts';
import { routes } from './routes.ts';
import { type AgentService, agentService } from './service.ts';

/** Agents that packs bring: who they are, and what they may do. */
export const agents: Capability<'agents', AgentService> = {
  name: 'agents',
  service: agentService,
  routes,
};
