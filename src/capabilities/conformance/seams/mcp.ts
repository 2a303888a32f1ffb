import { McpMessage } from '../../../protocol/ai/mcp.ts';
import { AnyObject } from '../../../protocol/format/schema.ts';
import type { McpEndpoint, McpRequest } from '../../ai/mcp-server/door.ts';
import { type Answer, reply, route } from '../../request.ts';

const BOTH = 'application/json, text/event-stream';

/** The MCP endpoint where suites look for it that find no address in discovery. They take JSON alone. */
export const mcpSeam = route<{ readonly mcpEndpoint: McpEndpoint }>()({
  operationId: 'seamMcp',
  summary: 'Test seam: the MCP endpoint under another path, with JSON answers',
  method: 'POST',
  path: '/v1/host/sample/mcp',
  scope: 'manifest:read',
  body: McpMessage,
  replies: { 200: AnyObject, 202: 'nothing' },
  refusals: [400, 403],
  handle: async (request, { mcpEndpoint }) =>
    asJson(await mcpEndpoint.exchange(acceptingBoth(request)), request.signal),
});

function acceptingBoth({ caller, body, origin, signal, header }: McpRequest): McpRequest {
  return { caller, body, origin, signal, header: (name) => (name === 'accept' ? BOTH : header(name)) };
}

/** The last message of a stream is the answer. */
async function asJson(answer: Answer, signal: AbortSignal): Promise<Answer> {
  if (!('stream' in answer) || !answer.stream) return answer;
  let text = '';
  for await (const piece of answer.stream(signal)) text += piece;
  const messages = [...text.matchAll(/^data: ?(.+)$/gm)].map(([, data]) => JSON.parse(data!) as unknown);
  return reply(answer.status, messages.at(-1));
}
