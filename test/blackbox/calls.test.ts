import { describe, expect, it } from 'vitest';
import { CALL_DEFAULT_S } from '../../src/protocol/running/calls.ts';
import { Api } from '../support/api.ts';
import { fixed, line, node, register, unique, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { approval, resolve } from '../support/interrupts.ts';
import { killableHosts } from '../support/killed.ts';
import { onEachStore } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** Goal: one request runs a workflow and answers with its result. Method: runs that end, fail, wait and take long. */

const CALLS = '/v1/host/capstan/calls';
const REPLAYED = 'openwop-idempotent-replay';

const greeting = () =>
  workflow(
    [
      node('first'),
      node('greet', 'core.openwop.data.string-format', {
        inputs: { template: fixed('Hello {{name}}'), name: { type: 'variable', variableName: 'name' } },
      }),
    ],
    line('first', 'greet'),
    { variables: [{ name: 'name', type: 'string' }] },
  );

onEachStore('a call of a workflow', (host) => {
  const editor = (): Api => host().as('editor');

  it('answers with what its last nodes gave, and leaves a run as any other', async () => {
    const workflowId = await register(editor(), greeting());
    const request = { workflowId, inputs: { name: 'Ada' }, tags: ['called'], metadata: { from: 'a test' } };
    const { status, body } = await editor().post(CALLS, request);
    expect(status).toBe(200);
    expect(body).toMatchObject({ status: 'completed', outputs: { greet: { text: 'Hello Ada' } } });
    expect(Object.keys(body.outputs)).toEqual(['greet']);
    const run = await editor().get(new URL(body.statusUrl).pathname);
    expect(run.body).toMatchObject({
      runId: body.runId,
      status: 'completed',
      inputs: { name: 'Ada' },
      tags: ['called'],
      metadata: { from: 'a test' },
    });
    expectRefusal(await host().as('other').get(`/v1/runs/${body.runId}`), 404, 'not_found');
  });

  it('says what a run failed of', async () => {
    const workflowId = await register(
      editor(),
      workflow([node('fail', 'core.fail', { config: { message: 'as told' } })]),
    );
    const { status, body } = await editor().post(CALLS, { workflowId });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      status: 'failed',
      outputs: {},
      error: { message: expect.stringContaining('as told') },
    });
  });

  it('gives the run back when that waits for a person, and its result once it has ended', async () => {
    const workflowId = await register(editor(), workflow([approval('gate')]));
    const key = { 'idempotency-key': unique('call') };
    const waiting = await editor().post(CALLS, { workflowId }, key);
    expect(waiting.status).toBe(202);
    expect(waiting.body.status).toBe('waiting-approval');
    expect((await resolve(editor(), waiting.body.runId, 'gate', { action: 'accept' })).status).toBe(200);
    await editor().ended(waiting.body.runId);
    const again = await editor().post(CALLS, { workflowId }, key);
    expect(again.status).toBe(200);
    expect(again.headers.get(REPLAYED)).toBe('true');
    expect(again.body).toMatchObject({ runId: waiting.body.runId, status: 'completed' });
  });

  it('waits no longer than it was asked to', async () => {
    const workflowId = await register(editor(), workflow([node('later', 'core.delay', { config: { ms: 600_000 } })]));
    const key = { 'idempotency-key': unique('call') };
    const askedAt = Date.now();
    const first = await editor().post(CALLS, { workflowId, waitSeconds: 1 }, key);
    expect(first.status).toBe(202);
    expect(first.body.status).toBe('running');
    // A host that did not know the field would wait for as long as it does without it.
    expect(Date.now() - askedAt).toBeLessThan((CALL_DEFAULT_S - 5) * 1_000);
    await editor().post(`/v1/runs/${first.body.runId}/cancel`);
    const again = await editor().post(CALLS, { workflowId, waitSeconds: 1 }, key);
    expect(again.status).toBe(200);
    expect(again.body).toMatchObject({ runId: first.body.runId, status: 'cancelled' });
  });

  it('starts one run for one key, however often it is sent', async () => {
    const workflowId = await register(editor(), greeting());
    const key = { 'idempotency-key': unique('call') };
    const send = () => editor().post(CALLS, { workflowId, inputs: { name: 'Bo' } }, key);
    const answers = await Promise.all([send(), send(), send()]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(answers.filter(({ headers }) => headers.get(REPLAYED) === 'true')).toHaveLength(2);
    const runs = await editor().get(`/v1/host/capstan/runs?workflowId=${workflowId}`);
    expect(runs.body.items).toHaveLength(1);
  });

  it('takes options of the run, and refuses what a run would refuse', async () => {
    const workflowId = await register(editor(), greeting());
    const limited = { workflowId, inputs: { name: 'Cy' }, configurable: { recursionLimit: 1 } };
    expect((await editor().post(CALLS, limited)).body).toMatchObject({
      status: 'failed',
      error: { code: 'recursion_limit_exceeded' },
    });
    expectRefusal(await editor().post(CALLS, { workflowId: unique('none') }), 404, 'not_found');
    expectRefusal(await editor().post(CALLS, { workflowId, waitSeconds: 61 }), 400, 'validation_error');
    expectRefusal(await editor().post(CALLS, { workflowId, scopeId: 'x' }), 400, 'validation_error');
    expectRefusal(await host().as('viewer').post(CALLS, { workflowId }), 403, 'forbidden');
    const { body } = await host()
      .as('owner')
      .post('/v1/host/capstan/keys', { name: 'w', scopes: ['runs:create'] });
    expectRefusal(await new Api(host().url, body.key).post(CALLS, { workflowId }), 403, 'forbidden');
  });
});

describe('a call whose host is killed', () => {
  const { start, follow, kill, newStore } = killableHosts();

  it('gets the result of the same run when it is sent again', async () => {
    const environment = await newStore('sqlite');
    const first = await start(environment);
    const workflowId = await register(first.as('editor'), workflow([approval('gate')]));
    const key = { 'idempotency-key': unique('call') };
    // Nobody answers the gate while the first host lives.
    const { body } = await first.as('editor').post(CALLS, { workflowId }, key);
    await kill(first);
    const second = await follow(environment);
    const again = second.as('editor').post(CALLS, { workflowId }, key);
    expect((await again).body).toEqual({ ...body, statusUrl: expect.stringContaining(body.runId) });
    await resolve(second.as('editor'), body.runId, 'gate', { action: 'accept' });
    await second.as('editor').ended(body.runId);
    expect((await second.as('editor').post(CALLS, { workflowId }, key)).body).toMatchObject({
      runId: body.runId,
      status: 'completed',
    });
  });

  it('gets the result of the same run when its host died while it was waiting', async () => {
    const environment = await newStore('sqlite');
    const first = await start(environment);
    const delay = node('later', 'core.delay', { config: { ms: 2_000 } });
    const workflowId = await register(first.as('editor'), workflow([delay]));
    const key = { 'idempotency-key': unique('call') };
    const waiting = first.as('editor').post(CALLS, { workflowId }, key);
    const cut = expect(waiting).rejects.toThrow();
    const begun = () => first.as('editor').get(`/v1/host/capstan/runs?workflowId=${workflowId}`);
    const { items } = (await until(begun, ({ body }) => body.items.length === 1)).body;
    await kill(first);
    await cut;
    const second = await follow(environment);
    const { status, body } = await second.as('editor').post(CALLS, { workflowId }, key);
    expect(status).toBe(200);
    expect(body).toMatchObject({ runId: items[0].runId, status: 'completed' });
  });
});
