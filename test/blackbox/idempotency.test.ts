import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { freshFolder } from '../support/database.ts';
import { node, unique, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { onEachStore, STORES } from '../support/stores.ts';
import { Stream } from '../support/stream.ts';

/** core.md 5.1: a retry gets the first answer, and what it asks for happens once. */

const RUNS = '/v1/runs';
const JSON_TYPE = { 'content-type': 'application/json' };
const keyed = (key: string): Record<string, string> => ({ 'idempotency-key': key });
const body = (nonce: string): object => ({ workflowId: 'conformance-idempotent', inputs: { nonce } });
const replayed = ({ headers }: Answer): string | null => headers.get('openwop-idempotent-replay');

function expectFirst(answer: Answer, status: number): void {
  expect(answer.status, answer.text).toBe(status);
  expect([null, 'false']).toContain(replayed(answer));
}

function expectReplay(answer: Answer, first: Answer): void {
  expect({ status: answer.status, text: answer.text }).toEqual({ status: first.status, text: first.text });
  expect(replayed(answer)).toBe('true');
}

/** All runs of a tag, by id. */
async function runsTagged(api: Api, tag: string): Promise<string[]> {
  const { items } = (await api.get(`/v1/host/capstan/runs?limit=200&tag=${tag}`)).body;
  return items.map(({ runId }: { runId: string }) => runId);
}

onEachStore('an idempotency key on a run', (host) => {
  const api = (): Api => host().as('editor');

  it('gives the first answer again, marked as a replay, and starts one run', async () => {
    const tag = unique('tag');
    const key = keyed(unique('key'));
    const request = { ...body('a'), tags: [tag] };
    const first = await api().post(RUNS, request, key);
    expectFirst(first, 201);
    for (let tries = 0; tries < 5; tries++) expectReplay(await api().post(RUNS, request, key), first);
    expect(await runsTagged(api(), tag)).toEqual([first.body.runId]);
  });

  it('gives the first answer again after the run has ended', async () => {
    const key = keyed(unique('key'));
    const first = await api().post(RUNS, body('a'), key);
    await api().ended(first.body.runId);
    expectReplay(await api().post(RUNS, body('a'), key), first);
  });

  it('survives five retries, each after the other', async () => {
    const key = keyed(unique('key'));
    const answers: Answer[] = [];
    for (let tries = 0; tries < 5; tries++) answers.push(await api().post(RUNS, body('storm'), key));
    expectFirst(answers[0]!, 201);
    expect(new Set(answers.map((answer) => answer.body.runId)).size).toBe(1);
    expect(answers.slice(1).map(replayed)).toEqual(['true', 'true', 'true', 'true']);
  });

  it('starts a run for each of ten distinct keys', async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => api().post(RUNS, body('same'), keyed(unique('key')))),
    );
    for (const answer of answers) expectFirst(answer, 201);
    expect(new Set(answers.map((answer) => answer.body.runId)).size).toBe(10);
  });

  it('starts one run for ten requests at once with the same key', async () => {
    const tag = unique('tag');
    const key = keyed(unique('key'));
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => api().post(RUNS, { ...body('a'), tags: [tag] }, key)),
    );
    const served = answers.filter(({ status }) => status === 201);
    for (const answer of answers.filter(({ status }) => status !== 201)) {
      expectRefusal(answer, 409, 'idempotency_in_flight');
      expect(answer.body.details.retryAfter).toBeGreaterThan(0);
    }
    expect(served.length).toBeGreaterThan(0);
    expect(served.filter((answer) => replayed(answer) !== 'true')).toHaveLength(1);
    expect(new Set(served.map((answer) => answer.text)).size).toBe(1);
    expect(await runsTagged(api(), tag)).toEqual([served[0]!.body.runId]);
  });

  it('starts one run for twenty requests at once with the same key and different bodies', async () => {
    const tag = unique('tag');
    const key = keyed(unique('key'));
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => api().post(RUNS, { ...body(`n-${index}`), tags: [tag] }, key)),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    for (const answer of answers.filter(({ status }) => status !== 201)) {
      expectRefusal(answer, 409, 'idempotency_key_mismatch');
    }
    expect(await runsTagged(api(), tag)).toHaveLength(1);
  });

  it('is refused for another body, without the first answer, and starts nothing', async () => {
    const tag = unique('tag');
    const key = keyed(unique('key'));
    const first = await api().post(RUNS, { ...body('a'), tags: [tag] }, key);
    const answer = await api().post(RUNS, { ...body('b'), tags: [tag] }, key);
    expectRefusal(answer, 409, 'idempotency_key_mismatch');
    expect(answer.body).not.toHaveProperty('runId');
    expect(answer.text).not.toContain(first.body.runId);
    expect(replayed(answer)).not.toBe('true');
    expect(await runsTagged(api(), tag)).toEqual([first.body.runId]);
    expectReplay(await api().post(RUNS, { ...body('a'), tags: [tag] }, key), first);
  });

  it.each([
    ['an input more', { inputs: { nonce: 'a', more: null } }],
    ['another type of the same value', { inputs: { nonce: 'a', n: '1' } }],
    ['an option', { inputs: { nonce: 'a', n: 1 }, configurable: { recursionLimit: 5 } }],
    ['a tag', { inputs: { nonce: 'a', n: 1 }, tags: ['t'] }],
    ['an empty object where there was none', { inputs: { nonce: 'a', n: 1 }, metadata: {} }],
  ])('takes %s for another body', async (_what, rest) => {
    const key = keyed(unique('key'));
    const request = { workflowId: 'conformance-idempotent', inputs: { nonce: 'a', n: 1 } };
    expectFirst(await api().post(RUNS, request, key), 201);
    expectRefusal(await api().post(RUNS, { ...request, ...rest }, key), 409, 'idempotency_key_mismatch');
  });

  it('does not mind the order of keys, white space, escapes and spellings of numbers', async () => {
    const key = { ...keyed(unique('key')), ...JSON_TYPE };
    const spellings = [
      '{"workflowId":"conformance-idempotent","inputs":{"nonce":"é","n":1,"o":{"a":1,"b":[1,2]}}}',
      '{"inputs":{"o":{"b":[1,2],"a":1},"n":1,"nonce":"é"},"workflowId":"conformance-idempotent"}',
      '\n{ "workflowId" : "conformance-idempotent",\t"inputs": {"nonce":"\\u00e9","n":1.0,"o":{"a":1e0,"b":[ 1 , 2 ]}}}\n',
      '{"workflowId":"\\u0063onformance-idempotent","inputs":{"nonce":"\\u00E9","n":10e-1,"o":{"a":1,"b":[1,2]}}}',
    ];
    const first = await api().request('POST', RUNS, spellings[0], key);
    expectFirst(first, 201);
    for (const text of spellings) expectReplay(await api().request('POST', RUNS, text, key), first);
  });

  it('does mind the order of arrays', async () => {
    const key = keyed(unique('key'));
    expectFirst(await api().post(RUNS, { ...body('a'), tags: ['x', 'y'] }, key), 201);
    const other = await api().post(RUNS, { ...body('a'), tags: ['y', 'x'] }, key);
    expectRefusal(other, 409, 'idempotency_key_mismatch');
  });

  it('is another key in another tenant, and for test keys', async () => {
    const key = keyed(unique('key'));
    const answers = [
      await host().as('editor').post(RUNS, body('a'), key),
      await host().as('other').post(RUNS, body('b'), key),
      await host().as('test').post(RUNS, body('c'), key),
    ];
    for (const answer of answers) expectFirst(answer, 201);
    expect(new Set(answers.map((answer) => answer.body.runId)).size).toBe(3);
  });

  it('is another key for another principal of the tenant', async () => {
    const key = keyed(unique('key'));
    const first = await host().as('editor').post(RUNS, body('a'), key);
    const second = await host().as('owner').post(RUNS, body('a'), key);
    for (const answer of [first, second]) expectFirst(answer, 201);
    expect(second.body.runId).not.toBe(first.body.runId);
  });

  it('gives its answer only to who may ask: credentials and scopes come first', async () => {
    const key = keyed(unique('key'));
    expectFirst(await api().post(RUNS, body('a'), key), 201);
    expectRefusal(await host().anonymous.post(RUNS, body('a'), key), 401, 'unauthenticated');
    expectRefusal(await host().as('viewer').post(RUNS, body('a'), key), 403, 'forbidden');
  });

  it('may be 255 characters long', async () => {
    const key = keyed(unique('k').padEnd(255, 'x'));
    const first = await api().post(RUNS, body('a'), key);
    expectFirst(first, 201);
    expectReplay(await api().post(RUNS, body('a'), key), first);
  });

  it.each([
    ['longer than 255 characters', 'k'.repeat(256)],
    ['much longer', 'k'.repeat(5_000)],
    ['empty', ''],
    ['with blanks inside', 'a b'],
    ['with characters beyond ASCII', 'clé'],
  ])('is refused when it is %s, and nothing starts', async (_what, key) => {
    const tag = unique('tag');
    const answer = await api().post(RUNS, { ...body('a'), tags: [tag] }, keyed(key));
    expectRefusal(answer, 400, 'validation_error');
    expect(await runsTagged(api(), tag)).toEqual([]);
  });

  it('tells keys apart that differ only in case or in one character', async () => {
    const key = unique('Key');
    const answers = [key, key.toLowerCase(), `${key}.`, `${key}~`];
    const runs = await Promise.all(answers.map((name) => api().post(RUNS, body('a'), keyed(name))));
    expect(new Set(runs.map((answer) => answer.body.runId)).size).toBe(4);
  });

  it('means nothing on a read', async () => {
    const key = keyed(unique('key'));
    const runId = await api().run('conformance-cancellable');
    const before = await api().get(`/v1/runs/${runId}`, key);
    await api().post(`/v1/runs/${runId}/cancel`);
    const after = await api().get(`/v1/runs/${runId}`, key);
    expect([before.body.status, after.body.status]).toEqual(['running', 'cancelled']);
    expect(replayed(after)).toBeNull();
  });
});

