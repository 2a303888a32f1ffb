import { realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer } from '../support/api.ts';
import { freshFolder } from '../support/database.ts';
import { fixed, node, register, workflow } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { storesFor } from '../support/stores.ts';
import { until } from '../support/until.ts';

/**
 * Goal: the reference servers that most people try first work as they are published.
 * Method: the programs from npm, started by a real host; each tool is listed, and some are called by a workflow.
 */

const program = (name: string): string =>
  fileURLToPath(new URL(`../../node_modules/@modelcontextprotocol/${name}/dist/index.js`, import.meta.url));
const PLAIN = { command: process.execPath, env: {}, secrets: [], timeoutMs: 30_000 };

describe.each(storesFor('published MCP servers'))('published MCP servers, on %s', (kind) => {
  const folder = freshFolder();
  // The server compares paths after it has followed links.
  const path = realpathSync(folder.path);
  let host: TestHost;

  beforeAll(async () => {
    writeFileSync(join(path, 'note.txt'), 'Water the plants.');
    host = await startTestHost(kind, inject('postgresUrl'), {
      mcpServers: [
        { ...PLAIN, name: 'everything', args: [program('server-everything'), 'stdio'] },
        { ...PLAIN, name: 'files', args: [program('server-filesystem'), path] },
      ],
    });
  });
  afterAll(async () => {
    await host?.stop();
    folder.remove();
  });

  async function call(serverId: string, toolName: string, args: object): Promise<Answer['body']> {
    const api = host.as('editor');
    const inputs = { args: fixed(args) };
    const only = node('call', 'core.openwop.mcp.invoke-tool', { config: { serverId, toolName }, inputs });
    return api.ended(await api.run(await register(api, workflow([only]))));
  }

  it('are listed with their schemas', async () => {
    // A server that takes long to start is left out of the list until it has.
    const { tools } = await until(
      async () => (await host.as('editor').get('/v1/tools?source=mcp')).body,
      (listed) =>
        ['mcp:everything.echo', 'mcp:files.read_text_file'].every((wanted) =>
          listed.tools.some(({ toolId }: Answer['body']) => toolId === wanted),
        ),
    );
    const dialects = tools.map(({ inputSchema }: Answer['body']) => inputSchema.$schema);
    expect(dialects).toContain('http://json-schema.org/draft-07/schema#');
  });

  it.each([
    ['everything', 'echo', () => ({ message: 'hello' }), 'Echo: hello'],
    ['files', 'read_text_file', () => ({ path: join(path, 'note.txt') }), 'Water the plants.'],
  ])('are called by workflows: %s', async (serverId, tool, args, said) => {
    const ended = await call(serverId, tool, args());
    expect(ended, JSON.stringify(ended.error)).toMatchObject({ status: 'completed' });
    expect(ended.nodeStates.call.outputs.isError).toBe(false);
    expect(JSON.stringify(ended.nodeStates.call.outputs.result)).toContain(said);
  });

  it('keep their limits: what a tool refuses is an answer, and what its schema refuses never reaches it', async () => {
    const outside = await call('files', 'read_text_file', { path: '/etc/hostname' });
    expect(outside).toMatchObject({ status: 'completed', nodeStates: { call: { outputs: { isError: true } } } });
    const wrong = await call('everything', 'echo', { message: 7 });
    expect(wrong).toMatchObject({ status: 'failed', error: { code: 'tool_arguments_invalid' } });
  });
});
