import type { McpMessage } from '../../../protocol/ai/mcp.ts';
import { door } from '../../capability.ts';
import type { Answer, Request } from '../../request.ts';

/** The parts of a request that the MCP endpoint reads. */
export type McpRequest = Pick<
  Request<unknown, unknown, McpMessage>,
  'caller' | 'body' | 'origin' | 'signal' | 'header'
>;

/** The MCP endpoint, for whoever serves it under another path. */
export interface McpEndpoint {
  exchange(request: McpRequest): Answer | Promise<Answer>;
}

/** The door to the MCP endpoint. */
export const McpEndpoint = door<McpEndpoint>()('mcpEndpoint');
