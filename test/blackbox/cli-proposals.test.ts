import { expect, it } from 'vitest';
import { GROUPS } from '../../src/cli/commands/index.ts';
import { capstan, type Ran, untried } from '../support/command-line.ts';
import { KEYS } from '../support/host.ts';
import { drafted, evidenceOf, rewrite, stateOf, template } from '../support/proposals.ts';
import { onOneStore } from '../support/stores.ts';

/** contract 5 and 7: what agents have learnt, from the command line. */

onOneStore('capstan proposals', (host) => {
  const as =
    (who: keyof typeof KEYS, environment: Record<string, string> = {}) =>
    (...args: string[]): Promise<Ran> =>
      capstan(['proposals', ...args], {
        environment: { CAPSTAN_URL: host().url, CAPSTAN_KEY: KEYS[who].key, ...environment },
      });
  const draft = (more = {}) => drafted(host().as('editor'), 'prompt-template', template({ text: 'One.' }), more);

  const hashOf = async (id: string): Promise<string> => (await evidenceOf(host().as('editor'), id)).artifactHash;

  it('lists, and shows what the host answers with --json', async () => {
    const { id } = await draft({ title: 'Shorter' });
    const listed = await as('editor')('list', '--state', 'draft', '--json');
    expect(listed.code).toBe(0);
    expect(listed.json.proposals.map((each: { id: string }) => each.id)).toContain(id);
    expect((await as('editor')('list', '--kind', 'prompt-template')).out).toMatch(
      `${id}  prompt-template  draft  Shorter`,
    );
    const { json, code } = await as('editor')('get', id, '--json');
    expect({ code, json }).toEqual({ code: 3, json: (await host().as('editor').get(`/v1/proposals/${id}`)).body });
  });

  it('ends with how it stands: waiting, applied, or come to nothing', async () => {
    const { id } = await draft();
    expect((await as('editor')('apply', id, '--hash', await hashOf(id))).code).toBe(1);
    const applied = await as('reviewer')('apply', id, '--hash', await hashOf(id));
    expect(applied).toMatchObject({ code: 0, out: expect.stringMatching(/^Applied: art-/) });
    expect((await as('editor')('get', id)).code).toBe(0);
    const other = await draft();
    expect((await as('editor')('reject', other.id, '--note', 'no')).code).toBe(1);
    expect((await evidenceOf(host().as('editor'), other.id)).rejectReason).toBe('no');
    expect((await as('editor')('archive', other.id)).code).toBe(2);
    expect(await stateOf(host().as('editor'), other.id)).toBe('rejected');
    expect((await as('editor')('archive', other.id, '--yes')).code).toBe(1);
    expect(await stateOf(host().as('editor'), other.id)).toBe('archived');
  });

  /** A proposal whose gate is open: its reviewer wrote a part of it, so another one has to approve. */
  const gated = async () => {
    const { id } = await draft();
    await rewrite(host().as('reviewer'), id);
    const hash = await hashOf(id);
    const { code, out, err } = await as('reviewer')('apply', id, '--hash', hash);
    const { runId } = await evidenceOf(host().as('editor'), id);
    return { id, hash, runId, applied: { code, out, err } };
  };
  const approvals = (who: keyof typeof KEYS, args: readonly string[], typed?: readonly string[]): Promise<Ran> =>
    capstan(['approvals', ...args], {
      environment: { CAPSTAN_URL: host().url, CAPSTAN_KEY: KEYS[who].key },
      ...(typed && { typed }),
    });

  it('says who has to agree, why, and how', async () => {
    const { id, hash, runId, applied } = await gated();
    expect(applied.code).toBe(3);
    expect(applied.out).toContain('You wrote a part of it or lack a role that its gate requires');
    expect(applied.err).toContain(`capstan approvals approve ${runId} review`);
    const second = await as('owner')('apply', id, '--hash', hash);
    expect(second).toMatchObject({
      code: 3,
      err: expect.stringContaining(`capstan approvals approve ${runId} review`),
    });
    expect(second.out).toContain('Its gate was open already; applying again is no vote. It has 0 of 1 vote.');
    expect(await approvals('owner', ['approve', runId, 'review', '--hash', hash])).toMatchObject({ code: 0 });
    expect((await as('editor')('get', id, '-q')).code).toBe(0);
  });

  it('is not approved unseen: in a script its hash is required', async () => {
    const { id, hash, runId } = await gated();
    for (const more of [[], ['--yes']]) {
      const unseen = await approvals('owner', ['approve', runId, 'review', ...more]);
      expect(unseen).toMatchObject({ code: 2, err: expect.stringContaining(`capstan proposals diff ${id}`) });
    }
    const other = await approvals('owner', ['approve', runId, 'review', '--hash', hash.replaceAll(/./g, '0')]);
    expect(other).toMatchObject({ code: 1, err: expect.stringContaining('Review the current version') });
    expect(await stateOf(host().as('editor'), id)).toBe('revised');
  });

  it('is not approved unseen: at a terminal it is shown, with its hash', async () => {
    const { id, hash, runId } = await gated();
    const shown = await approvals('owner', ['get', id]);
    expect(shown.out).toMatch(/^ {3}"text": "One\."/m);
    for (const text of [id, hash, `capstan approvals approve|reject ${runId} review`])
      expect(shown.out).toContain(text);
    const no = await approvals('owner', ['approve', id, '-q'], ['n']);
    expect(no).toMatchObject({ code: 2, err: expect.stringContaining(`artifactHash: ${hash}`) });
    expect(await stateOf(host().as('editor'), id)).toBe('revised');
    const yes = await approvals('owner', ['approve', runId, '--yes'], ['y']);
    expect(yes).toMatchObject({ code: 0, err: expect.stringMatching(/^ {3}"text": "One\."/m) });
    expect(await stateOf(host().as('editor'), id)).toBe('applied');
  });

  it('is shown when all that is open is reviewed', async () => {
    const { id, hash } = await gated();
    const { err } = await approvals('owner', ['review'], ['a', 'fine', 'q']);
    expect(err).toMatch(new RegExp(`artifactHash: ${hash}\\n {3}\\{\\n`));
    expect(await stateOf(host().as('editor'), id)).toBe('applied');
  });

  it('is in the inbox under its id, and its gate under its run, with the proposal beside it', async () => {
    const { id, runId } = await gated();
    const environment = { CAPSTAN_URL: host().url, CAPSTAN_KEY: KEYS.owner.key };
    const { out } = await capstan(['inbox'], { environment });
    expect(out).toMatch(new RegExp(`^proposal +${id} `, 'm'));
    expect(out).toMatch(new RegExp(`^gate +${runId} +review +${id} `, 'm'));
    await approvals('owner', ['reject', id]);
  });

  it('shows what would change of what is in use', async () => {
    const base = template({ text: 'One.' });
    await host().as('editor').post('/v1/prompts', base);
    const { id } = await drafted(host().as('editor'), 'prompt-template', { ...base, version: '1.1.0', text: 'Two.' });
    const { code, out } = await as('editor')('diff', id);
    expect(code).toBe(0);
    expect(await as('editor')('diff', id, '-q')).toMatchObject({ code: 0, out: `${await hashOf(id)}\n` });
    expect(out.split('Difference to the artifact that it would replace')[1]).toMatch(
      /- {2}"text": "One\."\n\+ {2}"text": "Two\."/,
    );
    const impact = await as('editor')('impact', id);
    expect(impact).toMatchObject({ code: 0, out: expect.stringContaining('Nothing refers to it.') });
  });

  it('shows what a draft would have done, and how an applied one turned out', async () => {
    const { id } = await draft();
    expect((await as('editor')('preview', id)).err).toContain('--budget');
    const preview = await as('editor')('preview', id, '--budget', '0', '--runs', '1', '--wait');
    expect(preview).toMatchObject({ code: 0, out: expect.stringContaining('0 corrected runs') });
    expect((await as('editor')('previews', id)).out).toMatch(/prev-\S+ +done +0 corrected runs/);
    expect((await as('editor')('effect', id)).code).toBe(1);
    await as('reviewer')('apply', id, '--hash', await hashOf(id));
    expect((await as('editor')('effect', id)).out).toContain('failures: too few runs to tell');
  });

  it('revises by flags, and in the editor of the person', async () => {
    const { id } = await draft();
    const byFlags = await as('editor')(
      'revise',
      id,
      '--artifact-json',
      JSON.stringify(template({ text: 'Two.' })),
      '--json',
    );
    expect(byFlags).toMatchObject({ code: 0, json: { state: 'revised', artifact: { text: 'Two.' } } });
    expect((await as('editor')('revise', id, '--note', 'fine')).code).toBe(0);
    const inEditor = await as('editor', { EDITOR: "sed -i 's/Two/Three/'" })('revise', id, '--json');
    expect(inEditor).toMatchObject({ code: 0, json: { artifact: { text: 'Three.' } } });
    expect((await as('editor', { EDITOR: 'true' })('revise', id)).code).toBe(2);
    expect((await as('editor', { EDITOR: 'false' })('revise', id)).code).toBe(2);
    expect((await as('editor')('revise', id)).code).toBe(2);
    const { out, code } = await as('editor')('diff', id);
    expect(code).toBe(0);
    expect(out).toContain('-  "text": "Two."\n+  "text": "Three."');
  });

  it('takes back what was installed', async () => {
    const { id } = await draft();
    const ref = (await as('reviewer')('apply', id, '-q', '--hash', await hashOf(id))).out.trim();
    expect((await as('editor')('installed')).out).toContain(`${ref}  prompt-template  ${id}`);
    expect((await as('reviewer')('uninstall', ref)).code).toBe(2);
    expect((await as('reviewer')('uninstall', ref, '--yes')).code).toBe(0);
    expect(
      (await as('editor')('installed', '--json')).json.items.map((each: { ref: string }) => each.ref),
    ).not.toContain(ref);
  });

  it('drafts on demand', async () => {
    const { code, json } = await as('editor')('synthesize', '--kind', 'automation', '--json');
    expect({ code, created: json.created }).toEqual({ code: 0, created: [] });
  });

  it('has been tried with every command', () => {
    expect(untried(GROUPS.filter(({ name }) => name === 'proposals'))).toEqual([]);
  });
});
