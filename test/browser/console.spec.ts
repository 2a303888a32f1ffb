import type { Browser, BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Api } from '../support/api.ts';
import { barriers, launchBrowser, misfits, type Visit, visit } from '../support/browser.ts';
import { ALL_PAYLOADS, enter as enterConsole, go, PAYLOADS, reloadWithFeed, unexpected } from '../support/console.ts';
import { fixed, line, node, register, workflow } from '../support/definitions.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { approval, clarification, waitingRun } from '../support/interrupts.ts';
import { IdentityProvider, IssuerKeyRing, oidcOf, startIssuer } from '../support/issuer.ts';
import { prefixProxy } from '../support/prefix-proxy.ts';
import { shoot, shootBoth } from '../support/screenshots.ts';

/** The console in a real browser, against a real host: the jobs that people do with it. */

const WINDOW = { width: 1440, height: 900 };
/** The last is a telephone. */
const WIDTHS = [1440, 1024, 390];

describe('the console', () => {
  let host: TestHost;
  let browser: Browser;
  beforeAll(async () => {
    [host, browser] = await Promise.all([startTestHost('sqlite', undefined), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await host?.stop();
  });

  const address = (rest = ''): string => `${host.url}/console/${rest}`;

  const enter = (key: string, rest: string, options: BrowserContextOptions = {}, root = host.url): Promise<Visit> =>
    enterConsole(browser, root, key, rest, options);

  it('a key signs in, the page keeps it nowhere, and the visitor lands where they wanted to go', async () => {
    const visited = await visit(browser, address('runs?status=failed'));
    const { page } = visited;
    await page.fill('input[name=key]', 'not-a-key-of-anybody');
    await page.click('button[type=submit]');
    await page.getByText('The host does not know this key.').waitFor();
    await page.fill('input[name=key]', KEYS.editor.key);
    await page.click('button[type=submit]');
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
    expect(page.url()).toBe(address('runs?status=failed'));
    expect(await page.evaluate('document.cookie + JSON.stringify(localStorage)')).not.toContain('capstan_session');
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ name: 'capstan_session', httpOnly: true, sameSite: 'Strict' });
    expect(cookie?.value).not.toContain(KEYS.editor.key);
    expect(unexpected(visited)).toEqual([]);
  });

  it('a person signs in at the identity provider, and lands where they wanted to go', async () => {
    const ring = await new IssuerKeyRing().add('first', 'ES256');
    const provider = new IdentityProvider(ring);
    const issuer = await startIssuer(ring, provider);
    provider.claims = { iss: issuer.url, sub: 'ada', tenant: 'alpha', role: 'viewer' };
    const own = await startTestHost('sqlite', undefined, { oidc: oidcOf(issuer) });
    try {
      const visited = await visit(browser, `${own.url}/console/runs?status=failed`);
      const { page } = visited;
      await page.getByRole('link', { name: /^Sign in with / }).waitFor();
      expect(await barriers(page)).toEqual([]);
      provider.idClaims = { nonce: 'of somebody else' };
      await page.getByRole('link', { name: /^Sign in with / }).click();
      await page.getByText('The identity provider did not confirm the sign-in.').waitFor();
      provider.idClaims = {};
      await page.goto(`${own.url}/console/runs?status=failed`);
      await page.getByRole('link', { name: /^Sign in with / }).click();
      await page.getByRole('heading', { name: 'Runs' }).waitFor();
      expect(page.url()).toBe(`${own.url}/console/runs?status=failed`);
      expect(await page.getByRole('button', { name: 'Start run' }).count()).toBe(0);
      expect(unexpected(visited)).toEqual([]);
    } finally {
      await own.stop();
      await issuer.stop();
    }
  });

  it('people are called by their names, each of which is asked for once', async () => {
    const make = async (name: string, rest: object) =>
      (await host.as('owner').post('/v1/host/capstan/keys', { name, role: 'editor', ...rest })).body;
    const [bob, ci] = [await make('laptop', { person: 'bob' }), await make('ci', {})];
    const id = await register(host.as('owner'), workflow([approval('gate')]));
    for (const { key } of [bob, ci]) await waitingRun(new Api(host.url, key), id);
    const visited = await enter(bob.key, 'inbox');
    const { page } = visited;
    for (const by of ['by bob', 'by ci']) await page.getByText(by).first().waitFor();
    expect(await page.getByRole('navigation').innerText()).toContain('bob\n');
    expect(await page.getByText(ci.id).count()).toBe(0);
    const asked = visited.requests.flatMap((url) => new URL(url).searchParams.get('principal')?.split(',') ?? []);
    expect(asked.toSorted()).toEqual([bob.id, ci.id].sort());
    expect(unexpected(visited)).toEqual([]);
  });

  it('signing out ends it', async () => {
    const { page } = await enter(KEYS.editor.key, 'runs');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to Capstan' }).waitFor();
    await page.goto(address('runs'));
    await page.getByRole('heading', { name: 'Sign in to Capstan' }).waitFor();
  });

  it('a run is started from its form and watched until its end', async () => {
    const visited = await enter(KEYS.editor.key, 'runs');
    const { page } = visited;
    await page.getByRole('button', { name: 'Start run' }).click();
    await page.getByLabel('Workflow', { exact: true }).last().selectOption('support-triage');
    await page.getByLabel('subject').fill('The dashboard is down');
    await page.getByLabel('plan').fill('enterprise');
    await page.getByRole('dialog').getByRole('button', { name: 'Start run' }).click();
    await page.waitForURL(/runs\/run-/);
    await page.locator('header [data-state=completed]').waitFor();
    await page.getByText('P1', { exact: true }).first().waitFor();
    await page.locator('.react-flow__node').first().waitFor();
    await page.getByRole('tabpanel').getByRole('button').nth(5).waitFor();
    expect(unexpected(visited)).toEqual([]);
  });

  it('a missing input is said at its field, before anything is sent', async () => {
    const { page } = await enter(KEYS.editor.key, 'runs?start=support-triage');
    await page.getByLabel('subject').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Start run' }).click();
    await page.getByText('Fill this in.').waitFor();
    expect(await page.getByLabel('subject').getAttribute('aria-invalid')).toBe('true');
  });

  it('the run is shown as it was at any moment', async () => {
    const runId = await triage();
    const { page } = await enter(KEYS.editor.key, `runs/${runId}?tab=state&at=2`);
    await page.getByRole('button', { name: 'Back to now' }).waitFor();
    const variables = page.getByRole('region', { name: 'Variables' });
    await variables.getByText('P4').waitFor();
    await page.getByRole('button', { name: 'Back to now' }).click();
    await variables.getByText('P1').waitFor();
    expect(page.url()).not.toContain('at=');
  });

  it('every event can be opened, and a fork begins at one', async () => {
    const runId = await triage();
    const { page } = await enter(KEYS.editor.key, `runs/${runId}?tab=events`);
    await page.getByLabel('Filter by type or node').fill('node.completed');
    await page.getByRole('region', { name: 'Events' }).getByRole('button').first().click();
    await page.getByRole('dialog').getByText('"node.completed"').waitFor();
    await page.getByRole('button', { name: 'Fork from here' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Fork', exact: true }).click();
    await page.getByText('Branch of').waitFor();
    await page.locator('header [data-state=completed]').waitFor();
    expect(page.url()).not.toContain(runId);
  });

  it('new runs collect behind a button, and states change where they are', async () => {
    const { page } = await enter(KEYS.editor.key, 'runs');
    // What happens before the feed begins is in the list, and not behind the button.
    await reloadWithFeed(page);
    await page.getByRole('row').nth(1).waitFor();
    await triage();
    await page.getByRole('button', { name: /^\d+ new runs?$/ }).click();
    await page.getByRole('button', { name: /new runs?$/ }).waitFor({ state: 'detached' });
  });

  it('shows the states of now in a list whose first reading took long', async () => {
    const editor = host.as('editor');
    const question = clarification('ask', [{ id: 'q', question: 'Which?' }]);
    const workflowId = await register(editor, workflow([approval('gate'), question], line('gate', 'ask')));
    const { runId } = await waitingRun(editor, workflowId);
    const { page } = await enter(KEYS.editor.key, 'goals');
    await reloadWithFeed(page);
    const held = Promise.withResolvers<void>();
    let readings = 0;
    await page.route(/\/runs\?.*workflowId=/, async (route) => {
      if (readings++ > 0) return route.continue();
      const answer = await route.fetch();
      await editor.post(`/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: 'accept' } });
      await editor.run(workflowId);
      await held.promise;
      await route.fulfill({ response: answer });
    });
    await go(page, `runs?workflowId=${workflowId}`);
    // The page has been told of the second run, and so of the question of the first.
    await page.getByRole('button', { name: /new run/ }).waitFor();
    held.resolve();
    await page
      .getByRole('row')
      .filter({ hasText: runId.slice(-6) })
      .locator('[data-state=waiting-input]')
      .waitFor();
  });

  it('the list says what came of runs and how they came to be, and compares two of them', async () => {
    const editor = host.as('editor');
    const id = await register(
      editor,
      workflow([node('say', 'core.identity', { inputs: { text: fixed('All is well') } })]),
    );
    const source = await editor.run(id);
    await editor.ended(source);
    const { body: replay } = await editor.post(`/v1/runs/${source}:fork`, { mode: 'replay', fromSeq: 0 });
    await editor.ended(replay.runId);
    const failing = await register(editor, workflow([node('x', 'core.fail', { config: { message: 'Out of paper' } })]));
    await editor.ended(await editor.run(failing));
    const visited = await enter(KEYS.editor.key, 'runs');
    const { page } = visited;
    const row = (...words: string[]) =>
      words.reduce((rows, hasText) => rows.filter({ hasText }), page.getByRole('row'));
    await row(failing, 'Out of paper').waitFor();
    await row(id, 'replay', 'All is well').waitFor();
    await page.getByLabel('Origin').selectOption('direct');
    await row(id, 'replay').waitFor({ state: 'detached' });
    await row(id, 'All is well').waitFor();
    await page.getByLabel('Origin').selectOption('child');
    await page.getByRole('heading', { name: 'No run matches' }).waitFor();
    await page.getByRole('link', { name: 'Clear the filters' }).click();
    await row(id, 'replay').getByRole('checkbox').check();
    await row(failing).getByRole('checkbox').check();
    await page.getByRole('button', { name: 'Compare' }).click();
    await page.getByRole('heading', { name: 'Compare' }).waitFor();
    await page.goto(address(`runs/${source}`));
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'Compare with …' }).click();
    await page.getByRole('region', { name: 'Its source and its forks' }).getByRole('link').click();
    await page.waitForURL(/compare/);
    await page.getByText(replay.runId).first().waitFor();
    expect(unexpected(visited)).toEqual([]);
  });

  it('an unknown run is named, with a way back to the list', async () => {
    const { page } = await enter(KEYS.editor.key, 'runs/run-00000000000000000000');
    await page.getByRole('heading', { name: 'There is no such run' }).waitFor();
    await page.getByText('run-00000000000000000000').waitFor();
    await page.getByRole('link', { name: 'Show all runs' }).click();
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
  });

  it('the keyboard goes everywhere', async () => {
    const { page } = await enter(KEYS.editor.key, 'runs');
    await page.getByRole('row').nth(1).waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByText('Next run').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL(/runs\/run-/);
    await page.keyboard.press('g');
    await page.keyboard.press('r');
    await page.waitForURL(/runs$/);
    await page.keyboard.press('Control+k');
    await page.getByPlaceholder('A page, a run id').waitFor();
    await page.keyboard.type('support ticket');
    await page.getByRole('option', { name: /support-triage/, selected: true }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByLabel('subject').waitFor();
  });

  it('a viewer sees no button that would fail', async () => {
    const runId = await triage();
    const { page } = await enter(KEYS.viewer.key, 'runs');
    await page.getByRole('row').nth(1).waitFor();
    expect(await page.getByRole('button', { name: 'Start run' }).count()).toBe(0);
    await page
      .getByRole('checkbox', { name: /^Choose/ })
      .first()
      .check();
    await page.getByText('1 chosen').waitFor();
    expect(await page.getByRole('button', { name: 'Cancel' }).count()).toBe(0);
    await page.goto(address(`runs/${runId}?node=escalate`));
    await page.getByRole('heading', { name: 'Feedback', exact: true }).waitFor();
    for (const name of [/^Cancel/, /^Pause/, /^Start a similar/, /^Fork/, /^Rate/, /^Flag/]) {
      expect(await page.getByRole('button', { name }).count(), String(name)).toBe(0);
    }
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem').first().waitFor();
    expect(await page.getByRole('menuitem').allInnerTexts()).toEqual(['Compare with …', 'Download debug bundle']);
  });

  it('text is text, whatever is in it', async () => {
    const editor = host.as('editor');
    const all = ALL_PAYLOADS.join('\n');
    const runId = await editor.run('support-triage', {
      inputs: { subject: all, plan: 'free', body: all },
      tags: [...PAYLOADS],
      metadata: Object.fromEntries(ALL_PAYLOADS.map((payload) => [payload, payload])),
    });
    await editor.ended(runId);
    for (const payload of ALL_PAYLOADS) {
      const signal = { kind: 'label', label: payload };
      expect((await editor.post(`/v1/runs/${runId}/annotations`, { signal, note: payload })).status, payload).toBe(201);
    }
    const visited = await enter(KEYS.editor.key, 'runs');
    const { page } = visited;
    await page.goto(address(`runs/${runId}?node=draft`));
    await page.locator('.react-flow__node').first().waitFor();
    for (const tab of ['Timeline', 'Events', 'State']) await page.getByRole('tab', { name: tab }).click();
    await page.getByRole('region', { name: 'Variables' }).waitFor();
    await page.getByText(ALL_PAYLOADS.at(-1)!).first().waitFor();
    expect(await page.evaluate('window.hit')).toBeUndefined();
    expect(await page.locator('main iframe, main script, main img, main object, main embed, main style').count()).toBe(
      0,
    );
    expect(unexpected(visited)).toEqual([]);
  });

  it('works below any path, with links that lead back there', async () => {
    const runId = await triage();
    const proxy = await prefixProxy(host.url, '/tools/capstan');
    try {
      const at = (rest: string): string => `${proxy.url}/console/${rest}`;
      const { page } = await enter(KEYS.editor.key, `runs/${runId}`, {}, proxy.url);
      await page.locator('header [data-state=completed]').waitFor();
      await page.getByRole('link', { name: 'Runs', exact: true }).click();
      await page.waitForURL(at('runs'));
      await page.goto(proxy.url);
      await page.goto(`${proxy.url}/`);
      await page.waitForURL(at('runs'));
      await page.getByRole('link', { name: 'API reference' }).click();
      await page.locator('.operation').first().waitFor();
    } finally {
      await proxy.close();
    }
  });

  it('bars nobody in either theme, and fits every window', async () => {
    const runId = await triage();
    const { page } = await visit(browser, address('sign-in'), { viewport: WINDOW });
    await page.getByRole('heading', { name: 'Sign in to Capstan' }).waitFor();
    expect(await barriers(page)).toEqual([]);
    await page.fill('input[name=key]', KEYS.editor.key);
    await page.click('button[type=submit]');
    await page.getByRole('row').nth(1).waitFor();
    await shootBoth(page, 'runs');
    expect(await barriers(page)).toEqual([]);
    expect(await misfits(page, WIDTHS)).toEqual([]);
    for (const tab of ['events', 'state', 'timeline']) {
      await page.setViewportSize(WINDOW);
      await go(page, `runs/${runId}?node=escalate&tab=${tab}`);
      await page.locator(`[role=tabpanel][aria-label=${tab}]`).waitFor();
      await page.locator('.react-flow__node').first().waitFor();
      await page.getByRole('heading', { name: 'Feedback', exact: true }).waitFor();
      expect(await barriers(page), tab).toEqual([]);
      if (tab === 'timeline') await shootBoth(page, 'run');
      expect(await misfits(page, WIDTHS), tab).toEqual([]);
      if (tab === 'timeline') await shoot(page, 'run-phone');
    }
    await page.setViewportSize(WINDOW);
    await go(page, 'runs?start=support-triage');
    await page.getByLabel('subject').waitFor();
    expect(await barriers(page)).toEqual([]);
  });

  async function triage(): Promise<string> {
    const editor = host.as('editor');
    const inputs = { subject: 'The dashboard is down', plan: 'enterprise' };
    const runId = await editor.run('support-triage', { inputs });
    await editor.ended(runId);
    return runId;
  }
});
