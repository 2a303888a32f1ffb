import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/protocol/format/json.ts';
import { type Answer, Api } from '../support/api.ts';
import { everythingAtRest } from '../support/at-rest.ts';
import { expression, node, unique, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import {
  APP_MENTION,
  fromGitHub,
  fromSlack,
  fromStripe,
  ISSUE_OPENED,
  PAYMENT_SUCCEEDED,
  type Sent,
  send,
} from '../support/senders.ts';
import { onEachStore } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** Runs that senders of requests start: each once, and by nobody else. */

type Body = Answer['body'];

const TRIGGERS = '/v1/host/capstan/triggers';
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const ISSUE_INPUTS = { number: 'body.issue.number', title: 'body.issue.title', event: "headers['x-github-event']" };

const webhook = (config: object, more: object = {}) => ({ id: 'hook', type: 'webhook', config, ...more });

/** A workflow that gives its inputs back. */
function hooked(config: object, more: object = {}, id = unique('wf')) {
  const echo = node('echo', 'core.identity', { inputs: { given: expression('inputs') } });
  return { ...workflow([echo]), id, triggers: [webhook(config)], ...more };
}

const triggersOf = async (api: Api, workflowId: string): Promise<Body[]> =>
  (await api.get(`${TRIGGERS}?workflowId=${workflowId}`)).body.items;

/** Registers a workflow with a trigger, sets its secret, and gives the trigger. */
async function ready(api: Api, config: { scheme: string } & JsonObject, more: object = {}): Promise<Body> {
  const definition = hooked(config, more);
  const answer = await api.post(WORKFLOWS, definition);
  expect(answer.status, answer.text).toBe(201);
  const [trigger] = await triggersOf(api, definition.id);
  if (config.scheme === 'path') return trigger;
  expect(trigger.hasSecret).toBe(false);
  const rotated = await api.post(`${TRIGGERS}/${trigger.id}:rotate`, { secret: SECRET });
  expect(rotated.body).toMatchObject({ id: trigger.id, url: trigger.url, hasSecret: true });
  expect(rotated.body.secret, 'only what the host made is shown').toBeUndefined();
  return rotated.body;
}

const runsOf = async (api: Api, { id }: Body): Promise<Body[]> =>
  (await api.get(`/v1/host/capstan/runs?tag=trigger:${id}`)).body.items;

let host: TestHost;
const editor = (): Api => host.as('editor');
beforeAll(async () => {
  host = await startTestHost('sqlite', undefined);
});
afterAll(() => host?.stop());

/** The outputs of the run that an answer names, once it has ended. */
async function givenTo({ status, body, text }: Answer): Promise<Body> {
  expect(status, text).toBe(202);
  expect(body.statusUrl).toBe(`${host.url}/v1/runs/${body.runId}`);
  const { nodeStates } = await editor().ended(body.runId);
  return nodeStates.echo.outputs.given;
}

describe('a request', () => {
  it('of GitHub starts a run with what it says, in the name of the trigger', async () => {
    const trigger = await ready(editor(), { scheme: 'github', inputs: ISSUE_INPUTS });
    const answer = await send(trigger.url, fromGitHub(SECRET, ISSUE_OPENED));
    expect(await givenTo(answer)).toEqual({ number: 1347, title: 'Found a bug', event: 'issues' });
    const { body: run } = await editor().get(`/v1/runs/${answer.body.runId}`);
    const principal = `trigger:${trigger.workflowId}/hook`;
    expect(run).toMatchObject({
      owner: { tenant: 'alpha', principal },
      tags: [`trigger:${trigger.id}`],
      metadata: { trigger: { triggerId: trigger.id, deliveryId: '72d3162e-cc78-11e3-81ab-4c9367dc0958' } },
    });
    const { body: log } = await host.as('owner').get(`/v1/host/capstan/audit?actor=${encodeURIComponent(principal)}`);
    expect(log.items).toMatchObject([{ action: 'run.create', target: answer.body.runId }]);
  });

  it('of GitHub may be a form with the JSON in a field', async () => {
    const trigger = await ready(editor(), { scheme: 'github', inputs: ISSUE_INPUTS });
    const body = new URLSearchParams({ payload: JSON.stringify(ISSUE_OPENED) }).toString();
    const { headers } = fromGitHub(SECRET, ISSUE_OPENED);
    const signature = `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`;
    const form = { 'content-type': 'application/x-www-form-urlencoded', 'x-hub-signature-256': signature };
    expect(await givenTo(await send(trigger.url, { body, headers: { ...headers, ...form } }))).toMatchObject({
      number: 1347,
    });
  });

  it('of Stripe starts a run, and its retry does not start another', async () => {
    const inputs = { amount: 'body.data.object.amount', payment: 'body.data.object.id' };
    const trigger = await ready(editor(), { scheme: 'stripe', inputs });
    const first = await send(trigger.url, fromStripe(SECRET, PAYMENT_SUCCEEDED));
    expect(await givenTo(first)).toEqual({ amount: 2000, payment: 'pi_3MtwBwLkdIwHu7ix28a3tqPa' });
    const again = await send(trigger.url, fromStripe(SECRET, PAYMENT_SUCCEEDED));
    expect(again.body).toMatchObject({ runId: first.body.runId, duplicate: true });
    const other = await send(trigger.url, fromStripe(SECRET, { ...PAYMENT_SUCCEEDED, id: 'evt_2' }));
    expect(other.body.runId).not.toBe(first.body.runId);
    expect(await runsOf(editor(), trigger)).toHaveLength(2);
  });

  it('of Slack is answered with its challenge, or starts a run: by an event, or by a command in a form', async () => {
    const trigger = await ready(editor(), { scheme: 'slack', inputs: { text: 'body.?event.text.or(body.?text)' } });
    const challenge = {
      type: 'url_verification',
      token: 'x',
      challenge: '3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P',
    };
    const verified = await send(trigger.url, fromSlack(SECRET, challenge));
    expect([verified.status, verified.body]).toEqual([200, { challenge: challenge.challenge }]);
    expect(await givenTo(await send(trigger.url, fromSlack(SECRET, APP_MENTION)))).toEqual({
      text: 'What is the hour of the pearl?',
    });
    const command = new URLSearchParams({ command: '/deploy', text: 'blue & green', user_id: 'U2147483697' });
    expect(await givenTo(await send(trigger.url, fromSlack(SECRET, command)))).toEqual({ text: 'blue & green' });
    expect(await runsOf(editor(), trigger)).toHaveLength(2);
  });

  it('of another sender is signed as the trigger says', async () => {
    const hmac = {
      header: 'X-Acme-Signature',
      timestampHeader: 'X-Acme-Time',
      algorithm: 'sha512',
      encoding: 'base64',
    };
    const trigger = await ready(editor(), { scheme: 'hmac', hmac, deliveryId: "headers['x-acme-id']" });
    const at = Math.floor(Date.now() / 1_000);
    const body = '{"order":7}';
    const signed = createHmac('sha512', SECRET).update(`${at}.${body}`).digest('base64');
    const headers = {
      'content-type': 'application/vnd.acme+json',
      'x-acme-time': `${at}`,
      'x-acme-signature': signed,
      'x-acme-id': '17',
    };
    const first = await send(trigger.url, { body, headers });
    expect(await givenTo(first), 'without inputs the run gets the body').toEqual({ body: { order: 7 } });
    expect((await send(trigger.url, { body, headers })).body).toMatchObject({
      runId: first.body.runId,
      duplicate: true,
    });
  });

  it('to a secret URL needs no signature, and may be of any type', async () => {
    const inputs = { body: 'body', test: 'query.test', agent: "headers['user-agent']" };
    const trigger = await ready(editor(), { scheme: 'path', inputs });
    const headers = { 'content-type': 'text/plain', 'user-agent': 'cron/1', authorization: 'Bearer nobody' };
    const answer = await send(`${trigger.url}?test=1`, { body: 'it is time', headers });
    expect(await givenTo(answer)).toEqual({ body: 'it is time', test: '1', agent: 'cron/1' });
    expect((await send(trigger.url, { body: 'x', headers })).body.details, 'a missing member').toEqual({
      field: 'inputs.test',
    });
  });

  it('shows no credential to expressions', async () => {
    const inputs = { names: "['authorization', 'cookie', 'x-hub-signature-256'].filter(name, name in headers)" };
    const trigger = await ready(editor(), { scheme: 'github', inputs });
    const { body, headers } = fromGitHub(SECRET, ISSUE_OPENED);
    const more = { authorization: 'Basic abc', cookie: 'a=b' };
    expect(await givenTo(await send(trigger.url, { body, headers: { ...headers, ...more } }))).toEqual({ names: [] });
  });

  it('that the filter does not let pass is ignored', async () => {
    const filter = "headers['x-github-event'] == 'issues' && body.action == 'opened'";
    const trigger = await ready(editor(), { scheme: 'github', filter });
    for (const sent of [
      fromGitHub(SECRET, { ...ISSUE_OPENED, action: 'closed' }),
      fromGitHub(SECRET, { zen: 'Keep it logically awesome.' }, { event: 'ping' }),
      fromGitHub(SECRET, { no: 'action' }),
    ]) {
      const { status, body } = await send(trigger.url, sent);
      expect([status, body]).toEqual([200, { ignored: true }]);
    }
    await givenTo(await send(trigger.url, fromGitHub(SECRET, ISSUE_OPENED)));
    expect(await runsOf(editor(), trigger)).toHaveLength(1);
  });

  it('may wait for the result, for a while', async () => {
    const inputs = { number: 'body.number' };
    const trigger = await ready(editor(), {
      scheme: 'path',
      respond: 'result',
      inputs,
      deliveryId: 'string(body.number)',
    });
    const headers = { 'content-type': 'application/json' };
    const answer = await send(trigger.url, { body: '{"number":7}', headers });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toMatchObject({ status: 'completed', outputs: { echo: { given: { number: 7 } } } });
    expect((await send(trigger.url, { body: '{"number":7}', headers })).body).toMatchObject({ duplicate: true });
    const slow = hooked(
      { scheme: 'path', respond: 'result', waitSeconds: 1 },
      { nodes: [node('wait', 'core.delay', { config: { delayMs: 60_000 } })] },
    );
    expect((await editor().post(WORKFLOWS, slow)).status).toBe(201);
    const [other] = await triggersOf(editor(), slow.id);
    const unfinished = await send(other.url, { body: '{}', headers });
    expect([unfinished.status, unfinished.body.outputs]).toEqual([202, undefined]);
    await editor().post(`/v1/runs/${unfinished.body.runId}/cancel`, {});
  });

  it('is refused if the workflow does not take what it brings', async () => {
    const variables = [{ name: 'number', type: 'string', required: true }];
    const trigger = await ready(editor(), { scheme: 'github', inputs: { number: 'body.issue.number' } }, { variables });
    const answer = await send(trigger.url, fromGitHub(SECRET, ISSUE_OPENED));
    expectRefusal(answer, 422, 'validation_error');
    expect(answer.body.details.field).toBe('inputs.number');
  });
});

describe('a hostile sender', () => {
  const unknown = (): string => `${host.url}/v1/host/capstan/hooks/${'x'.repeat(43)}`;

  it('learns nothing: a wrong signature, an old one and an unknown URL get the same answer', async () => {
    const github = await ready(editor(), { scheme: 'github' });
    const stripe = await ready(editor(), { scheme: 'stripe' });
    const slack = await ready(editor(), { scheme: 'slack' });
    const old = Math.floor(Date.now() / 1_000) - 301;
    const right = fromGitHub(SECRET, ISSUE_OPENED);
    const { 'x-hub-signature-256': _none, ...unsigned } = right.headers;
    const tries: [string, Sent][] = [
      [unknown(), right],
      [github.url, fromGitHub('another secret', ISSUE_OPENED)],
      [github.url, { ...right, body: `${right.body} ` }],
      [github.url, { ...right, headers: unsigned }],
      [github.url, { ...right, headers: { ...right.headers, 'x-hub-signature-256': 'sha256=' } }],
      [`${github.url}x`, right],
      [stripe.url, fromStripe(SECRET, PAYMENT_SUCCEEDED, old)],
      [stripe.url, fromStripe(SECRET, PAYMENT_SUCCEEDED, old + 900)],
      [slack.url, fromSlack(SECRET, APP_MENTION, old)],
      [slack.url, fromSlack('another secret', { type: 'url_verification', challenge: 'x' })],
      [slack.url, right],
      [stripe.url, { ...right, body: 'not JSON' }],
    ];
    const answers = await Promise.all(tries.map(([url, sent]) => send(url, sent)));
    for (const answer of answers) expectRefusal(answer, 404, 'not_found');
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(await runsOf(editor(), github)).toEqual([]);
    expect((await fetch(github.url)).status, 'another method').toBe((await fetch(unknown())).status);
  });

  it('is refused by the size of a body, whether the URL exists or not', async () => {
    const { url } = await ready(editor(), { scheme: 'path' });
    const body = 'x'.repeat(host.config.maxRequestBodyBytes + 1);
    for (const at of [url, unknown()]) {
      expectRefusal(await send(at, { body, headers: { 'content-type': 'text/plain' } }), 413, 'payload_too_large');
    }
  });

  it('that has the secret and sends nonsense starts nothing', async () => {
    const trigger = await ready(editor(), { scheme: 'github' });
    const signed = (body: string): Sent => {
      const { headers } = fromGitHub(SECRET, {});
      const signature = `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`;
      return { body, headers: { ...headers, 'x-hub-signature-256': signature } };
    };
    for (const body of ['{"open":', '['.repeat(100) + ']'.repeat(100), '{"__proto__":{"admin":true}}']) {
      expectRefusal(await send(trigger.url, signed(body)), 400, 'validation_error');
    }
    expect(await runsOf(editor(), trigger)).toEqual([]);
  });

  it('is held to a rate, each trigger to its own', async () => {
    const limited = await startTestHost('sqlite', undefined, { triggerPerSecond: 2 });
    try {
      const api = limited.as('editor');
      const [one, other] = [await ready(api, { scheme: 'path' }), await ready(api, { scheme: 'path' })];
      const sent = { body: '{}', headers: { 'content-type': 'application/json' } };
      const answers = await Promise.all(Array.from({ length: 12 }, () => send(one.url, sent)));
      const refused = answers.filter(({ status }) => status === 429);
      expect(refused.length).toBeGreaterThan(0);
      expect(refused[0]!.headers.get('retry-after')).toBe('1');
      expect((await send(other.url, sent)).status).toBe(202);
    } finally {
      await limited.stop();
    }
  });
});

describe('a trigger', () => {
  it('refuses everything until its secret is set, and while it is switched off', async () => {
    const definition = hooked({ scheme: 'github' });
    await editor().post(WORKFLOWS, definition);
    const [{ id, url }] = await triggersOf(editor(), definition.id);
    expectRefusal(await send(url, fromGitHub('', ISSUE_OPENED)), 404, 'not_found');
    const { body } = await editor().post(`${TRIGGERS}/${id}:rotate`);
    expect(body.secret).toMatch(/^[0-9a-f]{64}$/);
    expect((await send(url, fromGitHub(body.secret, ISSUE_OPENED))).status).toBe(202);
    await editor().post(WORKFLOWS, { ...definition, triggers: [webhook({ scheme: 'github' }, { enabled: false })] });
    expect(await triggersOf(editor(), definition.id)).toMatchObject([{ id, url, enabled: false, hasSecret: true }]);
    expectRefusal(await send(url, fromGitHub(body.secret, ISSUE_OPENED)), 404, 'not_found');
    await editor().post(WORKFLOWS, { ...definition, status: 'archived' });
    expectRefusal(await send(url, fromGitHub(body.secret, ISSUE_OPENED)), 404, 'not_found');
  });

  it('keeps its URL and its secret in new versions, and its runs get the newest', async () => {
    const trigger = await ready(editor(), { scheme: 'github' });
    const next = hooked(
      { scheme: 'github', inputs: { title: 'body.issue.title' } },
      { name: 'Two' },
      trigger.workflowId,
    );
    await editor().post(WORKFLOWS, next);
    const [{ url }] = await triggersOf(editor(), trigger.workflowId);
    expect(url).toBe(trigger.url);
    const answer = await send(url, fromGitHub(SECRET, ISSUE_OPENED));
    expect(await givenTo(answer)).toEqual({ title: 'Found a bug' });
    expect((await editor().get(`/v1/runs/${answer.body.runId}`)).body.workflowVersion).toBe(2);
    const stripe = hooked({ scheme: 'stripe' }, {}, trigger.workflowId);
    await editor().post(WORKFLOWS, stripe);
    expect(await triggersOf(editor(), trigger.workflowId), 'the secret was that of GitHub').toMatchObject([
      { url, hasSecret: false },
    ]);
    await editor().request('DELETE', `${WORKFLOWS}/${trigger.workflowId}`);
    expect(await triggersOf(editor(), trigger.workflowId)).toEqual([]);
    expectRefusal(await send(url, fromGitHub(SECRET, ISSUE_OPENED)), 404, 'not_found');
  });

  it('gets another secret, or another URL, at once or after a time', async () => {
    const { id, url } = await ready(editor(), { scheme: 'github' });
    const rotate = (body: object): Promise<Answer> => editor().post(`${TRIGGERS}/${id}:rotate`, body);
    const works = async (at: string, secret: string): Promise<boolean> =>
      (await send(at, fromGitHub(secret, ISSUE_OPENED))).status === 202;
    const { body: second } = await rotate({ graceSeconds: 3_600 });
    expect([await works(url, SECRET), await works(url, second.secret)]).toEqual([true, true]);
    const { body: third } = await rotate({});
    expect([await works(url, SECRET), await works(url, second.secret)]).toEqual([false, false]);
    const { body: moved } = await rotate({ url: true, graceSeconds: 3_600 });
    expect([await works(url, third.secret), await works(moved.url, third.secret)]).toEqual([true, true]);
    const { body: last } = await rotate({ url: true });
    expect(await Promise.all([url, moved.url, last.url].map((at) => works(at, third.secret)))).toEqual([
      false,
      false,
      true,
    ]);
    expectRefusal(await rotate({ url: true, secret: 'both of them' }), 400, 'validation_error');
    const { body: log } = await host.as('owner').get('/v1/host/capstan/audit?action=trigger.rotate&limit=1');
    expect(log.items).toMatchObject([{ target: id, actor: 'editor-of-alpha' }]);
    expect(JSON.stringify(log), 'no secret').not.toContain(third.secret);
  });

  it('is stored without its URL and its secret in the clear', async () => {
    const own = await startTestHost('sqlite', undefined);
    const { url, id } = await ready(own.as('editor'), { scheme: 'github' });
    const { body: rotated } = await own.as('editor').post(`${TRIGGERS}/${id}:rotate`, {}, { 'idempotency-key': 'x' });
    expect((await send(url, fromGitHub(rotated.secret, ISSUE_OPENED))).status).toBe(202);
    const kept = await everythingAtRest(own.config.dataFolder, undefined);
    await own.stop();
    expect(kept).toContain(id);
    for (const secret of [SECRET, rotated.secret, new URL(url).pathname.split('/').at(-1)!]) {
      expect(kept.includes(secret)).toBe(false);
    }
  });

  it('shows its URL to those who may change it', async () => {
    const { id, url } = await ready(editor(), { scheme: 'path' });
    expect((await editor().get(`${TRIGGERS}/${id}`)).body.url).toBe(url);
    const seen = await host.as('viewer').get(`${TRIGGERS}/${id}`);
    expect([seen.status, seen.body.url]).toEqual([200, undefined]);
    expectRefusal(await host.as('viewer').post(`${TRIGGERS}/${id}:rotate`), 403, 'forbidden');
    expectRefusal(await editor().post(`${TRIGGERS}/${id}:rotate`, { secret: 'not signed' }), 400, 'validation_error');
  });

  it('is listed page by page, newest first', async () => {
    const ids = [await ready(editor(), { scheme: 'path' }), await ready(editor(), { scheme: 'path' })].map(
      ({ id }) => id,
    );
    const { body: first } = await editor().get(`${TRIGGERS}?limit=1`);
    const { body: second } = await editor().get(`${TRIGGERS}?limit=1&cursor=${first.nextCursor}`);
    expect([...first.items, ...second.items].map(({ id }) => id)).toEqual(ids.reverse());
  });

  it('belongs to its tenant', async () => {
    const { id, url, workflowId } = await ready(editor(), { scheme: 'github' });
    const other = host.as('other');
    expect(await triggersOf(other, workflowId)).toEqual([]);
    expectRefusal(await other.get(`${TRIGGERS}/${id}`), 404, 'not_found');
    expectRefusal(await other.post(`${TRIGGERS}/${id}:rotate`), 404, 'not_found');
    const { body } = await send(url, fromGitHub(SECRET, ISSUE_OPENED));
    expectRefusal(await other.get(`/v1/runs/${body.runId}`), 404, 'not_found');
    const same = await ready(other, { scheme: 'github' });
    expect(
      (await send(same.url, fromGitHub(SECRET, ISSUE_OPENED))).body.duplicate,
      'the same delivery',
    ).toBeUndefined();
  });

  it.each([
    ['no config', undefined, 'triggers[0].config.scheme'],
    ['a member that means nothing', { scheme: 'github', secret: 'x' }, 'triggers[0].config.secret'],
    ['an expression that is none', { scheme: 'path', filter: 'body ==' }, 'triggers[0].config.filter'],
    ['an unknown name', { scheme: 'path', inputs: { a: 'payload.x' } }, 'triggers[0].config.inputs.a'],
    ['no header', { scheme: 'hmac' }, 'triggers[0].config.hmac'],
    ['a header of another scheme', { scheme: 'github', hmac: { header: 'X' } }, 'triggers[0].config.hmac'],
    ['a time that nobody signs', { scheme: 'github', toleranceSeconds: 5 }, 'triggers[0].config.toleranceSeconds'],
    ['a wait for nothing', { scheme: 'path', waitSeconds: 5 }, 'triggers[0].config.waitSeconds'],
  ])('with %s is refused, together with its definition', async (_what, config, path) => {
    const definition = { ...hooked({}), triggers: [{ id: 'hook', type: 'webhook', config }] };
    const answer = await editor().post(WORKFLOWS, definition);
    expectRefusal(answer, 422, 'validation_error');
    expect(answer.body.message).toContain(path);
    expect((await editor().post(`${WORKFLOWS}:validate`, definition)).body).toEqual(answer.body);
    expect((await editor().get(`${WORKFLOWS}/${definition.id}`)).status).toBe(404);
  });

  it.each(['artifact', 'canvas', 'envelope', 'command', 'chat-message', 'channel-write'])(
    'of the type %s is refused: nothing would start it',
    async (type) => {
      const answer = await editor().post(WORKFLOWS, { ...hooked({}), triggers: [{ id: 't', type }] });
      expectRefusal(answer, 422, 'validation_error');
      expect(answer.body.message).toContain('triggers[0].type');
      const off = { ...hooked({}), triggers: [{ id: 't', type, enabled: false }] };
      expect((await editor().post(WORKFLOWS, off)).status).toBe(201);
    },
  );

  it('takes the right to start runs by it', async () => {
    const { body } = await host.as('owner').post('/v1/host/capstan/keys', { name: 'x', scopes: ['workflows:write'] });
    const answer = await new Api(host.url, body.key).post(WORKFLOWS, hooked({ scheme: 'path' }));
    expectRefusal(answer, 403, 'forbidden');
    expect(answer.body.details.scopeRequired).toBe('schedules:write');
  });
});

onEachStore('a delivery', (on) => {
  it('starts one run, however often it arrives at once', async () => {
    const trigger = await ready(on().as('editor'), { scheme: 'github' });
    const hosts = on().config.databaseUrl === undefined ? [on()] : [on(), await on().another()];
    try {
      const urls = hosts.map(({ url }) => trigger.url.replace(on().url, url));
      const sent = fromGitHub(SECRET, ISSUE_OPENED);
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, index) => send(urls[index % urls.length]!, sent)),
      );
      expect(new Set(answers.map(({ body }) => body.runId)).size).toBe(1);
      expect(answers.filter(({ body }) => body.duplicate === undefined)).toHaveLength(1);
      await until(
        () => runsOf(on().as('editor'), trigger),
        (runs) => runs.length === 1,
      );
    } finally {
      await Promise.all(hosts.slice(1).map((another) => another.stop()));
    }
  });
});
