import type { ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../test/support/manual-clock.ts';
import { McpHttpServer } from '../../../test/support/mcp-http.ts';
import { until } from '../../../test/support/until.ts';
import { createEgress } from '../../system/egress.ts';
import { NodeFailure } from '../node-failure.ts';
import { ToolFailure } from '../tools.ts';
import { LeaseLost } from './ledger.ts';
import { McpConnection } from './mcp-connection.ts';
import type { McpServerAddress } from './mcp-server-address.ts';

const STDIO = fileURLToPath(new URL('../../../test/support/mcp-stdio.ts', import.meta.url));
const TOKEN = 'wren-magnolia-4711';

let clock: ManualClock;
let server: McpHttpServer;
let connection: McpConnection;

const UNAVAILABLE = { error: { code: 'upstream_unavailable', details: { service: 'test' }, retryable: true } };
const PLAIN = { name: 'test', args: [], env: {}, secrets: [], timeoutMs: 20_000 };

function connect(address: Partial<McpServerAddress>): McpConnection {
  const egress = createEgress({ clock, allowLoopback: false });
  return new McpConnection({ ...PLAIN, ...address }, { clock, egress, version: '1' });
}

const { NODE_COMPILE_CACHE = '' } = process.env;
const PROGRAM = { command: process.execPath, args: [STDIO], env: { NODE_COMPILE_CACHE } };

function call(name: string, args: Record<string, unknown> = {}, more: object = {}): Promise<unknown> {
  const { signal } = new AbortController();
  return connection.call({
    tenant: 'alpha',
    name,
    arguments: args,
    key: 'effect-1',
    timeoutMs: 20_000,
    signal,
    ...more,
  });
}

beforeEach(async () => {
  clock = new ManualClock();
  server = await McpHttpServer.open();
});
afterEach(async () => {
  await connection.stop();
  server.close();
});

describe.each(['an address', 'a program'])('a server that is %s', (kind) => {
  beforeEach(() => {
    connection = connect(kind === 'a program' ? PROGRAM : { url: server.url });
  });

  it('tells its tools, and answers with text or a value', async () => {
    expect((await connection.tools()).map(({ name }) => name)).toContain('echo');
    expect(await call('echo', { text: 'hello' })).toBe('hello');
    expect(await call('sum', { a: 2, b: 3 })).toEqual({ sum: 5 });
  });

  it('is not believed: what is too long, wrong or refused fails the call alone', async () => {
    await expect(call('refuse')).rejects.toThrow(new ToolFailure('out of stock'));
    await expect(call('huge')).rejects.toThrow(/more than \d+ characters/);
    await expect(call('malformed')).rejects.toThrow(ToolFailure);
    expect(await call('echo', { text: 'still there' })).toBe('still there');
  });
});

describe('an address', () => {
  it('gets the token that belongs to it, which it cannot pass on', async () => {
    connection = connect({ url: server.url, token: TOKEN, secrets: [{ id: 'WIKI_TOKEN', value: TOKEN }] });
    const answer = await call('leak', { text: TOKEN });
    expect(answer).toMatch(/^the token is .*REDACTED.* and \[REDACTED:WIKI_TOKEN\]$/);
    expect(new Set(server.headers.map(({ authorization }) => authorization))).toEqual(new Set([`Bearer ${TOKEN}`]));
  });

  const answers = (body: string) => (response: ServerResponse) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(body);

  it('that gives garbage is left alone for a while, for which a call waits and a list does not', async () => {
    connection = connect({ url: server.url });
    server.instead = answers('<html>');
    await expect(call('echo', { text: 'x' })).rejects.toMatchObject(UNAVAILABLE);
    await expect(connection.tools()).rejects.toMatchObject(UNAVAILABLE);
    server.instead = undefined;
    await expect(connection.tools()).rejects.toThrow('is not there');
    const asked = call('echo', { text: 'back' });
    clock.advance(60_000);
    expect(await asked).toBe('back');
  });

  it('that is away for longer than a call may take fails the call at once', async () => {
    connection = connect({ url: server.url, timeoutMs: 10_000 });
    server.instead = answers('<html>');
    // Each failure doubles the pause after it, from half a second on.
    for (let failures = 0; failures < 6; failures++) {
      clock.advance(60_000);
      await expect(call('echo', { text: 'x' })).rejects.toMatchObject(UNAVAILABLE);
    }
    await expect(call('echo', { text: 'x' })).rejects.toThrow('is not there');
  });

  it('that answers without end has answered', async () => {
    connection = connect({ url: server.url });
    await connection.tools();
    server.instead = answers(`"${'x'.repeat(5 * 1_024 * 1_024)}"`);
    await expect(call('echo', { text: 'x' })).rejects.toThrow(ToolFailure);
    server.instead = undefined;
    expect(await call('echo', { text: 'back' })).toBe('back');
  });
});

describe('a program', () => {
  const pid = async (): Promise<number> => Number(await call('process'));
  const isGone = async (id: number): Promise<boolean> => {
    try {
      process.kill(id, 0);
      return false;
    } catch {
      return true;
    }
  };

  it('finds nothing of the host in its environment but what it was given', async () => {
    process.env.SECRET_OF_THE_HOST = 'x';
    connection = connect({ ...PROGRAM, env: { GIVEN: 'y' } });
    const names = String(await call('environment')).split(' ');
    delete process.env.SECRET_OF_THE_HOST;
    expect(names).toContain('GIVEN');
    expect(names).not.toContain('SECRET_OF_THE_HOST');
  });

  it('that dies is started again, after a pause', async () => {
    connection = connect(PROGRAM);
    const first = await pid();
    await expect(call('crash')).rejects.toMatchObject(UNAVAILABLE);
    await until(() => isGone(first), Boolean);
    const next = pid();
    clock.advance(60_000);
    expect(await next).not.toBe(first);
  });

  it('that says nothing again and again is started anew', async () => {
    connection = connect({ ...PROGRAM, timeoutMs: 3_000 });
    const first = await pid();
    const unanswered = (): Promise<void> =>
      expect(call('silence', {}, { timeoutMs: 3_000 })).rejects.toMatchObject(UNAVAILABLE);
    await Promise.all([unanswered(), unanswered(), unanswered()]);
    await unanswered();
    await until(() => isGone(first), Boolean);
  });

  it('stays for others, however often an impatient caller gets no answer', async () => {
    connection = connect(PROGRAM);
    const first = await pid();
    const asked = call('silence', {}, { tenant: 'beta' });
    asked.catch(() => {});
    for (let count = 0; count < 6; count++) {
      await expect(call('silence', {}, { timeoutMs: 20 })).rejects.toMatchObject(UNAVAILABLE);
    }
    expect(await pid()).toBe(first);
    expect(Number(await call('process', {}, { tenant: 'beta' }))).toBe(first);
  });

  it("that dies with one tenant's call is there for another at once", async () => {
    connection = connect(PROGRAM);
    await expect(call('crash')).rejects.toMatchObject(UNAVAILABLE);
    await expect(call('crash', {}, { tenant: 'beta' })).rejects.toMatchObject(UNAVAILABLE);
    expect(Number(await call('process', {}, { tenant: 'gamma' }))).toBeGreaterThan(0);
  });

  it('stays when somebody loses interest in an answer', async () => {
    connection = connect(PROGRAM);
    const first = await pid();
    const controller = new AbortController();
    const asked = call('silence', {}, { signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(asked).rejects.toThrow(NodeFailure);
    expect(await pid()).toBe(first);
  });

  it('ends with the connection', async () => {
    connection = connect(PROGRAM);
    const id = await pid();
    await connection.stop();
    await until(() => isGone(id), Boolean);
  });

  it('that is ended while somebody waits has given no answer, not even a bad one', async () => {
    connection = connect(PROGRAM);
    await pid();
    const asked = call('silence');
    const failed = expect(asked).rejects.toThrow(LeaseLost);
    await connection.stop();
    await failed;
  });

  it('that is none is no reason to fall over', async () => {
    connection = connect({ command: '/nowhere/at-all' });
    await expect(call('echo', { text: 'x' })).rejects.toThrow('gave no answer');
  });
});
