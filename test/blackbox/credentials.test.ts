import type { IncomingHttpHeaders } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import type { Api } from '../support/api.ts';
import { everythingAtRest } from '../support/at-rest.ts';
import { fixed, node, register, WORKFLOWS, workflow } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { Receiver } from '../support/receiver.ts';
import { STORES } from '../support/stores.ts';

/** Goal: a workflow can use a secret of the operator, and nobody ever sees it but the one it is for. */

const SECRET = 'Wanderfalke-7f3a9';

describe.each(STORES)('a credential, on %s', (kind) => {
  let host: TestHost;
  let audience: Receiver;
  let stranger: Receiver;
  beforeAll(async () => {
    [audience, stranger] = [await Receiver.open(), await Receiver.open()];
    const credentials = [
      { name: 'billing', secret: SECRET, origins: [new URL(audience.url).origin], tenants: ['alpha'] },
      { name: 'everybody', secret: `${SECRET}-all`, origins: [new URL(audience.url).origin], tenants: ['*'] },
    ];
    host = await startTestHost(kind, inject('postgresUrl'), { credentials });
    for (const receiver of [audience, stranger]) receiver.say(repeating);
  });
  afterAll(async () => {
    await host?.stop();
    await audience?.close();
    await stranger?.close();
  });
  beforeEach(() => {
    for (const { arrivals } of [audience, stranger]) arrivals.splice(0);
  });

  /** Answers with what it was sent, as careless services do. */
  const repeating: Parameters<Receiver['say']>[0] = ({ headers }, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'x-request-id': headers.authorization ?? '' });
    response.end(JSON.stringify({ headers, url: `/?token=${encodeURIComponent(String(headers.authorization))}` }));
    return undefined;
  };

  async function ask(api: Api, url: string, headers: object) {
    const fetching = node('ask', 'core.openwop.http.fetch', {
      config: { url, method: 'POST', headers },
      inputs: { body: fixed({}) },
    });
    const runId = await api.run(await register(api, workflow([fetching])));
    return { runId, run: await api.ended(runId) };
  }

  const bearer = (credentialRef: string) => ({ Authorization: { credentialRef, prefix: 'Bearer ' } });

  it('is sent to whom it is for, and is nowhere else: not in the answer, the log, an export or the store', async () => {
    const editor = host.as('editor');
    const { runId, run } = await ask(editor, audience.url, { ...bearer('billing'), 'X-Plain': 'shown' });
    expect(run.status).toBe('completed');
    const received = audience.arrivals.map(({ headers }: { headers: IncomingHttpHeaders }) => headers);
    expect(received).toMatchObject([{ authorization: `Bearer ${SECRET}`, 'x-plain': 'shown' }]);
    expect(run.nodeStates.ask.outputs.body.headers).toMatchObject({ 'x-plain': 'shown' });
    const shown = [
      JSON.stringify(run),
      (await editor.get(`/v1/runs/${runId}/debug-bundle`)).text,
      (await editor.get(`/v1/runs/${runId}/events/poll?timeout=1`)).text,
      await everythingAtRest(host.config.dataFolder, host.config.databaseUrl),
    ];
    for (const text of shown) expect(text).not.toContain(SECRET);
  });

  it('is not for another tenant, unless it is for all', async () => {
    const { run } = await ask(host.as('other'), audience.url, bearer('billing'));
    expect(run).toMatchObject({ status: 'failed', error: { code: 'credential_required' } });
    const open = await ask(host.as('other'), audience.url, bearer('everybody'));
    expect(open.run.status).toBe('completed');
    expect(audience.arrivals.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${SECRET}-all`]);
  });

  it("is for the tenant's test keys too", async () => {
    for (const name of ['billing', 'everybody']) {
      expect((await ask(host.as('test'), audience.url, bearer(name))).run.status).toBe('completed');
    }
    expect(audience.arrivals.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${SECRET}`,
      `Bearer ${SECRET}-all`,
    ]);
  });

  it('is sent nowhere else, whatever a definition says, and follows no redirect', async () => {
    const { run } = await ask(host.as('editor'), stranger.url, bearer('billing'));
    expect(run).toMatchObject({ status: 'failed', error: { code: 'credential_forbidden' } });
    audience.say((_arrival, response) => {
      response.writeHead(307, { location: stranger.url }).end();
      return undefined;
    });
    const led = await ask(host.as('editor'), audience.url, bearer('billing'));
    expect(led.run.nodeStates.ask.outputs).toMatchObject({ status: 307 });
    audience.say(repeating);
    expect(stranger.arrivals).toEqual([]);
  });

  it('is refused with the definition where its header is none', async () => {
    const of = (headers: object) =>
      workflow([node('ask', 'core.openwop.http.fetch', { config: { url: audience.url, headers } })]);
    for (const headers of [
      { Authorization: { credentialRef: 'billing', prefix: 'a\r\nX-More: ' } },
      { Authorization: { credentialRef: 'billing', suffix: 'x' } },
      { Host: { credentialRef: 'billing' } },
    ]) {
      expect((await host.as('editor').post(WORKFLOWS, of(headers))).status).toBe(422);
    }
  });
});
