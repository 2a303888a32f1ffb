import { Type } from 'typebox';
import { ToolDescriptor, ToolList } from '../../../protocol/ai/tools.ts';
import { NOT_FOUND } from '../../../protocol/errors.ts';
import { TOOL_SOURCES } from '../../../protocol/format/choices.ts';
import { Closed, OneOf } from '../../../protocol/format/schema.ts';
import { reply, route } from '../../request.ts';
import type { ToolService } from './service.ts';

const operation = route<{ readonly tools: ToolService }>();

const listTools = operation({
  operationId: 'listTools',
  summary: 'The tools that agents of the caller may use, by their ids',
  method: 'GET',
  path: '/v1/tools',
  scope: 'manifest:read',
  // Open: hosts without other views of the catalogue are to pass over a wish for one.
  query: Type.Object({ source: Type.Optional(OneOf(TOOL_SOURCES)) }),
  replies: { 200: ToolList },
  refusals: [400],
  handle: async ({ caller, query }, { tools }) => reply(200, { tools: await tools.list(caller.subject, query.source) }),
});

const getTool = operation({
  operationId: 'getTool',
  summary: 'A tool: what it takes, and what a call of it does',
  method: 'GET',
  path: '/v1/tools/{toolId}',
  scope: 'manifest:read',
  params: Closed({ toolId: Type.String({ minLength: 1, maxLength: 512 }) }),
  replies: { 200: ToolDescriptor },
  refusals: [404],
  handle: async ({ caller, params }, { tools }) => {
    const tool = await tools.find(caller.subject, params.toolId);
    return tool ? reply(200, tool) : NOT_FOUND;
  },
});

export const routes = [listTools, getTool];
