import { readFile } from 'node:fs/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

// An ordinary MCP client: it needs only the URL of the host and a key.
const { CAPSTAN_URL = 'http://127.0.0.1:3210', CAPSTAN_KEY = '' } = process.env;
const authorization = `Bearer ${CAPSTAN_KEY}`;

// The metadata of the workflow offers it as a tool, so registering it is enough.
const definition = await readFile(new URL('shipping-quote.json', import.meta.url), 'utf8');
const registered = await fetch(`${CAPSTAN_URL}/v1/host/capstan/workflows`, {
  method: 'POST',
  headers: { authorization, 'content-type': 'application/json' },
  body: definition,
});
if (!registered.ok) throw new Error(`not registered: ${await registered.text()}`);

const client = new Client({ name: 'example', version: '1.0.0' });
const transport = new StreamableHTTPClientTransport(new URL('/v1/mcp', CAPSTAN_URL), {
  requestInit: { headers: { authorization } },
});
await client.connect(transport);

const { tools } = await client.listTools();
console.log(`tools: ${tools.map(({ name }) => name).join(', ')}`);

const light = await client.callTool(
  { name: 'shipping-quote', arguments: { weightKg: 4, country: 'DE' } },
  { onprogress: ({ message }) => console.log(`  ${message}`) },
);
console.log(`light: ${light.structuredContent.outputs.offer.text}`);

const heavy = await client.callTool({ name: 'shipping-quote', arguments: { weightKg: 80, country: 'FR' } });
const { runId, status } = heavy.structuredContent;
console.log(`heavy: ${status}`);

// A person approves it, in the inbox or with this request.
await fetch(`${CAPSTAN_URL}/v1/runs/${runId}/interrupts/look`, {
  method: 'POST',
  headers: { authorization, 'content-type': 'application/json' },
  body: JSON.stringify({ resumeValue: { action: 'accept' } }),
});
const later = await client.callTool({ name: 'runStatus', arguments: { runId } });
console.log(`later: ${later.structuredContent.outputs.offer.text}`);

await client.close();
