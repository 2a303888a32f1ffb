import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { mintToken, type TokenClaims } from '../../src/capabilities/people/interrupts/tokens.ts';
import type { Clock } from '../../src/system/clock.ts';
import { realClock } from '../../src/system/real.ts';
import type { Answer } from '../support/api.ts';
import { freshFolder, readStore } from '../support/database.ts';
import { register, unique, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { approval, eventsOf, governanceGate, interrupt, resolve, waitingRun } from '../support/interrupts.ts';
import { onEachStore, STORES } from '../support/stores.ts';

/** durability.md 1.6: a token is the only credential that it takes, for one interrupt and for as long as it waits. */

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const BAD_BODIES = [undefined, {}, [], 'text', { resumeValue: 1, more: 2 }, { action: 'accept' }];

const pathOf = (token: string): string => `/v1/interrupts/${encodeURIComponent(token)}`;
const claimsOf = (token: string): TokenClaims =>
  JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString('utf8'));

/** Looks at a token and answers with it, well and badly. */
async function tryEverything({ anonymous }: TestHost, token: string): Promise<Answer[]> {
  const send = (body: unknown): Promise<Answer> =>
    anonymous.request('POST', pathOf(token), body === 'text' ? '"text"' : body, { 'content-type': 'application/json' });
  return Promise.all([
    anonymous.get(pathOf(token)),
    ...[{ resumeValue: { action: 'accept' } }, ...BAD_BODIES].map(send),
  ]);
}

/** A token as this host would have minted it, had it been asked for something else. */
async function forged(host: TestHost, token: string, changes: Partial<TokenClaims>): Promise<string> {
  const { kid, ...claims } = claimsOf(token) as TokenClaims & { kid: string };
  const keys = await readStore<{ key_id: string; secret: string }>(
    host.config,
    'SELECT key_id, secret FROM token_keys',
  );
  const { secret } = keys.find(({ key_id }) => key_id === kid)!;
  return mintToken({ ...claims, ...changes }, { keyId: kid, secret });
}