onEachStore('an idempotency key on a refusal', (host) => {
  const api = (): Api => host().as('editor');

  it('does not keep a validation error: the corrected request is carried out', async () => {
    const key = keyed(unique('key'));
    for (const wrong of [{}, { workflowId: 7 }, { workflowId: 'conformance-idempotent' }]) {
      const answer = await api().post(RUNS, wrong, key);
      expectRefusal(answer, 400, 'validation_error');
      expect(replayed(answer)).not.toBe('true');
    }
    expectRefusal(await api().request('POST', RUNS, '{', { ...key, ...JSON_TYPE }), 400, 'validation_error');
    expectFirst(await api().post(RUNS, body('right'), key), 201);
  });

  it('does not keep a refused definition: the corrected one is registered', async () => {
    const key = keyed(unique('key'));
    const right = workflow([node('a')]);
    const wrong = { ...right, nodes: [node('a'), node('a')] };
    expectRefusal(await api().post(WORKFLOWS, wrong, key), 422, 'validation_error');
    expectFirst(await api().post(WORKFLOWS, right, key), 201);
  });

  it('does not keep 401 and 403', async () => {
    const key = keyed(unique('key'));
    expectRefusal(await host().anonymous.post(RUNS, body('a'), key), 401, 'unauthenticated');
    expectRefusal(await host().as('viewer').post(RUNS, body('a'), key), 403, 'forbidden');
    const foreign = { ...body('a'), tenantId: 'beta' };
    expectRefusal(await api().post(RUNS, foreign, key), 403, 'forbidden');
    expectFirst(await api().post(RUNS, body('a'), key), 201);
  });

  it('does keep a 404: it is final, even when the workflow comes to be', async () => {
    const key = keyed(unique('key'));
    const definition = workflow([node('a')]);
    const first = await api().post(RUNS, { workflowId: definition.id }, key);
    expectRefusal(first, 404, 'not_found');
    expect((await api().post(WORKFLOWS, definition)).status).toBe(201);
    expectReplay(await api().post(RUNS, { workflowId: definition.id }, key), first);
    expectFirst(await api().post(RUNS, { workflowId: definition.id }, keyed(unique('key'))), 201);
  });

  it('does keep a 409 about the state of a run', async () => {
    const key = keyed(unique('key'));
    const runId = await api().run('conformance-cancellable');
    const first = await api().post(`/v1/runs/${runId}:resume`, {}, key);
    expectRefusal(first, 409, 'run_state_conflict');
    await api().post(`/v1/runs/${runId}:pause`, { drainPolicy: 'immediate' });
    expectReplay(await api().post(`/v1/runs/${runId}:resume`, {}, key), first);
    expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('paused');
    await api().post(`/v1/runs/${runId}/cancel`);
  });

  it('does keep a capability refusal', async () => {
    const key = keyed(unique('key'));
    const definition = workflow([node('d', 'core.conversationGate')]);
    const first = await api().post(WORKFLOWS, definition, key);
    expectRefusal(first, 422, 'capability_required');
    expectReplay(await api().post(WORKFLOWS, definition, key), first);
  });

  it('does not keep "come back later": once the scope is free the retry starts a run', async () => {
    const scopeId = unique('scope');
    const dedup = { 'x-dedup': 'enforce' };
    const request = { workflowId: 'conformance-cancellable', scopeId };
    const active = await api().post(RUNS, request, dedup);
    const key = { ...keyed(unique('key')), ...dedup };
    expectRefusal(await api().post(RUNS, request, key), 409, 'run_already_active');
    await api().post(`/v1/runs/${active.body.runId}/cancel`);
    const retried = await api().post(RUNS, request, key);
    expectFirst(retried, 201);
    await api().post(`/v1/runs/${retried.body.runId}/cancel`);
  });
});

