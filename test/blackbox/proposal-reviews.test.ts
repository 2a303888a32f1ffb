import { describe, expect, inject, it } from 'vitest';
import { createClient } from '../../src/client/index.ts';
import { Api } from '../support/api.ts';
import { capstan } from '../support/command-line.ts';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS, startTestHost } from '../support/host.ts';
import { resolve } from '../support/interrupts.ts';
import { keyRecords } from '../support/keys.ts';
import { apply, drafted, evidenceOf, PROPOSALS, revise, sha256, stateOf, template } from '../support/proposals.ts';
import { onEachStore } from '../support/stores.ts';

/** Nobody puts into use what they have not seen, and nobody alone what they wrote. */

const ADA_READS = {
  key: 'ada-of-alpha-reads',
  tenant: 'alpha',
  principal: 'ada-browser',
  person: 'ada',
  role: 'reviewer',
};
const ADA_ACTS = { ...ADA_READS, key: 'ada-of-alpha-acts', principal: 'ada-scripts' };
const apiKeys = keyRecords([ADA_READS, ADA_ACTS]);

onEachStore(
  'the review of a proposal',
  (host) => {
    const editor = () => host().as('editor');
    const reviewer = () => host().as('reviewer');
    const adaReads = () => new Api(host().url, ADA_READS.key);
    const adaActs = () => new Api(host().url, ADA_ACTS.key);
    const draft = () => drafted(editor(), 'prompt-template', template({ text: 'Good.' }));
    const corrupt = (id: string, artifact: object) =>
      revise(editor(), id, { artifact: { ...artifact, text: 'Bad.' }, note: 'a comma' });
    const applyWith = (api: Api, id: string, body?: object, headers?: Record<string, string>) =>
      api.post(`${PROPOSALS}/${id}/apply`, body, headers);
    const untouched = async (id: string) => {
      expect(await stateOf(editor(), id)).toBe('revised');
      expect((await evidenceOf(editor(), id)).gate).toBeUndefined();
    };

    it.each([
      ['the proposal', (id: string) => reviewer().get(`${PROPOSALS}/${id}`)],
      ['its evidence', (id: string) => evidenceOf(reviewer(), id)],
      ['the list', () => reviewer().get(PROPOSALS)],
    ])('is of what was read in %s: what an editor made of it later is not applied', async (_, read) => {
      const { id, artifact } = await draft();
      await read(id);
      await corrupt(id, artifact);
      const refused = await apply(reviewer(), id);
      expectRefusal(refused, 409, 'conflict');
      const { artifactHash } = await evidenceOf(editor(), id);
      expect(refused.body.details).toEqual({ reason: 'changed', artifactHash });
      await untouched(id);
      await reviewer().get(`${PROPOSALS}/${id}`);
      expect((await apply(reviewer(), id)).status).toBe(200);
    });

    it('is of one person, whichever of their keys they read with', async () => {
      const { id, artifact } = await draft();
      await adaReads().get(`${PROPOSALS}/${id}`);
      await corrupt(id, artifact);
      expectRefusal(await apply(adaActs(), id), 409, 'conflict');
      await untouched(id);
    });

    it('names what is applied by its hash, and another one is not applied', async () => {
      const { id, artifact } = await draft();
      const { artifactHash } = await evidenceOf(editor(), id);
      await corrupt(id, artifact);
      expectRefusal(await applyWith(reviewer(), id, { artifactHash }), 409, 'conflict');
      expectRefusal(await applyWith(reviewer(), id, { artifactHash: 'that one' }), 400, 'validation_error');
      await untouched(id);
      const current = (await evidenceOf(editor(), id)).artifactHash;
      const applied = await applyWith(reviewer(), id, { artifactHash: current });
      expect(applied.status).toBe(200);
      expect((await applyWith(reviewer(), id, { artifactHash: current })).body).toEqual(applied.body);
      expectRefusal(await applyWith(reviewer(), id, { artifactHash }), 409, 'conflict');
    });

    it('names it as well by the entity tag of the proposal', async () => {
      const { id, artifact } = await draft();
      const tagOf = async () => (await reviewer().get(`${PROPOSALS}/${id}`)).headers.get('etag')!;
      const stale = await tagOf();
      expect(stale).toMatch(/^"[0-9a-f]+"$/);
      const revised = await corrupt(id, artifact);
      expect(revised.headers.get('etag')).toBe(await tagOf());
      expectRefusal(await applyWith(reviewer(), id, undefined, { 'if-match': stale }), 409, 'conflict');
      await untouched(id);
      const tags = `${stale}, ${await tagOf()}`;
      expect((await applyWith(reviewer(), id, undefined, { 'if-match': tags })).status).toBe(200);
    });

    it('must name it on the pages of the console', async () => {
      const { id } = await draft();
      const headers = { 'x-capstan-console': '1' };
      expectRefusal(await applyWith(reviewer(), id, {}, headers), 400, 'validation_error');
      expectRefusal(await applyWith(reviewer(), id, {}, { ...headers, 'if-match': '*' }), 400, 'validation_error');
      const { artifactHash } = await evidenceOf(editor(), id);
      expect((await applyWith(reviewer(), id, { artifactHash }, headers)).status).toBe(200);
    });

    it('is of an artifact by its hash in the client and on the command line', async () => {
      const one = await draft();
      const client = createClient({ url: host().url, key: KEYS.reviewer.key });
      const artifactHash = sha256(JSON.stringify(one.artifact));
      await corrupt(one.id, one.artifact);
      await expect(client.applyProposal(one.id, { artifactHash })).rejects.toMatchObject({ status: 409 });
      const environment = { CAPSTAN_URL: host().url, CAPSTAN_KEY: KEYS.reviewer.key };
      const run = (...args: string[]) => capstan(['proposals', 'apply', one.id, ...args], { environment });
      expect(await run()).toMatchObject({ code: 2, err: expect.stringContaining('proposals diff') });
      expect((await run('--hash', artifactHash)).code).toBe(1);
      await untouched(one.id);
      expect((await run('--hash', (await evidenceOf(editor(), one.id)).artifactHash)).code).toBe(0);
    });

    it('is not by whoever wrote a part, however others edit title, note and text after them', async () => {
      const { id, artifact } = await draft();
      await revise(adaReads(), id, { artifact: { ...artifact, text: 'By Ada.' } });
      await revise(reviewer(), id, { title: 'Another title' });
      await revise(editor(), id, { artifact: { ...artifact, text: 'By Ada. And the editor.' } });
      await revise(reviewer(), id, { note: 'looks good' });
      const { runId, artifactHash } = await evidenceOf(adaActs(), id);
      for (const ada of [adaReads(), adaActs()]) expect((await apply(ada, id)).status).toBe(202);
      for (const ada of [adaReads(), adaActs()]) {
        const refused = await resolve(ada, runId, 'review', { decision: 'granted', artifactHash });
        expectRefusal(refused, 403, 'forbidden');
        expect(refused.body.details.reason).toBe('own-revision');
      }
      expect(await stateOf(editor(), id)).toBe('revised');
      // A title and a note are no part of the artifact, so who wrote them may approve it.
      expect((await resolve(reviewer(), runId, 'review', { decision: 'granted', artifactHash })).status).toBe(200);
      expect(await stateOf(editor(), id)).toBe('applied');
    });
  },
  { apiKeys },
);

describe('a host that demands the hash', () => {
  it('applies nothing without it', async () => {
    const settings = { activation: 'direct-rbac' as const, gates: [], pendingMax: 50, isHashRequired: true };
    const host = await startTestHost('sqlite', inject('postgresUrl'), { proposals: settings });
    try {
      const { id } = await drafted(host.as('editor'), 'prompt-template', template());
      expectRefusal(await apply(host.as('reviewer'), id), 400, 'validation_error');
      const { artifactHash } = await evidenceOf(host.as('editor'), id);
      const applied = await host.as('reviewer').post(`${PROPOSALS}/${id}/apply`, { artifactHash });
      expect(applied.status).toBe(200);
    } finally {
      await host.stop();
    }
  });
});
