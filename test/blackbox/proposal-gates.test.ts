import { describe, expect, inject, it } from 'vitest';
import { Api } from '../support/api.ts';
import { node, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { startTestHost } from '../support/host.ts';
import { eventsOf, resolve } from '../support/interrupts.ts';
import { keyRecords } from '../support/keys.ts';
import {
  agentPack,
  apply,
  chainPack,
  drafted,
  evidenceOf,
  INSTALLED,
  PROPOSALS,
  revise,
  rewrite,
  stateOf,
  template,
} from '../support/proposals.ts';
import { onEachStore } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** learning.md 3.5: who may put into use what was learnt, and what they agreed to. */

const SECOND = { key: 'second-reviewer-of-alpha', tenant: 'alpha', principal: 'second-reviewer', role: 'reviewer' };
const apiKeys = keyRecords([SECOND]);

onEachStore(
  'the gate of a proposal',
  (host) => {
    const editor = () => host().as('editor');
    const reviewer = () => host().as('reviewer');
    const owner = () => host().as('owner');
    const second = () => new Api(host().url, SECOND.key);
    const draft = (more = {}) => drafted(editor(), 'prompt-template', template(), more);

    /** A proposal that its reviewer has revised, and for which they have asked for agreement. */
    async function opened() {
      const { id } = await draft({ title: 'Shorter' });
      await rewrite(reviewer(), id);
      const { status, body } = await apply(reviewer(), id);
      expect(status).toBe(202);
      const { runId, artifactHash } = await evidenceOf(editor(), id);
      return { id, runId, artifactHash, approvalId: body.approvalId, pending: body };
    }

    const grant = (api: Api, runId: string, more: object) =>
      resolve(api, runId, 'review', { decision: 'granted', ...more });

    it('is not even opened by those who may not apply, and nothing changes', async () => {
      const { id } = await draft();
      const before = (await editor().get(`${PROPOSALS}/${id}`)).body;
      for (const path of [PROPOSALS, '/v1/host/sample/proposals']) {
        const refused = await editor().post(`${path}/${id}/apply`, {});
        expectRefusal(refused, 403, 'forbidden');
        expect(refused.body.details).toEqual({ scopeRequired: 'proposals:activate' });
      }
      expect((await editor().get(`${PROPOSALS}/${id}`)).body).toEqual(before);
      expect((await evidenceOf(editor(), id)).gate).toBeUndefined();
    });

    it('is opened and passed at once by a reviewer who wrote nothing of it', async () => {
      const { id } = await draft();
      const { status, body } = await apply(reviewer(), id);
      expect({ status, keys: Object.keys(body) }).toEqual({ status: 200, keys: ['installedArtifactRef'] });
      const { runId } = await evidenceOf(editor(), id);
      const types = (await editor().events(runId)).map(({ type }) => type);
      expect(types).toEqual([
        'run.started',
        'proposal.created',
        'node.started',
        'node.suspended',
        'interrupt.requested',
        'approval.granted',
        'interrupt.resolved',
        'node.resumed',
        'proposal.activated',
        'node.completed',
        'run.completed',
      ]);
      const [activated] = await eventsOf(editor(), runId, 'proposal.activated');
      const { activation } = (await editor().get(`${PROPOSALS}/${id}`)).body;
      expect(activated.payload).toEqual({ proposalId: id, kind: 'prompt-template', ...activation });
    });

    it('is only opened by whoever wrote the last revision, and granted by somebody else', async () => {
      const { id, runId, artifactHash, approvalId, pending } = await opened();
      expect(pending).toEqual({ proposalId: id, state: 'revised', activation: 'approval-gate', approvalId });
      expect((await apply(reviewer(), id)).body).toEqual(pending);
      expect((await apply(second(), id)).body).toEqual(pending);
      expect((await editor().get(`${PROPOSALS}/${id}`)).body).toMatchObject({ state: 'revised', activation: null });
      const own = await grant(reviewer(), runId, { artifactHash });
      expectRefusal(own, 403, 'forbidden');
      const granted = await grant(second(), runId, { artifactHash });
      expect({ status: granted.status, body: granted.body }).toEqual({
        status: 200,
        body: { runId, nodeId: 'review', status: 'completed' },
      });
      const { state, activation } = (await editor().get(`${PROPOSALS}/${id}`)).body;
      expect({ state, approvalId: activation.approvalId }).toEqual({ state: 'applied', approvalId });
      const { body } = await editor().get(`${INSTALLED}/${activation.installedArtifactRef}`);
      expect(body).toMatchObject({ proposalId: id, sha256: artifactHash, installedBy: 'second-reviewer' });
    });

    it('is not granted by anybody who wrote a revision, whoever wrote the last one', async () => {
      const { id } = await draft();
      await rewrite(reviewer(), id, 'the text');
      await rewrite(second(), id, 'a comma');
      const { runId, artifactHash } = await evidenceOf(reviewer(), id);
      expect((await apply(reviewer(), id)).status).toBe(202);
      for (const author of [reviewer(), second()]) {
        const refused = await grant(author, runId, { artifactHash });
        expectRefusal(refused, 403, 'forbidden');
        expect(refused.body.details.reason).toBe('own-revision');
      }
      expect((await grant(owner(), runId, { artifactHash })).status).toBe(200);
      expect(await stateOf(editor(), id)).toBe('applied');
    });

    it('wants to be told what exactly is agreed to, by somebody who may agree', async () => {
      const { id, runId, artifactHash } = await opened();
      expectRefusal(await grant(second(), runId, {}), 400, 'INVALID_RESUME_VALUE');
      expectRefusal(await grant(second(), runId, { artifactHash: '0'.repeat(64) }), 409, 'conflict');
      expectRefusal(await resolve(second(), runId, 'review', { artifactHash }), 400, 'INVALID_RESUME_VALUE');
      const refused = await grant(editor(), runId, { artifactHash });
      expectRefusal(refused, 403, 'forbidden');
      expect(refused.body.details).toMatchObject({ scopeRequired: 'proposals:activate' });
      expect(await stateOf(editor(), id)).toBe('revised');
      expect((await evidenceOf(editor(), id)).gate).toMatchObject({ artifactHash, grantedBy: [], quorum: 1 });
    });

    it('that is rejected leaves the proposal as it was, and may be asked again', async () => {
      const { id, runId, artifactHash, approvalId } = await opened();
      const no = { decision: 'rejected', reason: 'not yet', artifactHash };
      expect((await resolve(second(), runId, 'review', no)).status).toBe(200);
      expect(await stateOf(editor(), id)).toBe('revised');
      expectRefusal(await grant(second(), runId, { artifactHash }), 409, 'interrupt_already_resolved');
      const again = await apply(second(), id);
      expect(again.status).toBe(200);
      const { activation } = (await editor().get(`${PROPOSALS}/${id}`)).body;
      expect(activation.approvalId).not.toBe(approvalId);
    });

    it('is void once what is proposed is revised', async () => {
      const { id, runId, artifactHash } = await opened();
      await revise(editor(), id, { artifact: template({ text: 'Something else.' }) });
      expect((await evidenceOf(editor(), id)).gate).toBeUndefined();
      expectRefusal(await grant(second(), runId, { artifactHash }), 409, 'interrupt_already_resolved');
      expect(await stateOf(editor(), id)).toBe('revised');
      // It is the work of both now, so it takes somebody who has written nothing of it.
      expect((await apply(second(), id)).status).toBe(200);
    });

    it('goes with a proposal that is turned down', async () => {
      const { id, runId, artifactHash } = await opened();
      await editor().post(`${PROPOSALS}/${id}/reject`, { reason: 'no' });
      expectRefusal(await grant(second(), runId, { artifactHash }), 410, 'interrupt_gone');
      expect((await editor().get(`/v1/runs/${runId}`)).body.status).toBe('completed');
    });

    it('may be overridden by an owner who says why, also over their own work', async () => {
      const { id } = await draft();
      await rewrite(owner(), id);
      expect((await apply(owner(), id)).status).toBe(202);
      const { runId, artifactHash } = await evidenceOf(editor(), id);
      const override = (api: Api, reason: string) =>
        resolve(api, runId, 'review', { decision: 'overridden', reason, artifactHash });
      expectRefusal(await override(owner(), ' '), 400, 'INVALID_RESUME_VALUE');
      expectRefusal(await override(reviewer(), 'hurry'), 403, 'forbidden');
      expect((await override(owner(), 'nobody else is here')).status).toBe(200);
      expect(await stateOf(editor(), id)).toBe('applied');
      const { items } = (await owner().get('/v1/host/capstan/audit?action=gate.override')).body;
      expect(items[0]).toMatchObject({ actor: 'owner-of-alpha', target: runId });
    });

    it('is in the inbox with what it is about, beside the proposal itself', async () => {
      const { id, runId, artifactHash, approvalId } = await opened();
      const { items } = (await reviewer().get('/v1/host/capstan/inbox?limit=200')).body;
      const about = items.filter(({ proposalId }: { proposalId?: string }) => proposalId === id);
      expect(about.map(({ kind }: { kind: string }) => kind).sort()).toEqual(['gate', 'proposal']);
      expect(about.find(({ kind }: { kind: string }) => kind === 'gate')).toMatchObject({
        id: approvalId,
        title: 'Shorter',
        runId,
        nodeId: 'review',
        artifactHash,
        requiredScope: 'proposals:activate',
        link: `/console/proposals/${id}`,
      });
      await second().post(`${PROPOSALS}/${id}/reject`);
      const after = (await reviewer().get('/v1/host/capstan/inbox?limit=200')).body.items;
      expect(after.filter(({ proposalId }: { proposalId?: string }) => proposalId === id)).toEqual([]);
    });

    it('has a name in the inbox, also where somebody took it away', async () => {
      const { id } = await drafted(editor(), 'prompt-template', template(), { title: 'Shorter' });
      await rewrite(reviewer(), id);
      await revise(reviewer(), id, { title: '' });
      await apply(reviewer(), id);
      const { items } = (await reviewer().get('/v1/host/capstan/inbox?limit=200')).body;
      const titles = items.filter(({ proposalId }: { proposalId?: string }) => proposalId === id);
      expect(titles.map(({ title }: { title: string }) => title).sort()).toEqual([
        'Apply a proposal: prompt-template',
        'Proposed: prompt-template',
      ]);
    });

    it('takes no part in what people do to runs', async () => {
      const { runId } = await opened();
      for (const path of [`/v1/runs/${runId}/cancel`, `/v1/runs/${runId}:pause`]) {
        expectRefusal(await editor().post(path), 409, 'conflict');
      }
      expectRefusal(await editor().post(`/v1/runs/${runId}:fork`, { mode: 'branch', fromSeq: 0 }), 409, 'conflict');
      const listed = async (query: string) =>
        (await editor().get(`/v1/host/capstan/runs?limit=200${query}`)).body.items.map(
          (run: { runId: string }) => run.runId,
        );
      expect(await listed('')).not.toContain(runId);
      expect(await listed('&workflowId=capstan-proposal')).toContain(runId);
      expectRefusal(await editor().post('/v1/runs', { workflowId: 'capstan-proposal' }), 404, 'not_found');
      const usurper = workflow([node('mine')], [], { id: 'capstan-proposal' });
      expectRefusal(await editor().post(WORKFLOWS, usurper), 409, 'conflict');
    });
  },
  { apiKeys },
);

onEachStore(
  'a gate that its operator has made stricter',
  (host) => {
    const editor = () => host().as('editor');
    const reviewer = () => host().as('reviewer');
    const second = () => new Api(host().url, SECOND.key);

    it('takes as many people as its kind needs, each once', async () => {
      const { id } = await drafted(editor(), 'workflow-chain-pack', chainPack());
      expect((await apply(reviewer(), id)).status).toBe(202);
      const { runId, artifactHash, gate } = await evidenceOf(editor(), id);
      expect(gate).toMatchObject({ quorum: 2, grantedBy: ['reviewer-of-alpha'] });
      const vote = { decision: 'granted', artifactHash };
      const before = await editor().events(runId);
      expect((await resolve(reviewer(), runId, 'review', vote)).body.status).toBe('waiting-approval');
      expect(await editor().events(runId)).toEqual(before);
      expect(await stateOf(editor(), id)).toBe('draft');
      expect((await resolve(second(), runId, 'review', vote)).body.status).toBe('completed');
      expect(await stateOf(editor(), id)).toBe('applied');
    });

    it('takes the role that its kind needs', async () => {
      const { id } = await drafted(editor(), 'agent-pack', agentPack());
      expect((await apply(reviewer(), id)).status).toBe(202);
      const { runId, artifactHash } = await evidenceOf(editor(), id);
      const vote = { decision: 'granted', artifactHash };
      expectRefusal(await resolve(reviewer(), runId, 'review', vote), 403, 'forbidden');
      expect((await resolve(host().as('owner'), runId, 'review', vote)).status).toBe(200);
      expect(await stateOf(editor(), id)).toBe('applied');
    });

    it('is rejected when nobody decides in time, and may be asked again', async () => {
      const { id } = await drafted(editor(), 'prompt-template', template());
      await rewrite(reviewer(), id);
      const { body } = await apply(reviewer(), id);
      const { runId, artifactHash } = await evidenceOf(editor(), id);
      const [expired] = await until(
        () => eventsOf(editor(), runId, 'interrupt.resolved'),
        (events) => events.length > 0,
      );
      expect(expired.payload).toMatchObject({ interruptId: body.approvalId, outcome: 'rejected', reason: 'timeout' });
      const late = await resolve(second(), runId, 'review', { decision: 'granted', artifactHash });
      expectRefusal(late, 409, 'interrupt_already_resolved');
      expect(await stateOf(editor(), id)).toBe('revised');
      expect((await apply(second(), id)).status).toBe(200);
    });

    it('is as it always was for other tenants', async () => {
      const other = host().as('other');
      const { id } = await drafted(other, 'workflow-chain-pack', chainPack());
      expect((await apply(other, id)).status).toBe(200);
    });
  },
  {
    apiKeys,
    proposals: {
      activation: 'approval-gate',
      pendingMax: 50,
      gates: [
        { tenant: 'alpha', kind: 'workflow-chain-pack', quorum: 2 },
        { tenant: 'alpha', kind: 'agent-pack', requiredRole: 'owner' },
        { kind: 'prompt-template', timeoutSec: 0.05 },
      ],
    },
  },
);

describe('direct activation', () => {
  it('asks for the scope and for nobody else', async () => {
    const host = await startTestHost('sqlite', inject('postgresUrl'), {
      proposals: { activation: 'direct-rbac', gates: [], pendingMax: 50 },
    });
    try {
      const [editor, reviewer] = [host.as('editor'), host.as('reviewer')];
      const { agents } = (await host.anonymous.get('/.well-known/openwop')).body;
      expect(agents.proposals.activation).toBe('direct-rbac');
      const { id } = await drafted(editor, 'prompt-template', template());
      await rewrite(reviewer, id);
      expectRefusal(await apply(editor, id), 403, 'forbidden');
      expect((await apply(reviewer, id)).status).toBe(200);
      const { activation } = (await editor.get(`${PROPOSALS}/${id}`)).body;
      expect(activation.approvalId).toBeNull();
      const { runId } = await evidenceOf(editor, id);
      expect((await editor.events(runId)).map(({ type }) => type)).toEqual([
        'run.started',
        'proposal.created',
        'proposal.activated',
        'run.completed',
      ]);
    } finally {
      await host.stop();
    }
  });
});