onEachStore('an idempotency key on other operations', (host) => {
  const api = (): Api => host().as('editor');
  const live = (): Promise<string> => api().run('conformance-cancellable');

  it('belongs to one operation: the same key elsewhere is unrelated', async () => {
    const key = keyed(unique('key'));
    const runId = await live();
    expectFirst(await api().post(`/v1/runs/${runId}:pause`, { drainPolicy: 'immediate' }, key), 202);
    expectFirst(await api().post(`/v1/runs/${runId}:resume`, {}, key), 202);
    expectFirst(await api().post(`/v1/runs/${runId}/cancel`, {}, key), 200);
    expectFirst(await api().post('/v1/runs:bulk-cancel', { runIds: [runId] }, key), 200);
    expectFirst(await api().post(RUNS, body('a'), key), 201);
  });

  it.each(['/cancel', ':pause', ':resume'])('never answers for run B what %s did to run A', async (verb) => {
    const key = keyed(unique('key'));
    const [a, b] = [await live(), await live()];
    if (verb === ':resume') {
      for (const runId of [a, b]) await api().post(`/v1/runs/${runId}:pause`, { drainPolicy: 'immediate' });
    }
    const first = await api().post(`/v1/runs/${a}${verb}`, undefined, key);
    expect(first.status).toBeLessThan(300);
    const second = await api().post(`/v1/runs/${b}${verb}`, undefined, key);
    expectRefusal(second, 409, 'idempotency_key_mismatch');
    expect(second.text).not.toContain(a);
    for (const runId of [a, b]) await api().post(`/v1/runs/${runId}/cancel`);
  });

  it('replays a cancel', async () => {
    const key = keyed(unique('key'));
    const runId = await live();
    const first = await api().post(`/v1/runs/${runId}/cancel`, { reason: 'r' }, key);
    expectFirst(first, 200);
    const events = await api().events(runId);
    expectReplay(await api().post(`/v1/runs/${runId}/cancel`, { reason: 'r' }, key), first);
    expect(await api().events(runId)).toEqual(events);
  });

  it('replays a pause with its first answer, though the run is paused already or going again', async () => {
    const key = keyed(unique('key'));
    const runId = await live();
    const pause = (): Promise<Answer> => api().post(`/v1/runs/${runId}:pause`, { drainPolicy: 'immediate' }, key);
    const first = await pause();
    expectFirst(first, 202);
    expectReplay(await pause(), first);
    await api().post(`/v1/runs/${runId}:resume`);
    expectReplay(await pause(), first);
    expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('running');
    await api().post(`/v1/runs/${runId}/cancel`);
  });

  it('replays a bulk cancel', async () => {
    const key = keyed(unique('key'));
    const runIds = [await live(), 'run-absent', await live()];
    const first = await api().post('/v1/runs:bulk-cancel', { runIds }, key);
    expectFirst(first, 200);
    expectReplay(await api().post('/v1/runs:bulk-cancel', { runIds }, key), first);
    const other = await api().post('/v1/runs:bulk-cancel', { runIds: runIds.toReversed() }, key);
    expectRefusal(other, 409, 'idempotency_key_mismatch');
  });

  it('replays a registration: two requests make one version', async () => {
    const key = keyed(unique('key'));
    const definition = workflow([node('a')]);
    const first = await api().post(WORKFLOWS, definition, key);
    expectFirst(first, 201);
    expectReplay(await api().post(WORKFLOWS, definition, key), first);
    expect(first.body.registeredVersion).toBe(1);
    const changed = await api().post(WORKFLOWS, { ...definition, name: 'Other' }, key);
    expectRefusal(changed, 409, 'idempotency_key_mismatch');
  });

  it('replays a PUT', async () => {
    const key = keyed(unique('key'));
    const definition = workflow([node('a')]);
    await api().post(WORKFLOWS, definition);
    const put = (name: string): Promise<Answer> =>
      api().request('PUT', `${WORKFLOWS}/${definition.id}`, { ...definition, name }, key);
    const first = await put('Second');
    expectFirst(first, 200);
    await api().request('PUT', `${WORKFLOWS}/${definition.id}`, { ...definition, name: 'Third' });
    expectReplay(await put('Second'), first);
    expect((await api().get(`/v1/workflows/${definition.id}`)).body.name).toBe('Third');
    expectRefusal(await put('Fourth'), 409, 'idempotency_key_mismatch');
  });

  it('replays a DELETE, with its empty body, though the workflow has come back', async () => {
    const key = keyed(unique('key'));
    const definition = workflow([node('a')]);
    const remove = (id: string): Promise<Answer> => api().request('DELETE', `${WORKFLOWS}/${id}`, undefined, key);
    await api().post(WORKFLOWS, definition);
    const first = await remove(definition.id);
    expectFirst(first, 204);
    await api().post(WORKFLOWS, definition);
    expectReplay(await remove(definition.id), first);
    expect((await api().get(`/v1/workflows/${definition.id}`)).status).toBe(200);
    expectRefusal(await remove(unique('wf')), 409, 'idempotency_key_mismatch');
  });

  it('of ten deletes at once with one key, all are told that it is done', async () => {
    const key = keyed(unique('key'));
    const definition = workflow([node('a')]);
    await api().post(WORKFLOWS, definition);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => api().request('DELETE', `${WORKFLOWS}/${definition.id}`, undefined, key)),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 204));
  });

  it('of ten pauses at once with one key, the run is paused once', async () => {
    const key = keyed(unique('key'));
    const runId = await live();
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => api().post(`/v1/runs/${runId}:pause`, { drainPolicy: 'immediate' }, key)),
    );
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(answers[0]!.status).toBe(202);
    const events = await api().events(runId);
    expect(events.filter(({ type }) => type === 'run.paused')).toHaveLength(1);
    await api().post(`/v1/runs/${runId}/cancel`);
  });
});

