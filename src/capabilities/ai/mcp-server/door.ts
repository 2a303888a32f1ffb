import { door } from '../../capability.ts';
import type { Answer, Request } from '../../request.ts';

/** The MCP endpoint, for whoever serves it under another path. */
export interface McpEndpoint {
  exchange(request: Request): Answer | Promise<Answer>;
}

/** The door to the MCP endpoint. */
export const McpEndpoint = door<McpEndpoint>()('mcpEndpoint');
