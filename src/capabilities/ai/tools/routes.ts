import { Type } from 'typebox';
import { TOOL_VIEWS, ToolDescriptor, ToolList } from '../../../protocol/ai/tools.ts';
import { NOT_FOUND } from '../../../protocol/errors.ts';
import { TOOL_SOURCES } from '../../../protocol/format/choices.ts';
import { Closed, OneOf } from '../../../protocol/format/schema.ts';
import { reply, route } from '../../request.ts';
import { compact } from './compact.ts';
import type { ToolCatalog } from './service.ts';

const operation = route<{ readonly tools: ToolCatalog }>();

const listTools = operation({
  operationId: 'listTools',
  summary: 'List the tools that agents of the caller may use, by id',
  method: 'GET',
  path: '/v1/tools',
  scope: 'manifest:read',
  // Open: the protocol says that a host ignores query members that it does not know.
  query: Type.Object({
    source: Type.Optional(OneOf(TOOL_SOURCES)),
    view: Type.Optional(
      OneOf(TOOL_VIEWS, {
        default: 'standard',
        description: '`compact`: only what a model gets of a tool, with plain object schemas',
      }),
    ),
  }),
  replies: { 200: ToolList },
  refusals: [400],
  handle: async ({ caller, query: { source, view } }, { tools }) => {
    const listed = await tools.list(caller.subject, source);
    return reply(200, { tools: view === 'compact' ? listed.map(compact) : listed });
  },
});

const getTool = operation({
  operationId: 'getTool',
  summary: 'Get a tool: its input schema and what a call may do',
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

/** The operations on the tool catalogue. */
export const routes = [listTools, getTool];
