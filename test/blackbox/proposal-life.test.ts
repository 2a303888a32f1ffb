import { afterEach, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { unique } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import {
  apply,
  drafted,
  evidenceOf,
  INSTALLED,
  PROPOSALS,
  revise,
  sha256,
  template,
  tryDraft,
} from '../support/proposals.ts';
import { Receiver } from '../support/receiver.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onEachStore } from '../support/stores.ts';
import { Stream } from '../support/stream.ts';

/** learning.md 3.8 and contract 7: who hears what of a proposal, what is kept of it, and what is not said twice. */

const schemas = loadSchemas();
const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

onEachStore('the life of a proposal', (host) => {
  const editor = () => host().as('editor');
  const reviewer = () => host().as('reviewer');
  const owner = () => host().as('owner');

  /** A proposal that went through everything, and what it proposed. */
  async function lived() {
    const artifact = template({ text: 'Zimtstern' });
    const { id } = await drafted(editor(), 'prompt-template', artifact, {
      title: 'Lebkuchen',
      rationale: 'Spekulatius',
    });
    await revise(editor(), id, { artifact: { ...artifact, text: 'Zimtstern 2' }, note: 'sweeter' });
    const { installedArtifactRef: ref } = (await apply(reviewer(), id)).body;
    await reviewer().request('DELETE', `${INSTALLED}/${ref}`);
    await editor().request('DELETE', `${PROPOSALS}/${id}`);
    return { id, ref };
  }

  it('is told by the log of its run, in the shapes of the protocol, without what is proposed', async () => {
    const { id } = await lived();
    const { runId } = await evidenceOf(editor(), id);
    const events = await editor().events(runId);
    for (const event of events) {
      expect(schemas.event(event)).toEqual([]);
      expect(schemas.payload(event.type)?.(event.payload) ?? []).toEqual([]);
    }
    const told = events.filter(({ type }) => type.startsWith('proposal.'));
    expect(told.map(({ type }) => type)).toEqual(['proposal.created', 'proposal.activated']);
    expect(told[0].payload).toEqual({ proposalId: id, kind: 'prompt-template', sourceRunIds: [], duplicateOf: null });
    expect(JSON.stringify(told)).not.toMatch(/Lebkuchen|Spekulatius|Zimtstern/);
    expect(JSON.stringify(events)).not.toMatch(/Spekulatius|Zimtstern/);
  });

  it('is in the audit log, each move with who made it', async () => {
    const { id } = await lived();
    const { items } = (await owner().get('/v1/host/capstan/audit?limit=200')).body;
    const moves = items.filter(({ target }: Answer['body']) => target === id).reverse();
    expect(moves.map(({ action, actor }: Answer['body']) => [action, actor])).toEqual([
      ['proposal.create', 'editor-of-alpha'],
      ['proposal.revise', 'editor-of-alpha'],
      ['proposal.apply', 'reviewer-of-alpha'],
      ['proposal.uninstall', 'reviewer-of-alpha'],
      ['proposal.archive', 'editor-of-alpha'],
    ]);
  });

  it('is heard on the feed of the tenant', async () => {
    const stream = await Stream.open(`${host().url}/v1/host/capstan/events`, KEYS.editor.key);
    cleanUps.push(() => stream.drop());
    const { id } = await lived();
    const about = () =>
      stream.frames.filter(({ event, data }) => event?.startsWith('proposal.') && JSON.parse(data!).proposalId === id);
    await stream.until(() => about().length === 5);
    expect(about().map(({ event, data }) => [event, JSON.parse(data!).state])).toEqual([
      ['proposal.created', 'draft'],
      ['proposal.updated', 'revised'],
      ['proposal.activated', 'applied'],
      ['proposal.updated', 'applied'],
      ['proposal.updated', 'archived'],
    ]);
    expect(stream.frames.some(({ event }) => event === 'inbox.changed')).toBe(true);
    expect(stream.frames.filter(({ event }) => event === 'run.created')).toEqual([]);
  });

  it('is heard by webhooks: that something waits, that people are asked, what they said; and never of its run', async () => {
    const receiver = await Receiver.open();
    cleanUps.push(() => receiver.close());
    const events = [
      'proposal.created',
      'proposal.activated',
      'interrupt.requested',
      'approval.granted',
      'run.started',
      'run.completed',
    ];
    const { webhookId } = (await editor().post('/v1/webhooks', { url: receiver.url, events })).body;
    cleanUps.push(() => editor().request('DELETE', `/v1/webhooks/${webhookId}`));
    const { id } = await drafted(editor(), 'prompt-template', template());
    const { runId } = await evidenceOf(editor(), id);
    await apply(reviewer(), id);
    await receiver.until((arrivals) => arrivals.some(({ body }) => body.type === 'proposal.activated'));
    const types = receiver.arrivals.filter(({ body }) => body.runId === runId).map(({ body }) => body.type);
    expect(types).toEqual(['proposal.created', 'interrupt.requested', 'approval.granted', 'proposal.activated']);
  });

  it('has its history beside it: each revision with who wrote it, its hash and what it changed', async () => {
    const artifact = { templateId: unique('t'), version: '1.0.0', kind: 'user', text: 'one' };
    const source = await editor().run('conformance-noop');
    const { id } = await drafted(editor(), 'prompt-template', artifact, { sourceRunIds: [source] });
    const text = JSON.stringify({ ...artifact, text: 'two' });
    await revise(reviewer(), id, `{"artifact":${text},"note":"better"}`);
    const evidence = await evidenceOf(editor(), id);
    expect(evidence).toEqual({
      proposalId: id,
      artifactHash: sha256(text),
      runId: expect.stringMatching(/^run-/),
      revisions: [
        { at: expect.any(String), by: 'host', hash: sha256(JSON.stringify(artifact)), diff: expect.any(String) },
        {
          at: expect.any(String),
          by: 'reviewer-of-alpha',
          hash: sha256(text),
          diff: expect.stringContaining('-  "text": "one"\n+  "text": "two"'),
          note: 'better',
        },
      ],
      sources: [{ runId: source, why: 'a test says so' }],
      nearest: [],
    });
    expect(evidence.revisions[0].diff.split('\n').every((line: string) => line.startsWith('+'))).toBe(true);
  });

  it('has a history that can be read at one go, however long people want it', async () => {
    const { id } = await drafted(editor(), 'prompt-template', template());
    const long = JSON.stringify(template()).replace('{', `{${' '.repeat(1_000_000)}`);
    const rewrite = () => revise(editor(), id, `{"artifact":${long}}`);
    for (let count = 0; count < 3; count++) expect((await rewrite()).status).toBe(200);
    const refused = await rewrite();
    expectRefusal(refused, 409, 'conflict');
    expect(refused.body.details).toEqual({ limit: 4_000_000 });
    expect((await evidenceOf(editor(), id)).revisions).toHaveLength(4);
    expect((await editor().post(`${PROPOSALS}/${id}/reject`)).body.state).toBe('rejected');
  });

  it('is not begun again on the same evidence, whatever became of it', async () => {
    const evidenceKey = unique('evidence');
    const again = () => tryDraft(editor(), 'prompt-template', template(), { evidenceKey });
    const { id } = (await again()).body;
    expect((await again()).body.details).toEqual({ reason: 'known-evidence' });
    await editor().post(`${PROPOSALS}/${id}/reject`);
    expect((await again()).body.details).toEqual({ reason: 'known-evidence' });
    await editor().request('DELETE', `${PROPOSALS}/${id}`);
    expect((await again()).body.details).toEqual({ reason: 'known-evidence' });
    const elsewhere = await tryDraft(host().as('other'), 'prompt-template', template(), { evidenceKey });
    expect(elsewhere.status).toBe(201);
  });

  it('is seen by those who may read proposals, and moved by those who may write them', async () => {
    const { id } = await drafted(editor(), 'prompt-template', template());
    const [viewer, nobody] = [host().as('viewer'), host().as('nothing')];
    expect((await viewer.get(`${PROPOSALS}/${id}`)).status).toBe(200);
    const refused: [Api, string, string, string][] = [
      [nobody, 'GET', `${PROPOSALS}/${id}`, 'proposals:read'],
      [nobody, 'GET', `/v1/host/capstan/proposals/${id}/evidence`, 'proposals:read'],
      [nobody, 'GET', INSTALLED, 'proposals:read'],
      [viewer, 'PATCH', `${PROPOSALS}/${id}`, 'proposals:write'],
      [viewer, 'POST', `${PROPOSALS}/${id}/reject`, 'proposals:write'],
      [viewer, 'DELETE', `${PROPOSALS}/${id}`, 'proposals:write'],
      [viewer, 'POST', `${PROPOSALS}/${id}/apply`, 'proposals:activate'],
    ];
    for (const [api, method, path, scopeRequired] of refused) {
      const answer = await api.request(method, path, method === 'PATCH' ? { note: 'x' } : undefined);
      expectRefusal(answer, 403, 'forbidden');
      expect(answer.body.details).toEqual({ scopeRequired });
    }
    const { items } = (await nobody.get('/v1/host/capstan/inbox')).body ?? {};
    expect(JSON.stringify(items ?? [])).not.toContain(id);
  });
});

describe('proposals that wait', () => {
  it('are no more than the operator allows, and make room when they are decided on', async () => {
    const host = await startTestHost('sqlite', undefined, {
      proposals: { activation: 'approval-gate', gates: [], pendingMax: 2 },
    });
    cleanUps.push(() => host.stop());
    const editor = host.as('editor');
    const { id } = await drafted(editor, 'prompt-template', template());
    await drafted(editor, 'prompt-template', template());
    const evidenceKey = unique('evidence');
    const third = () => tryDraft(editor, 'prompt-template', template(), { evidenceKey });
    expect((await third()).body.details).toEqual({ reason: 'too-many-pending' });
    await editor.post(`${PROPOSALS}/${id}/reject`);
    expect((await third()).status).toBe(201);
  });
});

describe('two hosts on one database', () => {
  it('install once, however many apply at the same time', async () => {
    const one = await startTestHost('postgres', inject('postgresUrl'));
    cleanUps.push(() => one.stop());
    const two = await one.another();
    cleanUps.unshift(() => two.stop());
    for (let round = 0; round < 3; round++) {
      const { id } = await drafted(one.as('editor'), 'prompt-template', template());
      const answers = await Promise.all(
        [one, two, one, two, one, two].map((host: TestHost) => apply(host.as('reviewer'), id)),
      );
      expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200));
      expect(new Set(answers.map(({ body }) => body.installedArtifactRef)).size).toBe(1);
      const { runId } = await evidenceOf(two.as('editor'), id);
      const types = (await two.as('editor').events(runId)).map(({ type }) => type);
      expect(types.filter((type) => type === 'proposal.activated')).toHaveLength(1);
      const { items } = (await one.as('editor').get(INSTALLED)).body;
      expect(items.filter(({ proposalId }: Answer['body']) => proposalId === id)).toHaveLength(1);
    }
  });

  it('let one of those through who decide differently at the same time', async () => {
    const one = await startTestHost('postgres', inject('postgresUrl'));
    cleanUps.push(() => one.stop());
    const two = await one.another();
    cleanUps.unshift(() => two.stop());
    for (let round = 0; round < 5; round++) {
      const { id } = await drafted(one.as('editor'), 'prompt-template', template());
      const [applied, rejected, revised] = await Promise.all([
        apply(one.as('reviewer'), id),
        two.as('editor').post(`${PROPOSALS}/${id}/reject`),
        revise(one.as('owner'), id, { note: 'mine' }),
      ]);
      const { state } = (await two.as('editor').get(`${PROPOSALS}/${id}`)).body;
      expect(['applied', 'rejected']).toContain(state);
      expect([applied.status === 200, rejected.status === 200].filter(Boolean)).toHaveLength(1);
      expect([200, 409]).toContain(revised.status);
      const { items } = (await one.as('editor').get(INSTALLED)).body;
      const installs = items.filter(({ proposalId }: Answer['body']) => proposalId === id);
      expect(installs).toHaveLength(state === 'applied' ? 1 : 0);
    }
  });
});

describe('under the conformance switch', () => {
  it('there is a draft for whoever has a configured key, once, which they may see and not apply', async () => {
    const first = await startTestHost('postgres', inject('postgresUrl'), { samples: true });
    cleanUps.push(() => first.stop());
    const host = await first.another();
    cleanUps.push(() => host.stop());
    for (const who of ['editor', 'workspace', 'test'] as const) {
      const { proposals } = (await host.as(who).get('/v1/host/sample/proposals?state=draft')).body;
      const { workspace } = { workspace: undefined, ...KEYS[who] };
      const own = proposals.filter(({ owner }: Answer['body']) => owner.workspace === workspace);
      expect(own).toHaveLength(1);
      expectRefusal(await host.as(who).post(`/v1/host/sample/proposals/${own[0].id}/apply`, {}), 403, 'forbidden');
    }
  });
});
