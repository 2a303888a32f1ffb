import { McpMessage } from '../../../protocol/ai/mcp.ts';
import type { McpEndpoint } from '../../ai/mcp-server/door.ts';
import { route } from '../../request.ts';

/** The MCP endpoint where suites look for it that find no address in discovery. */
export const mcpSeam = route<{ readonly mcpEndpoint: McpEndpoint }>()({
  operationId: 'seamMcp',
  summary: 'Test seam: the MCP endpoint under another path',
  method: 'POST',
  path: '/v1/host/sample/mcp',
  scope: 'manifest:read',
  body: McpMessage,
  replies: { 200: 'a JSON-RPC answer, or a stream of messages that ends with it', 202: 'nothing to answer' },
  refusals: [400, 403],
  handle: (request, { mcpEndpoint }) => mcpEndpoint.exchange(request),
});
