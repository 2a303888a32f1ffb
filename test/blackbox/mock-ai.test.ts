import { expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { onEachStore } from '../support/stores.ts';

/** What a conformance suite sees of the envelope rules, through the model that it programs. */

type Body = Answer['body'];

const NODE = 'structured-call';
const PROGRAM = '/v1/host/sample/test/mock-ai/program';
const BUDGET = `/v1/host/sample/test/mock-ai/last-dispatch-budget?nodeId=${NODE}`;

onEachStore('the programmed model', (host) => {
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

  it("is each tenant's own", async () => {
    await host()
      .as('other')
      .post(PROGRAM, { nodeId: NODE, program: [{ content: '{"valid":false}' }] });
    const { snapshot } = await perform('retry-exhausted', [valid]);
    expect(snapshot.nodeStates[NODE].outputs.data).toEqual({ valid: true });
  });
});
