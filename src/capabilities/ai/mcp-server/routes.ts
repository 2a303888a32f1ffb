import { McpMessage } from '../../../protocol/ai/mcp.ts';
import { refuse } from '../../../protocol/errors.ts';
import type { Scope } from '../../../protocol/trust/scopes.ts';
import { type Caller, route } from '../../request.ts';
import { isOwnOrigin, STATUS_TOOL } from './rules.ts';
import { serve } from './serve.ts';
import type { McpServerService } from './service.ts';

/** What a method takes besides the scope of the route, which is that of lists of workflows. */
const SCOPES: Readonly<Record<string, readonly Scope[]>> = {
  'tools/call': ['runs:create', 'runs:read'],
  'resources/read': ['runs:read'],
  'prompts/list': ['prompts:read'],
  'prompts/get': ['prompts:read'],
};

/** To ask about a run is not to start one. */
const STATUS_SCOPES: readonly Scope[] = ['runs:read'];

/** Speaks the Model Context Protocol, in single requests that need no session. */
const exchangeMcp = route<{ readonly mcpServer: McpServerService }>()({
  operationId: 'exchangeMcp',
  summary: 'A message of the Model Context Protocol: workflows are tools, prompt templates are prompts',
  method: 'POST',
  path: '/v1/mcp',
  scope: 'manifest:read',
  body: McpMessage,
  replies: { 200: 'a JSON-RPC answer, or a stream of messages that ends with it', 202: 'nothing to answer' },
  refusals: [400, 403],
  handle: (request, { mcpServer }) => {
    const { caller, body: message, origin, signal, header } = request;
    const page = header('origin');
    if (page !== undefined && !isOwnOrigin(page, { origin, publicUrl: mcpServer.publicUrl })) {
      return refuse('forbidden', 'Pages of other origins may not ask here.', { field: 'Origin' });
    }
    const scopeRequired = missing(caller, message);
    if (scopeRequired) return refuse('forbidden', `This takes the scope ${scopeRequired}.`, { scopeRequired });
    return serve(mcpServer, { caller, message, origin, signal, header });
  },
});

function missing({ scopes }: Caller, { method, params = {} }: McpMessage): Scope | undefined {
  const isQuestion = method === 'tools/call' && params.name === STATUS_TOOL;
  const needed = isQuestion ? STATUS_SCOPES : Object.hasOwn(SCOPES, method) ? SCOPES[method]! : [];
  return needed.find((scope) => !scopes.has(scope));
}

export const routes = [exchangeMcp];
