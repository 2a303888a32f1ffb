import { Type } from 'typebox';
import { AgentInventory, AgentInventoryEntry } from '../../../protocol/ai/agents.ts';
import { NOT_FOUND } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { reply, route } from '../../request.ts';
import type { Agents } from './door.ts';

const operation = route<{ readonly agents: Agents }>();

const listAgents = operation({
  operationId: 'listAgents',
  summary: 'List the agents that the caller may use, by id',
  method: 'GET',
  path: '/v1/agents',
  scope: 'manifest:read',
  replies: { 200: AgentInventory },
  handle: async ({ caller }, { agents }) => reply(200, await agents.list(caller)),
});

const getAgent = operation({
  operationId: 'getAgent',
  summary: 'Get an agent: its public manifest, without its prompt',
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

/** The operations on agents. */
export const routes = [listAgents, getAgent];
