import { describe, expect, it } from 'vitest';
import { unique } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { apply, drafted, evidenceOf, INSTALLED, PROPOSALS, revise, stateOf, template } from '../support/proposals.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onEachStore } from '../support/stores.ts';

/** learning.md 3: what is learnt, what people may do with it, and what never happens by itself. */

const schemas = loadSchemas();
const SAMPLE = '/v1/host/sample/proposals';

onEachStore('a proposal', (host) => {
  const editor = () => host().as('editor');
  const reviewer = () => host().as('reviewer');
  const draft = (more = {}) => drafted(editor(), 'prompt-template', template(), more);

  it('is a closed object wherever it is read, and the same in both places', async () => {
    const [ours, theirs] = [await editor().run('conformance-noop'), await host().as('other').run('conformance-noop')];
    const sourceRunIds = [ours, theirs, 'run-that-never-was'];
    const { id } = await draft({ title: 'Shorter digest', rationale: 'Three reviewers cut it.', sourceRunIds });
    const { body } = await editor().get(`${PROPOSALS}/${id}`);
    expect(schemas.proposal(body)).toEqual([]);
    expect(body).toMatchObject({
      id,
      kind: 'prompt-template',
      state: 'draft',
      title: 'Shorter digest',
      provenance: { sourceRunIds: [ours] },
      duplicateOf: null,
      activation: null,
      owner: { tenant: 'alpha', principal: 'editor-of-alpha' },
    });
    expect((await editor().get(`${SAMPLE}/${id}`)).body).toEqual(body);
    const listed = (await editor().get(`${SAMPLE}?state=draft`)).body.proposals;
    expect(listed.find((each: { id: string }) => each.id === id)).toEqual(body);
    for (const each of listed) expect(schemas.proposal(each)).toEqual([]);
  });

  it('is listed by state and kind; of a state that there is not there are none', async () => {
    const { id } = await draft();
    const ids = async (query: string) =>
      (await editor().get(`${PROPOSALS}?${query}`)).body.proposals.map((each: { id: string }) => each.id);
    expect(await ids('state=draft&kind=prompt-template')).toContain(id);
    expect(await ids('kind=automation')).not.toContain(id);
    expect(await ids('state=pending')).toEqual([]);
  });

  it('is walked through page by page', async () => {
    const made = [await draft(), await draft()].map(({ id }) => id);
    const first = (await editor().get(`${PROPOSALS}?limit=1`)).body;
    expect(first.proposals.map(({ id }: { id: string }) => id)).toEqual([made[1]]);
    const second = (await editor().get(`${PROPOSALS}?limit=1&cursor=${first.nextCursor}`)).body;
    expect(second.proposals.map(({ id }: { id: string }) => id)).toEqual([made[0]]);
  });

  it('has nothing of secrets in it, wherever they stood', async () => {
    const secret = ['sk', 'ant-api03-Zq8Rk2Lw9Tv4Xy7Bn3Md6Fs1Hj5Pc0Gu'].join('-');
    const { id } = await drafted(editor(), 'prompt-template', template({ text: `use ${secret}` }), { title: secret });
    const { text } = await editor().get(`${PROPOSALS}/${id}`);
    expect(text).not.toContain(secret);
    const refused = await revise(editor(), id, { artifact: template({ text: secret }) });
    expectRefusal(refused, 422, 'validation_error');
    expect(refused.body.details.path).toBe('/text');
    expect((await revise(editor(), id, { rationale: secret })).text).not.toContain(secret);
  });

  describe('moves', () => {
    it('to revised, as often as somebody wants, and changes nothing but what may be changed', async () => {
      const made = await draft({ title: 'Before' });
      const artifact = template({ text: 'After' });
      const { status, body } = await revise(editor(), made.id, { artifact, title: 'After', note: 'shorter' });
      expect(status).toBe(200);
      expect(body).toEqual({ ...made, state: 'revised', artifact, title: 'After', updatedAt: body.updatedAt });
      expect((await revise(editor(), made.id, { note: 'looks fine' })).body).toMatchObject({
        state: 'revised',
        artifact,
      });
      for (const wrong of [{ state: 'applied' }, { artifact: 'text' }, {}, { kind: 'automation' }]) {
        expectRefusal(await revise(editor(), made.id, wrong), 400, 'validation_error');
      }
      expect(await stateOf(editor(), made.id)).toBe('revised');
    });

    it('to rejected, for good, with a reason that only the evidence has', async () => {
      const { id } = await draft();
      const { status, body } = await editor().post(`${PROPOSALS}/${id}/reject`, { note: 'too short' });
      expect({ status, state: body.state }).toEqual({ status: 200, state: 'rejected' });
      expect(schemas.proposal(body)).toEqual([]);
      expect((await evidenceOf(editor(), id)).rejectReason).toBe('too short');
      expect((await editor().post(`${PROPOSALS}/${id}/reject`)).body).toEqual(body);
      expectRefusal(await revise(editor(), id, { title: 'again' }), 409, 'conflict');
      const refused = await apply(reviewer(), id);
      expectRefusal(refused, 409, 'conflict');
      expect(refused.body.details).toEqual({ state: 'rejected' });
      expect((await editor().request('DELETE', `${PROPOSALS}/${id}`)).body.state).toBe('archived');
    });

    it('to archived, from where nothing leads on', async () => {
      const { id } = await draft();
      expect((await editor().request('DELETE', `${PROPOSALS}/${id}`)).body.state).toBe('archived');
      expect((await editor().request('DELETE', `${PROPOSALS}/${id}`)).status).toBe(200);
      expectRefusal(await revise(editor(), id, { title: 'again' }), 409, 'conflict');
      expectRefusal(await apply(reviewer(), id), 409, 'conflict');
      expectRefusal(await editor().post(`${PROPOSALS}/${id}/reject`), 409, 'conflict');
    });

    it('to applied, once, from where it is only put away when it is uninstalled', async () => {
      const { id } = await draft();
      const applied = await apply(reviewer(), id);
      expect(applied.status).toBe(200);
      const ref = applied.body.installedArtifactRef;
      expect((await apply(reviewer(), id)).body).toEqual({ installedArtifactRef: ref });
      const { body } = await editor().get(`${PROPOSALS}/${id}`);
      expect(schemas.proposal(body)).toEqual([]);
      expect(body.activation).toEqual({ installedArtifactRef: ref, approvalId: expect.stringMatching(/^int-/) });
      expectRefusal(await revise(editor(), id, { title: 'again' }), 409, 'conflict');
      expectRefusal(await editor().post(`${PROPOSALS}/${id}/reject`), 409, 'conflict');
      expectRefusal(await editor().request('DELETE', `${PROPOSALS}/${id}`), 409, 'conflict');
      expect((await reviewer().request('DELETE', `${INSTALLED}/${ref}`)).status).toBe(204);
      expectRefusal(await reviewer().request('DELETE', `${INSTALLED}/${ref}`), 404, 'not_found');
      expectRefusal(await apply(reviewer(), id), 409, 'conflict');
      expect((await evidenceOf(editor(), id)).uninstalledAt).toEqual(expect.any(String));
      expect((await editor().request('DELETE', `${PROPOSALS}/${id}`)).body).toMatchObject({
        state: 'archived',
        activation: null,
      });
    });
  });

  it('takes one answer for a key, however often it is asked', async () => {
    const { id } = await draft();
    const key = { 'idempotency-key': unique('key') };
    const [first, second] = await Promise.all([1, 2].map(() => reviewer().post(`${PROPOSALS}/${id}/apply`, {}, key)));
    expect(first!.body).toEqual(second!.body);
    expect(first!.status).toBe(200);
  });
});
