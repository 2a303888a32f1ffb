import { Type } from 'typebox';
import { AgentInventory, AgentInventoryEntry } from '../../../protocol/ai/agents.ts';
import { NOT_FOUND } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { reply, route } from '../../request.ts';
import type { AgentService } from './service.ts';

const operation = route<{ readonly agents: AgentService }>();

const listAgents = operation({
  operationId: 'listAgents',
  summary: 'The agents that the caller may use, by their ids',
  method: 'GET',
  path: '/v1/agents',
  scope: 'manifest:read',
  replies: { 200: AgentInventory },
  handle: async ({ caller }, { agents }) => reply(200, await agents.list(caller)),
});

const getAgent = operation({
  operationId: 'getAgent',
  summary: 'An agent: who it is and what it may do, never its prompt',
  method: 'GET',
  path: '/v1/agents/{agentId}',
  scope: 'manifest:read',
  params: Closed({ agentId: Type.String({ minLength: 1, maxLength: 256 }) }),
  replies: { 200: AgentInventoryEntry },
  refusals: [404],
  handle: async ({ caller, params }, { agents }) => {
    const agent = await agents.find(caller, params.agentId);
    return agent ? reply(200, agent) : NOT_FOUND;
  },
});

export const routes = [listAgents, getAgent];