onEachStore('a token', (host) => {
  const api = () => host().as('editor');
  const tokenOf = async (runId: string): Promise<string> =>
    (await api().get(`/v1/runs/${runId}`)).body.interrupt.interruptToken;
  const waitingCustom = async (more = {}): Promise<Answer['body']> =>
    waitingRun(api(), await register(api(), workflow([interrupt('wait', 'custom', { customKind: 'c' }, more)])));

  it('shows what it stands for, and until when', async () => {
    const before = Date.now();
    const resumeSchema = { type: 'object' };
    const { runId, interrupt: shown } = await waitingCustom({ resumeSchema, timeoutMs: 600_000 });
    const { status, body, headers } = await host().anonymous.get(pathOf(shown.interruptToken));
    expect(status).toBe(200);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(body).toEqual({
      kind: 'custom',
      key: 'wait:0',
      data: { customKind: 'c' },
      resumeSchema,
      timeoutMs: 600_000,
      runId,
      nodeId: 'wait',
      interruptId: shown.interruptId,
      requestedAt: expect.any(String),
      expiresAt: shown.expiresAt,
    });
    expect(Date.parse(body.requestedAt)).toBeGreaterThanOrEqual(before);
  });

  it('lasts half an hour, and never longer than what it answers', async () => {
    const endOf = async (more: object): Promise<number> => {
      const { interrupt: shown } = await waitingCustom(more);
      const { expiresAt } = (await host().anonymous.get(pathOf(shown.interruptToken))).body;
      expect(claimsOf(shown.interruptToken).expiresAt).toBe(Date.parse(expiresAt));
      return Date.parse(expiresAt) - Date.now();
    };
    for (const more of [{}, { timeoutMs: 3 * DAY_MS }]) {
      expect(Math.abs((await endOf(more)) - 30 * MINUTE_MS)).toBeLessThan(MINUTE_MS);
    }
    expect(await endOf({ timeoutMs: 5 * MINUTE_MS })).toBeLessThanOrEqual(5 * MINUTE_MS);
  });

  it('has the form that the protocol gives it', async () => {
    const { runId, interrupt: shown } = await waitingCustom();
    expect(claimsOf(shown.interruptToken)).toMatchObject({
      runId,
      nodeId: 'wait',
      interruptId: shown.interruptId,
      expiresAt: expect.any(Number),
      intent: 'resolve',
    });
    expect(shown.interruptToken).toMatch(/^[\w-]+\.[\w-]{43}$/);
  });

  it('answers without any other credential, also beside one that is wrong', async () => {
    const { runId, interrupt: shown } = await waitingCustom();
    const wrong = { authorization: 'Bearer nobody-ever-issued-this-key' };
    const answer = await host().anonymous.post(pathOf(shown.interruptToken), { resumeValue: { page: 3 } }, wrong);
    expect({ status: answer.status, body: answer.body }).toEqual({
      status: 200,
      body: { runId, nodeId: 'wait', status: 'running' },
    });
    expect((await api().ended(runId)).nodeStates.wait.outputs).toEqual({ page: 3 });
    const [resolved] = await eventsOf(api(), runId, 'interrupt.resolved');
    expect(resolved.payload.resolvedBy).toBe('token-bearer');
  });

  it.each([
    ['nonsense', '!!!not-a-valid-token!!!'],
    ['well-formed but unknown', `tok_${Buffer.alloc(32, 7).toString('base64url')}`],
    ['a body and a MAC of nobody', `${Buffer.from('{}').toString('base64url')}.${'A'.repeat(43)}`],
    ['without a MAC', 'e30.'],
    ['very long', 'x'.repeat(2_000)],
  ])('that is %s is unknown, whatever comes with it', async (_what, token) => {
    for (const answer of await tryEverything(host(), token)) expectRefusal(answer, 404, 'interrupt_not_found');
  });

  it('that was tampered with is unknown', async () => {
    const { runId, interrupt: shown } = await waitingCustom();
    const { interruptToken: token } = shown;
    const [body, mac] = token.split('.') as [string, string];
    const altered = Buffer.from(JSON.stringify({ ...claimsOf(token), expiresAt: Date.now() * 2 })).toString(
      'base64url',
    );
    const flipped = (text: string): string => (text[0] === 'A' ? 'B' : 'A') + text.slice(1);
    const tampered = [
      `${altered}.${mac}`,
      `${body}.${flipped(mac)}`,
      `${flipped(body)}.${mac}`,
      `${body}.${mac.slice(0, -1)}`,
      `${body}.${mac}A`,
      `${body}.`,
      body,
      `${token}.${mac}`,
      mintToken(claimsOf(token), { keyId: 'tk-made-up', secret: 'made-up' }),
      mintToken(claimsOf(token), { keyId: (claimsOf(token) as never as { kid: string }).kid, secret: 'made-up' }),
    ];
    for (const each of tampered) {
      for (const answer of await tryEverything(host(), each)) expectRefusal(answer, 404, 'interrupt_not_found');
    }
    expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('waiting-input');
  });

  it('that names the run or the node of another is unknown, though we signed it', async () => {
    const one = await waitingCustom();
    const two = await waitingCustom();
    for (const changes of [
      { runId: two.runId },
      { nodeId: 'other' },
      { interruptId: two.interrupt.interruptId },
      { interruptId: 'int-nowhere' },
    ]) {
      const token = await forged(host(), one.interrupt.interruptToken, changes);
      for (const answer of await tryEverything(host(), token)) expectRefusal(answer, 404, 'interrupt_not_found');
    }
  });

  it('that is used is used up, and so is every other one of its interrupt', async () => {
    const { runId, interrupt: shown } = await waitingCustom();
    const another = await tokenOf(runId);
    expect((await host().anonymous.post(pathOf(shown.interruptToken), { resumeValue: 1 })).status).toBe(200);
    for (const token of [shown.interruptToken, another]) {
      for (const answer of await tryEverything(host(), token)) expectRefusal(answer, 409, 'interrupt_already_resolved');
    }
    expect(await eventsOf(api(), runId, 'interrupt.resolved')).toHaveLength(1);
  });

  it('is over when somebody signed in has answered, and when the run is cancelled', async () => {
    const one = await waitingCustom();
    await resolve(api(), one.runId, 'wait', 1);
    const two = await waitingCustom();
    await api().post(`/v1/runs/${two.runId}/cancel`);
    for (const { interrupt: shown } of [one, two]) {
      for (const answer of await tryEverything(host(), shown.interruptToken)) {
        expectRefusal(answer, 409, 'interrupt_already_resolved');
      }
    }
  });

  it('of a question that was asked again is used up, and does not answer the new one', async () => {
    const { runId, interrupt: first } = await waitingRun(api(), await register(api(), workflow([approval('gate')])));
    await resolve(api(), runId, 'gate', { action: 'refine', refineFeedback: { scope: 'whole', text: 'shorter' } });
    await api().until(runId, (snapshot) => (snapshot as Answer['body']).interrupt?.key === 'gate:1');
    for (const answer of await tryEverything(host(), first.interruptToken)) {
      expectRefusal(answer, 409, 'interrupt_already_resolved');
    }
    const second = await tokenOf(runId);
    expect((await host().anonymous.post(pathOf(second), { resumeValue: { action: 'accept' } })).status).toBe(200);
    expect((await api().ended(runId)).status).toBe('completed');
  });

  it.each([
    ['a question', interrupt('wait', 'custom', { customKind: 'c' }, { timeoutMs: 250 })],
    ['an approval', approval('wait', { timeoutMs: 250 })],
  ])('has expired when %s has', async (_what, waiting) => {
    const { interrupt: other } = await waitingCustom();
    const runId = await api().run(await register(api(), workflow([waiting])));
    await api().ended(runId);
    const [asked] = await eventsOf(api(), runId, 'node.suspended');
    // The interrupt waits for too short a time to ask for a token. This one would be good for longer: the interrupt decides.
    const token = await forged(host(), other.interruptToken, {
      runId,
      interruptId: asked.payload.interruptId,
      expiresAt: Date.now() + 600_000,
    });
    for (const answer of await tryEverything(host(), token)) {
      expectRefusal(answer, 410, 'interrupt_expired');
    }
  });

  it('that only allows to look does not allow to answer, however it is tried', async () => {
    const { runId, interrupt: shown } = await waitingCustom();
    const inspect = await forged(host(), shown.interruptToken, { intent: 'inspect' });
    const [look, ...answers] = await tryEverything(host(), inspect);
    expect(look!.status).toBe(200);
    for (const answer of answers) expectRefusal(answer, 403, 'forbidden');
    const expired = await forged(host(), shown.interruptToken, { intent: 'inspect', expiresAt: Date.now() - 1 });
    for (const answer of await tryEverything(host(), expired)) expectRefusal(answer, 410, 'interrupt_expired');
    await resolve(api(), runId, 'wait', 1);
    for (const token of [inspect, expired]) {
      for (const answer of await tryEverything(host(), token)) expectRefusal(answer, 409, 'interrupt_already_resolved');
    }
  });

  it('does not open what somebody must sign in for', async () => {
    const gate = await register(api(), workflow([governanceGate('gate', { requiredRole: 'editor' })]));
    for (const workflowId of ['conformance-interrupt-auth-required', gate]) {
      const { runId, interrupt: shown } = await waitingRun(api(), workflowId);
      const [look, ...answers] = await tryEverything(host(), shown.interruptToken);
      expect(look!.status).toBe(200);
      for (const answer of answers) expectRefusal(answer, 403, 'forbidden');
      expect(answers[0]!.body.details.scopeRequired).toBe('approvals:respond');
      expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('waiting-approval');
    }
  });

  it.each(BAD_BODIES.map((body) => [body]))('does not take %j for an answer', async (body) => {
    const { runId, interrupt: shown } = await waitingCustom();
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = { 'content-type': 'application/json' };
    const answer = await host().anonymous.request('POST', pathOf(shown.interruptToken), text, headers);
    expectRefusal(answer, 400, 'validation_error');
    expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('waiting-input');
  });

  it('says no to wrong answers as the run-scoped call does', async () => {
    const { interrupt: shown } = await waitingRun(api(), 'conformance-approval');
    const wrong = await host().anonymous.post(pathOf(shown.interruptToken), { resumeValue: { action: 'maybe' } });
    expectRefusal(wrong, 400, 'validation_error');
  });

  it('votes as nobody in particular: once, and not for people who are named', async () => {
    const { runId, interrupt: shown } = await waitingRun(api(), 'conformance-interrupt-quorum');
    for (const voter of ['ada', 'bob', 'cy']) {
      const resumeValue = { action: 'accept', voter };
      const { body } = await host().anonymous.post(pathOf(shown.interruptToken), { resumeValue });
      expect(body.status).toBe('waiting-approval');
    }
    const received = await eventsOf(api(), runId, 'approval.received');
    expect(received.map(({ payload }) => payload.decidedBy)).toEqual(['token-bearer']);
  });

  it.each([
    { approversList: ['ada', 'token-bearer'] },
    { approverRoleRefs: ['viewer'] },
    { approverGroupRefs: ['finance'] },
  ])('votes for nobody where %j names the approvers', async (named) => {
    const workflowId = await register(api(), workflow([approval('gate', named)]));
    const { runId, interrupt: gate } = await waitingRun(api(), workflowId);
    for (const more of [{}, { voter: 'ada' }]) {
      const resumeValue = { action: 'accept', ...more };
      const refused = await host().anonymous.post(pathOf(gate.interruptToken), { resumeValue });
      expectRefusal(refused, 403, 'forbidden');
    }
    expect((await host().anonymous.get(pathOf(gate.interruptToken))).status).toBe(200);
    expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('waiting-approval');
  });

  it('is shown only to those who may answer, fresh each time, and nowhere else', async () => {
    const { runId, interrupt: shown } = await waitingCustom();
    for (const who of ['editor', 'reviewer', 'owner'] as const) {
      const { body } = await host().as(who).get(`/v1/runs/${runId}`);
      expect(body.interrupt.callbackUrl).toBe(`${host().url}${pathOf(body.interrupt.interruptToken)}`);
    }
    const { body } = await host().as('viewer').get(`/v1/runs/${runId}`);
    expect(body.interrupt).toMatchObject({ kind: 'custom', nodeId: 'wait' });
    expect(body.interrupt).not.toHaveProperty('interruptToken');
    expect(body.interrupt).not.toHaveProperty('callbackUrl');
    await resolve(api(), runId, 'wait', 1);
    await api().ended(runId);
    const streams = await Promise.all(
      ['updates', 'values', 'messages', 'debug'].map((mode) =>
        api().frames(`/v1/runs/${runId}/events?streamMode=${mode}`),
      ),
    );
    const seen = [
      JSON.stringify(streams),
      (await api().get(`/v1/runs/${runId}`)).text,
      (await api().get(`/v1/runs/${runId}/events/poll`)).text,
      (await api().get('/v1/host/capstan/runs')).text,
      (await api().get('/v1/host/capstan/inbox')).text,
      (await api().get(`/v1/runs/${runId}/debug-bundle`)).text,
      (await host().as('owner').get('/v1/host/capstan/audit')).text,
      (await host().anonymous.get('/metrics')).text,
    ].join('\n');
    expect(seen).toContain(runId);
    expect(seen).not.toContain(shown.interruptToken.split('.')[1]);
    expect(seen).not.toContain('interruptToken');
    expect(seen).not.toContain('/v1/interrupts/ey');
  });

  describe('with an idempotency key', () => {
    it('answers once, and acknowledges the same way again', async () => {
      const { runId, interrupt: shown } = await waitingRun(api(), 'conformance-interrupt-external-event');
      const path = pathOf(shown.interruptToken);
      const headers = { 'idempotency-key': unique('event') };
      const resumeValue = { orderId: 'fixture-order-1', status: 'completed' };
      const answers = await Promise.all(
        Array.from({ length: 4 }, () => host().anonymous.post(path, { resumeValue }, headers)),
      );
      for (const { status, text } of answers) expect({ status, text }).toEqual({ status: 200, text: answers[0]!.text });
      await api().ended(runId);
      const late = await host().anonymous.post(path, { resumeValue }, headers);
      expect(late.text).toBe(answers[0]!.text);
      expect(late.headers.get('openwop-idempotent-replay')).toBe('true');
      expectRefusal(await host().anonymous.post(path, { resumeValue }), 409, 'interrupt_already_resolved');
      expect(await eventsOf(api(), runId, 'interrupt.resolved')).toHaveLength(1);
    });

    it('that somebody else uses as well, answers both', async () => {
      const headers = { 'idempotency-key': 'monday' };
      const resumeValue = { orderId: 'fixture-order-1', status: 'completed' };
      for (let count = 0; count < 2; count++) {
        const { interrupt: shown } = await waitingRun(api(), 'conformance-interrupt-external-event');
        const answer = await host().anonymous.post(pathOf(shown.interruptToken), { resumeValue }, headers);
        expect(answer.status, answer.text).toBe(200);
      }
    });

    it('keeps nothing of what strangers ask of tokens that nobody has', async () => {
      const count = async (): Promise<number> =>
        (await readStore(host().config, 'SELECT record_key FROM idempotency')).length;
      const before = await count();
      const answer = await host().anonymous.post(pathOf('a.b'), { resumeValue: 1 }, { 'idempotency-key': unique('x') });
      expect(answer.status).toBe(404);
      expect(await count()).toBe(before);
    });
  });
});

