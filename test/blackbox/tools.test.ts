import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { node, register, unique, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { McpHttpServer } from '../support/mcp-http.ts';
import { compileCache } from '../support/process.ts';
import { loadSchemas } from '../support/schemas.ts';
import { storesFor } from '../support/stores.ts';

/**
 * execution.md 6.8: what agents may be allowed.
 * Goal: authors see the names that allow-lists know, what each tool does, and nothing of others.
 * Method: real hosts; MCP servers on the network and as a program, one of them away and one of another tenant.
 */

type Body = Answer['body'];

const STDIO = fileURLToPath(new URL('../support/mcp-stdio.ts', import.meta.url));
const PLAIN = { args: [], env: {}, secrets: [], timeoutMs: 20_000 };
const HIDDEN = 'plover-juniper-2208';
const schemas = loadSchemas();

const toolOf = (workflowId: string): string => `capstan.workflow:${workflowId}`;
const at = (toolId: string): string => `/v1/tools/${encodeURIComponent(toolId)}`;

describe.each(storesFor('the catalogue of tools'))('the catalogue of tools, on %s', (kind) => {
  let server: McpHttpServer;
  let host: TestHost;

  beforeAll(async () => {
    server = await McpHttpServer.open();
    host = await startTestHost(kind, inject('postgresUrl'), {
      mcpServers: [
        { ...PLAIN, name: 'web', url: server.url },
        { ...PLAIN, name: 'local', command: process.execPath, args: [STDIO], env: compileCache() },
        { ...PLAIN, name: 'theirs', url: server.url, tenants: ['beta'] },
        { ...PLAIN, name: 'narrow', url: server.url, tools: ['echo'] },
        { ...PLAIN, name: 'gone', url: 'http://127.0.0.1:1/mcp' },
      ],
    });
  });
  afterAll(async () => {
    await host?.stop();
    server.close();
  });

  const listed = async (api: Api, query = ''): Promise<Body[]> => {
    const { status, body, text } = await api.get(`/v1/tools${query}`);
    expect(status, text).toBe(200);
    return body.tools;
  };
  const idsOf = async (api: Api, query = ''): Promise<string[]> =>
    (await listed(api, query)).map(({ toolId }) => toolId);

  it('is advertised with what is in it', async () => {
    const { body } = await host.anonymous.get('/.well-known/openwop');
    expect(body.toolCatalog).toEqual({ supported: true, sources: ['node-pack', 'workflow', 'host-extension', 'mcp'] });
    const kinds = (await listed(host.as('viewer'))).map(({ source }) => source);
    expect(new Set(kinds)).toEqual(new Set(body.toolCatalog.sources));
  });

  it('says of every tool what it takes and what it does', async () => {
    const api = host.as('editor');
    const variables = [
      { name: 'city', type: 'string' as const, required: true },
      { name: 'token', type: 'string' as const, sensitive: true, defaultValue: HIDDEN },
    ];
    const workflowId = await register(api, workflow([node('a')], [], { name: 'Weather', description: '', variables }));
    const tools = await listed(api);
    for (const tool of tools) expect(schemas.toolDescriptor(tool), tool.toolId).toEqual([]);
    const byId = new Map(tools.map((tool) => [tool.toolId, tool]));
    expect(byId.size).toBe(tools.length);
    expect([...byId.keys()]).toEqual([...byId.keys()].sort());
    expect(byId.get(toolOf(workflowId))).toEqual({
      toolId: toolOf(workflowId),
      source: 'workflow',
      title: 'Weather',
      inputSchema: {
        type: 'object',
        properties: { city: { type: 'string' }, token: { type: 'string' } },
        required: ['city'],
        additionalProperties: false,
      },
      safetyTier: 'write',
      egress: 'host-mediated',
      replayPolicy: 'non-deterministic',
    });
    expect(JSON.stringify(tools)).not.toContain(HIDDEN);
    expect(byId.get('mcp:web.echo')).toEqual({
      toolId: 'mcp:web.echo',
      source: 'mcp',
      description: 'The tool echo',
      inputSchema: expect.objectContaining({ required: ['text'] }),
      safetyTier: 'write',
      egress: 'host-mediated',
      replayPolicy: 'non-deterministic',
    });
    const brief = (toolId: string) => {
      const { source, safetyTier, egress, replayPolicy } = byId.get(toolId);
      return [source, safetyTier, egress, replayPolicy].join(' ');
    };
    expect(brief('mcp:local.echo')).toBe('mcp write host-owned non-deterministic');
    expect(brief('capstan.http:get')).toBe('host-extension read host-mediated non-deterministic');
    expect(brief('capstan.kv:get')).toBe('host-extension read none non-deterministic');
    expect(brief('capstan.kv:set')).toBe('host-extension write none idempotent');
    expect(brief('memory:recall')).toBe('host-extension read none non-deterministic');
    expect(brief('memory:remember')).toBe('host-extension write none idempotent');
  });

  it('has each tool under its id, however that is written', async () => {
    const api = host.as('viewer');
    for (const tool of await listed(api)) expect((await api.get(at(tool.toolId))).body).toEqual(tool);
    expect((await api.get('/v1/tools/capstan.kv:get')).body.toolId).toBe('capstan.kv:get');
    for (const nothing of [
      'nothing',
      'capstan.kv:drop',
      'nowhere:get',
      toolOf('none'),
      'mcp:web.none',
      'mcp:gone.echo',
    ]) {
      expectRefusal(await api.get(at(nothing)), 404, 'not_found');
    }
  });

  it('can be looked at by source, and in two views', async () => {
    const api = host.as('editor');
    expect(await idsOf(api, '?source=host-extension')).toEqual([
      'capstan.http:get',
      'capstan.kv:get',
      'capstan.kv:set',
      'memory:recall',
      'memory:remember',
    ]);
    for (const id of await idsOf(api, '?source=mcp')) expect(id).toMatch(/^mcp:(web|local|narrow)\./);
    expect(await listed(api, '?source=connector')).toEqual([]);
    expectRefusal(await api.get('/v1/tools?source=elsewhere'), 400, 'validation_error');
    expectRefusal(await api.get('/v1/tools?view=other'), 400, 'validation_error');
    expect(await listed(api, '?view=standard')).toEqual(await listed(api));
    const tools = await listed(api, '?view=compact');
    expect(tools.map(({ toolId }) => toolId)).toEqual(await idsOf(api));
    const kept = ['description', 'inputSchema', 'safetyTier', 'source', 'title', 'toolId'];
    for (const tool of tools) {
      expect(schemas.toolDescriptor(tool), tool.toolId).toEqual([]);
      expect(kept).toEqual(expect.arrayContaining(Object.keys(tool)));
      expect(tool.inputSchema.type).toBe('object');
      expect(JSON.stringify(tool.inputSchema)).not.toMatch(/"(allOf|anyOf|oneOf|not|\$ref|\$defs)":/);
    }
  });

  it('shows nobody what is not theirs', async () => {
    const mine = await register(host.as('editor'), workflow([node('a')]));
    const norths = await register(host.as('workspace'), workflow([node('a')]));
    const tests = await register(host.as('test'), workflow([node('a')]));
    const sees = async (who: 'editor' | 'workspace' | 'other' | 'test') => {
      const ids = await idsOf(host.as(who));
      const shown = await Promise.all(
        [mine, norths, tests].map(async (id) => (await host.as(who).get(at(toolOf(id)))).status === 200),
      );
      expect([mine, norths, tests].map((id) => ids.includes(toolOf(id)))).toEqual(shown);
      return shown;
    };
    expect(await sees('editor')).toEqual([true, false, false]);
    expect(await sees('workspace')).toEqual([true, true, false]);
    expect(await sees('test')).toEqual([false, false, true]);
    expect(await sees('other')).toEqual([false, false, false]);
    expect(await idsOf(host.as('other'), '?source=mcp')).toContain('mcp:theirs.echo');
    expect(await idsOf(host.as('editor'), '?source=mcp')).not.toContain('mcp:theirs.echo');
    expectRefusal(await host.as('editor').get(at('mcp:theirs.echo')), 404, 'not_found');
    const narrow = (await idsOf(host.as('editor'))).filter((id) => id.startsWith('mcp:narrow.'));
    expect(narrow).toEqual(['mcp:narrow.echo']);
  });

  it('shows the workflow that an agent would get', async () => {
    const id = unique('wf');
    await register(host.as('editor'), workflow([node('a')], [], { id, name: "The tenant's" }));
    await register(host.as('workspace'), workflow([node('a')], [], { id, name: "The workspace's" }));
    const titles = async (who: 'editor' | 'workspace') =>
      (await listed(host.as(who))).filter(({ toolId }) => toolId === toolOf(id)).map(({ title }) => title);
    expect(await titles('editor')).toEqual(["The tenant's"]);
    expect(await titles('workspace')).toEqual(["The workspace's"]);
    expect((await host.as('editor').request('DELETE', `${WORKFLOWS}/${id}`)).status).toBe(204);
    expect(await titles('editor')).toEqual([]);
    expect(await titles('workspace')).toEqual(["The workspace's"]);
  });

  it('has many workflows, more than are looked at in one go', async () => {
    const api = host.as('other');
    const ids = await Promise.all(Array.from({ length: 120 }, () => register(api, workflow([node('a')]))));
    expect(await idsOf(api, '?source=workflow')).toEqual(expect.arrayContaining(ids.map(toolOf)));
  });

  it('takes a key, and the scope', async () => {
    for (const path of ['/v1/tools', at('capstan.kv:get')]) {
      expectRefusal(await host.anonymous.get(path), 401, 'unauthenticated');
      expectRefusal(await host.as('nothing').get(path), 403, 'forbidden');
    }
  });
});
