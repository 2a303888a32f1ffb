import { describe, expect, it } from 'vitest';
import { readMcpServers } from './settings.ts';

const ENVIRONMENT = { WIKI_TOKEN: 'wren-magnolia-4711' };
const read = (...servers: object[]) => readMcpServers(JSON.stringify(servers), ENVIRONMENT);

describe('what operators say of MCP servers', () => {
  it('is an address and the name of a credential, or a program and what it finds in its environment', () => {
    const { servers, problems } = read(
      { name: 'wiki', url: 'https://wiki.example/mcp', credentialRef: 'WIKI_TOKEN', tenants: ['alpha'] },
      { name: 'files', command: 'serve-files', args: ['--read-only'], env: { TOKEN: 'WIKI_TOKEN' }, timeoutMs: 500 },
    );
    expect(problems).toEqual([]);
    const secrets = [{ id: 'WIKI_TOKEN', value: 'wren-magnolia-4711' }];
    expect(servers).toEqual([
      expect.objectContaining({ token: 'wren-magnolia-4711', secrets, env: {}, timeoutMs: 30_000, tenants: ['alpha'] }),
      expect.objectContaining({ token: undefined, secrets, env: { TOKEN: 'wren-magnolia-4711' }, timeoutMs: 500 }),
    ]);
  });

  it.each([
    ['neither', { name: 'a' }, /either a url or a command/],
    ['both', { name: 'a', url: 'https://a.example', command: 'b' }, /either a url or a command/],
    ['a name that tools could not have', { name: 'A.b', command: 'b' }, /\[0\]\.name/],
    ['a credential that is not there', { name: 'a', url: 'https://a.example', credentialRef: 'NO' }, /credentialRef/],
    ['a variable that is not there', { name: 'a', command: 'b', env: { X: 'NO' } }, /\.env\.X/],
    ['arguments for an address', { name: 'a', url: 'https://a.example', args: ['x'] }, /args and env/],
    ['members that mean nothing', { name: 'a', command: 'b', password: 'hunter2' }, /\[0\]/],
  ])('has problems: %s', (_what, server, problem) => {
    const { servers, problems } = read(server);
    expect(servers).toEqual([]);
    expect(problems.join('\n')).toMatch(problem);
    expect(problems.join('\n')).not.toContain('hunter2');
  });

  it('names each server once, and is JSON', () => {
    expect(read({ name: 'a', command: 'b' }, { name: 'a', command: 'c' }).problems.join()).toMatch(/twice/);
    expect(readMcpServers('{', {}).problems.join()).toMatch(/JSON array/);
  });
});