describe('an idempotency key on an answer of a host at capacity', () => {
  it('does not keep it: the retry is carried out', async () => {
    const host = await startTestHost('sqlite', inject('postgresUrl'), { inFlightMax: 2 });
    try {
      const api = host.as('editor');
      const runId = await api.run('conformance-cancellable');
      const events = `${host.url}/v1/runs/${runId}/events`;
      const open = [await Stream.open(events, KEYS.editor.key), await Stream.open(events, KEYS.editor.key)];
      const key = keyed(unique('key'));
      expectRefusal(await api.post(RUNS, body('a'), key), 503, 'service_unavailable');
      for (const stream of open) stream.drop();
      let retried: Answer;
      do retried = await api.post(RUNS, body('a'), key);
      while (retried.status === 503);
      expectFirst(retried, 201);
      expectReplay(await api.post(RUNS, body('a'), key), retried);
    } finally {
      await host.stop();
    }
  });
});

describe.each(STORES)('an idempotency key after a restart, on %s', (kind) => {
  it('still gives the first answer', async () => {
    const folder = freshFolder();
    const first = await startTestHost(kind, inject('postgresUrl'), { dataFolder: folder.path });
    const key = keyed(unique('key'));
    const created = await first.as('editor').post(RUNS, body('a'), key);
    const definition = workflow([node('a')]);
    await first.as('editor').post(WORKFLOWS, definition);
    const removed = await first.as('editor').request('DELETE', `${WORKFLOWS}/${definition.id}`, undefined, key);
    const absent = await first.as('editor').post(RUNS, { workflowId: 'absent' }, keyed('absent'));
    await first.stop();
    const second = await first.another();
    try {
      const api = second.as('editor');
      const again = await api.post(RUNS, body('a'), key);
      expect(replayed(again)).toBe('true');
      expect(again.body.runId).toBe(created.body.runId);
      expectReplay(await api.request('DELETE', `${WORKFLOWS}/${definition.id}`, undefined, key), removed);
      expectReplay(await api.post(RUNS, { workflowId: 'absent' }, keyed('absent')), absent);
      expectRefusal(await api.post(RUNS, body('b'), key), 409, 'idempotency_key_mismatch');
      expect((await api.ended(created.body.runId)).status).toBe('completed');
    } finally {
      await second.stop();
      folder.remove();
    }
  });
});

