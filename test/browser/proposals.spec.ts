import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { barriers, launchBrowser, misfits } from '../support/browser.ts';
import { enter, PAYLOAD, passUndo, unexpected } from '../support/console.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { drafted, evidenceOf, INSTALLED, revise, stateOf, template } from '../support/proposals.ts';
import { shootBoth } from '../support/screenshots.ts';
import { until } from '../support/until.ts';

/** The proposals of the console in a real browser: reviewed, revised, applied, taken out again. */

describe('the proposal pages', () => {
  let host: TestHost;
  let browser: Browser;
  beforeAll(async () => {
    [host, browser] = await Promise.all([startTestHost('sqlite', undefined), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await host?.stop();
  });

  const open = (key: string, rest: string, options = {}) =>
    enter(browser, host.url, key, rest, { locale: 'en-US', ...options });
  const draft = (artifact = template(), more = {}) => drafted(host.as('editor'), 'prompt-template', artifact, more);

  /** Puts a text into an editor in place of what is there. */
  async function write(page: Page, text: string): Promise<void> {
    const editor = page.locator('.cm-content[aria-label="Artifact"]');
    await editor.click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText(text);
  }

  const prompt = (templateId: string) => host.as('editor').get(`/v1/prompts/${templateId}`);

  it('a proposal is reviewed, revised and applied, and its effect is there', async () => {
    const before = template({ text: 'List five points.' });
    expect((await host.as('editor').post('/v1/prompts', before)).status).toBe(201);
    const runId = await host.as('editor').run('conformance-noop');
    const proposed = { ...before, version: '1.1.0', text: 'List three points.' };
    const { id } = await draft(proposed, {
      title: 'Shorter digest',
      rationale: 'Three reviewers cut it.',
      sourceRunIds: [runId],
    });
    const editing = await open(KEYS.editor.key, 'proposals');
    await editing.page.getByRole('link', { name: 'Shorter digest' }).click();
    const { page } = editing;
    await page.getByText('Three reviewers cut it.').waitFor();
    await page.getByRole('link', { name: runId }).waitFor();
    await page.locator('.cm-merge-a .cm-changedLine', { hasText: 'List five points.' }).waitFor();
    await page.locator('.cm-merge-b .cm-changedLine', { hasText: 'List three points.' }).waitFor();
    expect(await page.getByRole('button', { name: 'Apply' }).count()).toBe(0);
    await page.getByText('Reviewers and owners may apply it.').waitFor();
    await page.keyboard.press('e');
    await page.getByText('It has the shape of a prompt template.').waitFor();
    await write(page, '{ "templateId": ');
    await page.getByRole('button', { name: 'Save the revision' }).and(page.locator(':disabled')).waitFor();
    await write(page, JSON.stringify({ ...proposed, kind: 'shout' }));
    await page.getByText('This must be one of system, user').waitFor();
    await write(page, JSON.stringify({ ...proposed, text: 'List two points.' }));
    await page.getByText('It has the shape of a prompt template.').waitFor();
    await page.getByLabel('A note for the history').fill('Two are enough');
    await page.getByRole('button', { name: 'Save the revision' }).click();
    await page.getByText('Two are enough').waitFor();
    await page.getByLabel('Compare').selectOption({ label: 'Draft by host' });
    await page.locator('.cm-merge-a .cm-changedLine', { hasText: 'List three points.' }).waitFor();
    expect((await prompt(before.templateId as string)).body.text).toBe('List five points.');
    const { artifactHash } = await evidenceOf(host.as('editor'), id);
    const reviewing = await open(KEYS.reviewer.key, `proposals/${id}`);
    await reviewing.page.getByText(artifactHash).waitFor();
    await reviewing.page.getByRole('button', { name: 'Repeat the source runs' }).click();
    await reviewing.page.getByText('1 corrected run: 0 now pass, 0 worse').waitFor();
    await reviewing.page.getByRole('button', { name: 'Apply' }).click();
    await reviewing.page.getByText('Applied', { exact: true }).waitFor();
    await reviewing.page.getByText('Too few runs to tell', { exact: true }).waitFor();
    expect((await prompt(before.templateId as string)).body.text).toBe('List two points.');
    // The page of the editor follows without being asked.
    await page.getByText('Applied', { exact: true }).waitFor();
    expect([...unexpected(editing), ...unexpected(reviewing)]).toEqual([]);
  });

  it('what was applied is listed, and uninstalled after a warning', async () => {
    const { id } = await draft(template(), { title: 'To be taken out' });
    const { body } = await host.as('reviewer').post(`/v1/proposals/${id}/apply`);
    const { page } = await open(KEYS.reviewer.key, 'proposals?view=installed');
    await page.getByRole('row', { name: body.installedArtifactRef }).getByRole('button', { name: 'Uninstall' }).click();
    await page.getByRole('dialog').getByText('It replaced nothing.').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Uninstall' }).click();
    // While the dialog is open, nothing behind it has a role.
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('row', { name: body.installedArtifactRef }).waitFor({ state: 'detached' });
    const { items } = (await host.as('editor').get(INSTALLED)).body;
    expect(items.map(({ ref }: { ref: string }) => ref)).not.toContain(body.installedArtifactRef);
  });

  it('a proposal is rejected with a reason, from the keyboard', async () => {
    const { id } = await draft(template(), { title: 'Not wanted' });
    const { page } = await open(KEYS.editor.key, `proposals/${id}`);
    await page.getByRole('button', { name: 'Reject' }).waitFor();
    await page.keyboard.press('r');
    await page.getByLabel('Why (optional)').fill('Too short');
    await page.getByRole('dialog').getByRole('button', { name: 'Reject' }).click();
    await page.getByText('Rejected', { exact: true }).first().waitFor();
    expect((await evidenceOf(host.as('editor'), id)).rejectReason).toBe('Too short');
  });

  it('who revised it opens the gate, and another reviewer sees it and decides', async () => {
    const { id } = await draft(template(), { title: 'Own work' });
    await revise(host.as('reviewer'), id, { artifact: template({ text: 'In my own words.' }), note: 'mine' });
    const first = await open(KEYS.reviewer.key, `proposals/${id}`);
    await first.page.getByRole('button', { name: 'Apply' }).click();
    await first.page.getByText('It waits for approval:').waitFor();
    await first.page.getByText('0 of 1').waitFor();
    await first.page.getByText('You wrote a revision, so somebody else has to approve it.').waitFor();
    expect(await first.page.getByRole('button', { name: /Approve|Apply/ }).count()).toBe(0);
    const second = await open(KEYS.owner.key, `proposals/${id}`);
    await second.page.getByRole('button', { name: 'Approve' }).click();
    await first.page.getByText('Applied', { exact: true }).waitFor();
    expect(await stateOf(host.as('editor'), id)).toBe('applied');
  });

  it('an obstacle is said, and the button that would fail is absent', async () => {
    const there = template();
    await host.as('editor').post('/v1/prompts', there);
    const { id } = await draft({ ...there, text: 'A version that there is already' }, { title: 'Too late' });
    const { page } = await open(KEYS.owner.key, `proposals/${id}`);
    await page.getByText('It cannot be applied now').waitFor();
    expect(await page.getByRole('button', { name: 'Apply' }).count()).toBe(0);
  });

  it('is applied from the inbox', async () => {
    const { id } = await draft(template(), { title: 'From the inbox' });
    const visited = await open(KEYS.reviewer.key, `inbox?item=proposal:${id}`);
    await visited.page
      .getByRole('region', { name: 'Item' })
      .getByRole('button', { name: /^Apply/ })
      .waitFor();
    await passUndo(visited.page, () => visited.page.keyboard.press('a'));
    await until(
      () => stateOf(host.as('editor'), id),
      (state) => state === 'applied',
    );
    expect(unexpected(visited)).toEqual([]);
  });

  it('a viewer sees no button that would fail', async () => {
    const { id } = await draft(template(), { title: 'For viewers' });
    const { page } = await open(KEYS.viewer.key, 'proposals');
    await page.getByRole('link', { name: 'For viewers' }).waitFor();
    expect(await page.getByRole('button', { name: 'Look for proposals now' }).count()).toBe(0);
    await page.goto(`${host.url}/console/proposals/${id}`);
    await page.getByRole('heading', { name: 'History' }).waitFor();
    for (const name of ['Apply', 'Revise', 'Reject', 'Archive', 'Uninstall']) {
      expect(await page.getByRole('button', { name }).count(), name).toBe(0);
    }
    await page.goto(`${host.url}/console/proposals?view=installed`);
    await page.getByRole('heading', { name: 'Proposals' }).waitFor();
    expect(await page.getByRole('button', { name: 'Uninstall' }).count()).toBe(0);
  });

  it('text is text, whatever is in it', async () => {
    const visited = await open(KEYS.owner.key, 'proposals');
    const { page } = visited;
    const { id } = await draft(template({ text: PAYLOAD }), { title: PAYLOAD, rationale: PAYLOAD });
    await revise(host.as('editor'), id, { artifact: template({ text: `${PAYLOAD}!` }), note: PAYLOAD });
    await host.as('editor').post(`/v1/proposals/${id}/reject`, { reason: PAYLOAD });
    await page.goto(`${host.url}/console/proposals/${id}`);
    await page.locator('.cm-content').first().waitFor();
    expect(await page.evaluate('window.hit')).toBeUndefined();
    expect(await page.locator('main iframe, main script, main img').count()).toBe(0);
    await page.goto(`${host.url}/console/proposals`);
    await page.getByRole('link', { name: PAYLOAD }).waitFor();
    expect(await page.evaluate('window.hit')).toBeUndefined();
    expect(unexpected(visited)).toEqual([]);
  });

  it('bars nobody in either theme, and fits every window', async () => {
    const before = template({
      text: 'List five points, each with a short sentence.',
      description: 'For the weekly digest',
    });
    await host.as('editor').post('/v1/prompts', before);
    const runId = await host.as('editor').run('conformance-noop');
    const { id } = await draft(
      { ...before, version: '1.1.0', text: 'List three points, each with one short sentence.' },
      {
        title: 'A shorter weekly digest',
        rationale: 'Three reviewers cut the list to three points in the last week.',
        sourceRunIds: [runId],
      },
    );
    const { page } = await open(KEYS.owner.key, 'proposals');
    for (const rest of ['proposals', 'proposals?view=installed', `proposals/${id}?edit=true`, `proposals/${id}`]) {
      await page.goto(`${host.url}/console/${rest}`);
      await page.locator('table, .cm-content').first().waitFor();
      if (rest.endsWith('edit=true')) await page.getByText('It has the shape of').waitFor();
      for (const width of [390, 1024, 1440]) {
        expect(await misfits(page, [width]), rest).toEqual([]);
        expect(await barriers(page), `${rest} at ${width}`).toEqual([]);
      }
    }
    await shootBoth(page, 'proposal');
  });
});
