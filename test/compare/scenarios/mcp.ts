import type { Scenario } from '../scenario.ts';

const ACCEPT = { accept: 'application/json, text/event-stream' };
const REQUESTS: readonly (readonly [string, object])[] = [
  ['initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'compare', version: '1' } }],
  ['tools/list', {}],
  ['prompts/list', {}],
  ['tools/call', { name: 'no-such-tool', arguments: {} }],
];

/** The first messages of an MCP client. */
export const mcp: Scenario = {
  name: 'mcp',
  modes: ['plain', 'conformance'],
  async play(stage) {
    for (const [id, [method, params]] of REQUESTS.entries()) {
      const { status, text } = await stage.as('editor').post('/v1/mcp', { jsonrpc: '2.0', id, method, params }, ACCEPT);
      const data = /^data: (.*)$/m.exec(text)?.[1] ?? text;
      stage.record(method, { status, body: data === '' ? undefined : JSON.parse(data) });
    }
  },
};