describe('two hosts on one PostgreSQL', () => {
  let one: TestHost;
  let two: TestHost;
  beforeAll(async () => {
    one = await startTestHost('postgres', inject('postgresUrl'));
    two = await one.another();
  });
  afterAll(async () => {
    await two.stop();
    await one.stop();
  });
  const both = (): Api[] => [one.as('editor'), two.as('editor')];

  it('start one run for one key, however they race', async () => {
    for (let round = 0; round < 25; round++) {
      const tag = unique('tag');
      const key = keyed(unique('key'));
      const answers = await Promise.all(
        [...both(), ...both()].map((api) => api.post(RUNS, { ...body('a'), tags: [tag] }, key)),
      );
      for (const answer of answers.filter(({ status }) => status !== 201)) {
        expectRefusal(answer, 409, 'idempotency_in_flight');
      }
      const ids = answers.filter(({ status }) => status === 201).map((answer) => answer.body.runId);
      expect(new Set(ids).size).toBe(1);
      expect(await runsTagged(one.as('editor'), tag)).toEqual([ids[0]]);
      expect((await two.as('editor').ended(ids[0])).status).toBe('completed');
    }
  });

  it('carry out one of two different requests with one key', async () => {
    for (let round = 0; round < 15; round++) {
      const tag = unique('tag');
      const key = keyed(unique('key'));
      const answers = await Promise.all(
        both().map((api, index) => api.post(RUNS, { ...body(`n-${index}`), tags: [tag] }, key)),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
      const refused = answers.find(({ status }) => status === 409)!;
      expect(['idempotency_key_mismatch', 'idempotency_in_flight']).toContain(refused.body.error);
      expect(await runsTagged(one.as('editor'), tag)).toHaveLength(1);
    }
  });

  it('register one version for one key', async () => {
    for (let round = 0; round < 10; round++) {
      const key = keyed(unique('key'));
      const definition = workflow([node('a')]);
      const answers = await Promise.all(both().map((api) => api.post(WORKFLOWS, definition, key)));
      expect(answers.map(({ status }) => status)).toEqual([201, 201]);
      expect(answers.map((answer) => answer.body.registeredVersion)).toEqual([1, 1]);
      expect(answers[0]!.text).toBe(answers[1]!.text);
    }
  });

  // core.md 5.1: exactly one executes; the other gets its answer, or is told that it is in flight.
  function expectOneAnswer(answers: readonly Answer[], status: number): void {
    const others = answers.filter((answer) => answer.status !== status);
    for (const answer of others) expectRefusal(answer, 409, 'idempotency_in_flight');
    const served = answers.filter((answer) => answer.status === status);
    expect(new Set(served.map(({ text }) => text)).size).toBe(1);
  }

  it('pause a run once for one key, and both say so', async () => {
    for (let round = 0; round < 10; round++) {
      const key = keyed(unique('key'));
      const runId = await one.as('editor').run('conformance-cancellable');
      const answers = await Promise.all(
        both().map((api) => api.post(`/v1/runs/${runId}:pause`, { drainPolicy: 'immediate' }, key)),
      );
      expectOneAnswer(answers, 202);
      const events = await two.as('editor').events(runId);
      expect(events.filter(({ type }) => type === 'run.paused')).toHaveLength(1);
      await one.as('editor').post(`/v1/runs/${runId}/cancel`);
    }
  });

  it('remove a workflow once for one key, and both say so', async () => {
    for (let round = 0; round < 10; round++) {
      const key = keyed(unique('key'));
      const definition = workflow([node('a')]);
      await one.as('editor').post(WORKFLOWS, definition);
      const answers = await Promise.all(
        both().map((api) => api.request('DELETE', `${WORKFLOWS}/${definition.id}`, undefined, key)),
      );
      expectOneAnswer(answers, 204);
    }
  });
});