/** A clock that can be ahead of the machine's. */
class AheadClock implements Clock {
  aheadMs = 0;
  readonly now = (): number => realClock.now() + this.aheadMs;
  readonly after = realClock.after;
  readonly soon = realClock.soon;
}

describe.each(STORES)('a token of yesterday, on %s', (kind) => {
  const folder = freshFolder();
  const hosts: TestHost[] = [];
  let runId = '';
  let token = '';

  beforeAll(async () => {
    const patient = { dataFolder: folder.path, maxRunDurationMs: 1_000 * DAY_MS };
    const host = await startTestHost(kind, inject('postgresUrl'), patient);
    hosts.push(host);
    const workflowId = await register(host.as('editor'), workflow([interrupt('wait', 'custom', { customKind: 'c' })]));
    const { interrupt: shown, ...run } = await waitingRun(host.as('editor'), workflowId);
    [runId, token] = [run.runId, shown.interruptToken];
  });
  afterAll(async () => {
    await hosts.at(-1)?.stop();
    folder.remove();
  });

  /** Stops the host and starts it again, some time later. */
  async function restart(aheadMs: number): Promise<TestHost> {
    await hosts.at(-1)!.stop();
    const clock = new AheadClock();
    clock.aheadMs = aheadMs;
    const host = await hosts[0]!.another({}, clock);
    hosts.push(host);
    return host;
  }

  it('is known after a restart', async () => {
    const host = await restart(0);
    expect((await host.anonymous.get(pathOf(token))).body).toMatchObject({ runId, nodeId: 'wait' });
  });

  it('has expired when its time is up, though the run still waits and gives out new ones', async () => {
    const host = await restart(31 * MINUTE_MS);
    for (const answer of await tryEverything(host, token)) expectRefusal(answer, 410, 'interrupt_expired');
    const { body } = await host.as('editor').get(`/v1/runs/${runId}`);
    expect(body.status).toBe('waiting-input');
    expect((await host.anonymous.get(pathOf(body.interrupt.interruptToken))).status).toBe(200);
  });

  it('still opens what it stands for on the last moment of its life', async () => {
    const host = await restart(29 * MINUTE_MS);
    const answer = await host.anonymous.post(pathOf(token), { resumeValue: 'at last' });
    expect(answer.status).toBe(200);
    expect((await host.as('editor').ended(runId)).status).toBe('completed');
  });
});
