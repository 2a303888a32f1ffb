import { McpMessage } from '../../../protocol/ai/mcp.ts';
import { refuse } from '../../../protocol/errors.ts';
import { AnyObject } from '../../../protocol/format/schema.ts';
import type { Scope } from '../../../protocol/trust/scopes.ts';
import { type Answer, type Caller, route } from '../../request.ts';
import type { McpRequest } from './door.ts';
import { exchange, type McpServer } from './exchange.ts';
import { isOwnOrigin, STATUS_TOOL } from './rules.ts';

/** What the handlers of MCP routes use. */
interface Services extends McpServer {
  /** Origin that the operator configured, if any. */
  readonly publicUrl: string | undefined;
}

/** Scopes that a method needs besides that of the route. */
const SCOPES: Readonly<Record<string, readonly Scope[]>> = {
  'tools/call': ['runs:create', 'runs:read'],
  'resources/read': ['runs:read'],
  'prompts/list': ['prompts:read'],
  'prompts/get': ['prompts:read'],
};

/** The status tool starts no run. */
const STATUS_SCOPES: readonly Scope[] = ['runs:read'];

/** Serves the Model Context Protocol in single requests, without sessions. */
const exchangeMcp = route<Services>()({
  operationId: 'exchangeMcp',
  summary: 'Send a message of the Model Context Protocol: workflows are tools, prompt templates are prompts',
  method: 'POST',
  path: '/v1/mcp',
  scope: 'manifest:read',
  body: McpMessage,
  // A retry has another JSON-RPC id, so its bytes differ: the tool call compares name and arguments under the key.
  isUnrecorded: true,
  // A JSON-RPC answer, or a stream of messages that ends with it.
  replies: { 200: [AnyObject, 'text/event-stream'], 202: 'nothing' },
  refusals: [400, 403, 406],
  handle: answerMessage,
});

/** Answers one message of a caller, unless a web page of another origin sent it or a scope is missing. */
export function answerMessage(request: McpRequest, server: Services): Answer | Promise<Answer> {
  const { caller, body: message, origin, signal, header } = request;
  const page = header('origin');
  if (page !== undefined && !isOwnOrigin(page, { origin, publicUrl: server.publicUrl })) {
    return refuse('forbidden', 'Web pages of other origins may not use this endpoint.', { field: 'Origin' });
  }
  const scopeRequired = missingScope(caller, message);
  if (scopeRequired) return refuse('forbidden', `This method needs the scope ${scopeRequired}.`, { scopeRequired });
  return exchange(server, { caller, message, origin, signal, header });
}

function missingScope({ scopes }: Caller, { method, params = {} }: McpMessage): Scope | undefined {
  const isStatus = method === 'tools/call' && params.name === STATUS_TOOL;
  const needed = isStatus ? STATUS_SCOPES : Object.hasOwn(SCOPES, method) ? SCOPES[method]! : [];
  return needed.find((scope) => !scopes.has(scope));
}

/** The routes of the MCP server. */
export const routes = [exchangeMcp];
