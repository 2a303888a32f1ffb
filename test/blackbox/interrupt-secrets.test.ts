import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { everythingAtRest } from '../support/at-rest.ts';
import { freshFolder, migratedDatabase } from '../support/database.ts';
import { expression, node, register, workflow } from '../support/definitions.ts';
import { startHostWith, type TestHost } from '../support/host.ts';
import {
  approval,
  clarification,
  governanceGate,
  interrupt,
  resolve,
  waitingRun,
  waits,
} from '../support/interrupts.ts';
import { STORES } from '../support/stores.ts';

/** durability.md 7.1: what people and programs answer may hold secrets; they are never shown, logged or kept. */

const MARKER = 'Seepferdchen';
const SECRETS = [
  `sk-${MARKER}0123456789abcdefghij`,
  `sk-ant-api03-${MARKER}-0123456789abcdefghij`,
  `AIza${MARKER}0123456789abcdefghijklmno`,
  `eyJhbGciOiJIUzI1NiJ9.eyJ${MARKER}0123456789.${MARKER}abcdefghijklmnop`,
];

describe.each(STORES)('secrets in answers, on %s', (kind) => {
  const folder = freshFolder();
  let databaseUrl: string | undefined;
  let host: TestHost;
  const runIds: string[] = [];
  const tokens: string[] = [];
  const said: Answer[] = [];
  const api = (): Api => host.as('editor');

  beforeAll(async () => {
    databaseUrl = kind === 'postgres' ? await migratedDatabase(inject('postgresUrl')) : undefined;
    host = await startHostWith({
      CAPSTAN_DATA: folder.path,
      CAPSTAN_LOG: 'trace',
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
    });
    for (const secret of SECRETS) await answerWith(secret);
  });
  afterAll(async () => {
    await host?.stop();
    folder.remove();
  });

  /** Answers everything that can be asked, with a secret wherever there is room for one. */
  async function answerWith(secret: string): Promise<void> {
    // The artifact is put together from pieces that say nothing, only when the gate is reached.
    const assembled = secret
      .match(/.{1,4}/g)!
      .map((piece) => JSON.stringify(piece))
      .join(' + ');
    const nodes = [
      approval('approval', { requiredApprovals: 2 }, { inputs: { artifact: expression(assembled) } }),
      governanceGate('gate', { requiredRole: 'editor', override: { requiredRole: 'editor' }, quorum: 9 }),
      clarification('questions', [{ id: 'q', question: 'Why?' }]),
      interrupt('event', 'external-event', { eventType: 'e', correlation: { id: 1 } }),
      interrupt('custom', 'custom', { customKind: 'c' }),
      node('after'),
    ];
    const { runId, interrupt: first } = await waitingRun(api(), await register(api(), workflow(nodes)));
    runIds.push(runId);
    tokens.push(first.interruptToken);
    const say = async (answer: Promise<Answer>, status = 200): Promise<void> => {
      said.push(await answer);
      expect(said.at(-1)!.status, said.at(-1)!.text).toBe(status);
    };
    const give = (nodeId: string, value: unknown, status = 200): Promise<void> =>
      say(resolve(api(), runId, nodeId, value, { 'idempotency-key': `${nodeId}-${said.length}-${runId}` }), status);
    await give('approval', { action: 'ask', question: `is ${secret} right?`, voter: secret });
    await give('approval', { action: secret }, 400);
    await give('approval', { action: 'accept', voter: secret, feedback: `use ${secret}`, [secret]: secret });
    await give('approval', {
      action: 'edit-accept',
      editedArtifactData: { deep: [{ key: secret }] },
      decidedBy: secret,
    });
    await give('gate', { decision: secret }, 400);
    await give('gate', { decision: 'overridden', reason: `because of ${secret}` });
    await give('questions', { answers: { [secret]: 1 } }, 400);
    await give('questions', { answers: { q: secret, [secret]: secret } });
    await give('event', { id: secret }, 422);
    await give('event', { id: 1, body: secret, list: [secret] });
    await give('custom', secret);
    await give('gate', { decision: 'rejected', reason: secret });
    await say(api().post(`/v1/runs/${runId}/interrupts/${encodeURIComponent(secret)}`, { resumeValue: secret }), 404);
    await say(api().get(`/v1/interrupts/${encodeURIComponent(secret)}`), 404);
    await say(api().post(`/v1/interrupts/${encodeURIComponent(secret)}`, { resumeValue: secret, [secret]: 1 }), 404);
    await api().ended(runId);
    await refineWith(secret);
  }

  async function refineWith(secret: string): Promise<void> {
    const { runId } = await waitingRun(api(), await register(api(), workflow([approval('gate')])));
    runIds.push(runId);
    const refineFeedback = { scope: 'section', sectionPath: secret, tags: [secret], text: `say ${secret}` };
    said.push(await resolve(api(), runId, 'gate', { action: 'refine', refineFeedback }));
    said.push(await resolve(api(), runId, 'gate', { decision: 'rejected', feedback: secret }));
    await waits(api(), runId);
    tokens.push((await api().get(`/v1/runs/${runId}`)).body.interrupt.interruptToken);
  }

  it('are in no answer, snapshot, log, stream or list', async () => {
    const texts = said.map(({ text }) => text);
    for (const runId of runIds) {
      texts.push(
        (await api().get(`/v1/runs/${runId}`)).text,
        (await api().get(`/v1/runs/${runId}/events/poll`)).text,
        JSON.stringify(await api().events(runId)),
      );
    }
    for (const mode of ['updates', 'values', 'debug']) {
      const { frames } = await api().frames(`/v1/runs/${runIds[0]}/events?streamMode=${mode}`);
      texts.push(JSON.stringify(frames));
    }
    texts.push((await api().get('/v1/host/capstan/inbox?limit=200')).text);
    for (const token of tokens) texts.push((await api().get(`/v1/interrupts/${token}`)).text);
    for (const text of texts) expect(text).not.toContain(MARKER);
  });

  it('leave a mark where they were, and the answers around them whole', async () => {
    const events = await api().events(runIds[0]!);
    const resolved = Object.fromEntries(
      events.filter(({ type }) => type === 'interrupt.resolved').map(({ nodeId, payload }) => [nodeId, payload]),
    );
    expect(resolved.event.resumeValue).toEqual({ id: 1, body: '[REDACTED]', list: ['[REDACTED]'] });
    expect(resolved.custom.resumeValue).toBe('[REDACTED]');
    expect(resolved.approval.resumeValue).toMatchObject({
      action: 'edit-accept',
      editedArtifactData: { deep: [{ key: '[REDACTED]' }] },
      decidedBy: 'editor-of-alpha',
    });
    const asked = events.find(({ nodeId, type }) => type === 'interrupt.requested' && nodeId === 'approval');
    expect(asked.payload.data.artifactData).toEqual({ artifact: '[REDACTED]' });
    const overridden = events.find(({ type }) => type === 'approval.overridden');
    expect(overridden.payload.reason).toBe('because of [REDACTED]');
  });

  it('are not in what the host printed, and neither are tokens', () => {
    const output = host.output();
    expect(output.split('\n').length).toBeGreaterThan(50);
    expect(output).not.toContain(MARKER);
    for (const token of tokens) expect(output).not.toContain(token.split('.')[1]);
  });

  // Last: it ends the host.
  it('are nowhere at rest, and neither are tokens', async () => {
    await host.stop();
    const kept = await everythingAtRest(folder.path, databaseUrl);
    expect(kept).toContain('interrupt.resolved');
    const at = kept.indexOf(MARKER);
    expect(at < 0 ? '' : kept.slice(Math.max(0, at - 200), at + 100)).toBe('');
    for (const token of tokens) expect(kept.includes(token.split('.')[1]!)).toBe(false);
  });
});
