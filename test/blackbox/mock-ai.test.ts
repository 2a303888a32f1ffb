import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onOneStore } from '../support/stores.ts';

/** What a conformance suite sees of the envelope rules, through the model that it programs. */

type Body = Answer['body'];

const schemas = loadSchemas();
const NODE = 'structured-call';
const PROGRAM = '/v1/host/sample/test/mock-ai/program';
const BUDGET = `/v1/host/sample/test/mock-ai/last-dispatch-budget?nodeId=${NODE}`;

onOneStore('the programmed model', (host) => {
  const api = (): Api => host().as('editor');
  const perform = async (fixture: string, program: object[]) => {
    expect((await api().post(PROGRAM, { nodeId: NODE, program })).status).toBe(200);
    const runId = await api().run(`conformance-envelope-${fixture}`);
    const snapshot = await api().ended(runId);
    const events: Body[] = await api().events(runId);
    const told = events.filter(({ type }) => /^(envelope|cap|node\.failed)/.test(type));
    return { runId, snapshot, told: told.map(({ type, payload }) => [type, payload]), events };
  };
  const valid = { content: '{"valid":true}', stopReason: 'end_turn' };

  it('is asked again after what does not fit', async () => {
    const { snapshot, told } = await perform('retry-attempted', [{ content: 'prose' }, valid]);
    expect(snapshot.status).toBe('completed');
    expect(told).toEqual([
      [
        'envelope.retry.attempted',
        { nodeId: NODE, attempt: 2, reason: 'parse-error', previousError: expect.any(String) },
      ],
    ]);
  });

  it('is given up after as many attempts as are advertised', async () => {
    const { snapshot, told } = await perform(
      'retry-exhausted',
      Array.from('abcd', (content) => ({ content })),
    );
    const { envelopes } = (await api().get('/.well-known/openwop')).body;
    expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'envelope_invalid' } });
    const [, , [, exhausted]] = told as Body;
    expect(exhausted).toMatchObject({
      totalAttempts: envelopes.reliability.maxRetryAttempts,
      finalReason: 'parse-error',
    });
    expect(told.map(([type]) => type)).toEqual([
      'envelope.retry.attempted',
      'envelope.retry.attempted',
      'envelope.retry.exhausted',
      'cap.breached',
      'node.failed',
    ]);
  });

  it('refuses once and for all', async () => {
    const refusalText = 'That is not for me to say.';
    const { snapshot, told } = await perform('refusal', [{ stopReason: 'safety', refusalText }, valid]);
    expect(snapshot.error).toMatchObject({ code: 'envelope_refusal' });
    expect(JSON.stringify(snapshot.error)).not.toContain(refusalText);
    expect(told).toEqual([
      ['envelope.refusal', { nodeId: NODE, provider: 'mock', model: 'mock-mini', refusalText }],
      ['node.failed', expect.anything()],
    ]);
  });

  it('is given more room after it was cut off', async () => {
    const cut = { stopReason: 'max_tokens', content: '{"valid":' };
    const { snapshot, told } = await perform('truncated', [cut, valid]);
    expect(snapshot.status).toBe('completed');
    expect(told[0]).toEqual([
      'envelope.truncated',
      expect.objectContaining({ provider: 'mock', model: 'mock-mini', stopReason: 'max_tokens' }),
    ]);
    expect((await api().get(BUDGET)).body).toEqual({ maxTokens: 100 });
    const again = await perform('truncation-cap-exhaustion', [cut, cut, cut, valid]);
    expect(again.snapshot.error.code).toBe('envelope_truncation_unrecoverable');
    expect((await api().get(BUDGET)).body).toEqual({ maxTokens: 200 });
  });

  it('may put words around its answer', async () => {
    const { snapshot, told } = await perform('recovery-applied', [{ content: '```json\n{"result":"a"}\n```' }]);
    expect(snapshot.nodeStates[NODE].outputs.data).toEqual({ result: 'a' });
    expect(told).toEqual([['envelope.recovery.applied', { nodeId: NODE, path: 'markdown-fence', byteOffset: 8 }]]);
  });

  it('says the least that fits when nothing is laid out, and is replayed without being asked', async () => {
    const { runId, snapshot, events } = await perform('retry-attempted', []);
    expect(snapshot.nodeStates[NODE].outputs.data).toEqual({ valid: true });
    await api().post(PROGRAM, { nodeId: NODE, program: [{ content: '{"valid":false}' }] });
    const fork = await api().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq: 0 });
    await api().ended(fork.body.runId);
    const shape = (list: Body[]) =>
      list.map(({ type, payload }) => [type, type === 'output.chunk' ? payload.chunk : 0]);
    expect(shape(await api().events(fork.body.runId))).toEqual(shape(events));
  });

  it.each([
    { was: 'valid', is: 'refusal' },
    { was: 'refusal', is: 'valid' },
  ])('may not turn a $was into a $is unseen in a replay', async ({ was, is }) => {
    const refused = { stopReason: 'safety', refusalText: 'Not any more.' };
    const program = (kind: string) => ({ nodeId: NODE, program: [kind === 'valid' ? valid : refused] });
    await api().post(PROGRAM, program(was));
    const source = await api().ended(await api().run('conformance-phase4-replay-divergence'));
    expect(source.status).toBe(was === 'valid' ? 'completed' : 'failed');
    await api().post(PROGRAM, program(is));
    const fork = await api().post(`/v1/runs/${source.runId}:fork`, { mode: 'replay', fromSeq: 0 });
    expect(fork.status).toBe(201);
    const replayed = await api().ended(fork.body.runId);
    expect([replayed.status, replayed.error.code]).toEqual(['failed', 'replay_diverged_at_refusal']);
    const events: Body[] = await api().events(replayed.runId);
    const [shift, ...more] = events.filter(({ type }) => type === 'replay.divergedAtRefusal');
    expect(more).toEqual([]);
    const original = (await api().events(source.runId))[shift.payload.atSequence];
    expect(shift.payload).toEqual({
      sourceRunId: source.runId,
      atSequence: original.sequence,
      originalEventId: original.eventId,
      nodeId: NODE,
      originalEnvelopeKind: was,
      replayEnvelopeKind: is,
    });
    expect(schemas.payload(shift.type)?.(shift.payload) ?? []).toEqual([]);
    expect(events.map(({ type }) => type)).not.toContain('node.completed');
  });

  it('is asked by questions with a key that everybody can compute', async () => {
    const keyOf = async (body: object): Promise<string> => {
      const answer = await api().post('/v1/host/sample/test/llm-cache-key', body);
      expect(answer.status, answer.text).toBe(200);
      return answer.body.cacheKey;
    };
    const messages = [{ role: 'user', content: 'probe' }];
    const question = { provider: 'acme', model: 'm', messages, temperature: 0.5 };
    const text =
      '{"model":"m","provider":"acme","recipe":"openwop-semantic-request-v2",' +
      '"request":{"messages":[{"content":"probe","role":"user"}],"temperature":0.5}}';
    const key = await keyOf(question);
    expect(key).toBe(createHash('sha256').update(text).digest('hex'));
    const around = { stream: true, user: 'u', metadata: { a: 1 }, tenantId: 't', timeoutMs: 5, runId: 'r' };
    expect(await keyOf({ ...question, ...around })).toBe(key);
    expect(await keyOf({ ...question, seed: 1 })).not.toBe(key);
    expect((await api().post('/v1/host/sample/test/llm-cache-key', { provider: 'acme' })).status).toBe(400);
  });

  it("is each tenant's own", async () => {
    await host()
      .as('other')
      .post(PROGRAM, { nodeId: NODE, program: [{ content: '{"valid":false}' }] });
    const { snapshot } = await perform('retry-exhausted', [valid]);
    expect(snapshot.nodeStates[NODE].outputs.data).toEqual({ valid: true });
  });
});
