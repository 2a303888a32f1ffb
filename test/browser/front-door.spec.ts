import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { barriers, launchBrowser, misfits, visit } from '../support/browser.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';

const KEY = KEYS.editor.key;

describe('the front door', () => {
  let host: TestHost;
  let browser: Browser;
  beforeAll(async () => {
    [host, browser] = await Promise.all([startTestHost('sqlite', undefined), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await host?.stop();
  });

  const address = (): string => `${host.url}/console/reference/`;
  const reference = (rest = ''): string => `${address()}api${rest}`;
  const operationIds = async (): Promise<string[]> => {
    const { paths } = (await host.anonymous.get('/v1/openapi.json')).body;
    return Object.values<object>(paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId as string),
    );
  };

  it('opens without errors, and asks nobody but the host', async () => {
    const { page, problems, requests } = await visit(browser, address());
    await page.locator('#facts', { hasText: 'OpenWOP 1.0' }).waitFor();
    expect(page.url()).toBe(address());
    expect(problems).toEqual([]);
    expect(requests.filter((url) => !url.startsWith(host.url) && !url.startsWith('data:'))).toEqual([]);
    expect(await page.innerText('#facts')).toMatch(/Health\s+ready/i);
  });

  it('is short: the discovery document is folded, and the rest is behind links that lead somewhere', async () => {
    const { page } = await visit(browser, address());
    await page.locator('#facts div').first().waitFor();
    expect(await page.locator('#families').isVisible()).toBe(false);
    const links = page.locator('nav.bar li a');
    expect(await links.allInnerTexts()).toEqual(['Documentation', 'API reference', 'Console']);
    for (const link of await links.all()) {
      const target = new URL((await link.getAttribute('href'))!, address());
      expect((await fetch(target)).status, target.href).toBe(200);
    }
  });

  it('shows lines that name this host, and fills in the key', async () => {
    const { page } = await visit(browser, address());
    const lines = page.locator('#steps pre');
    expect(await lines.count()).toBe(3);
    for (const line of await lines.allInnerTexts()) {
      expect(line).toContain(host.url);
      expect(line).toContain('$CAPSTAN_KEY');
    }
    await page.fill('#key', ` ${KEY} `);
    for (const line of await lines.allInnerTexts()) expect(line).toContain(`'Authorization: Bearer ${KEY}'`);
    await page.fill('#subject', "It's down");
    expect(await lines.first().innerText()).toContain("It'\\''s down");
  });

  it('starts the example and shows its events until the end', async () => {
    const { page, problems } = await visit(browser, address());
    expect(await page.isDisabled('#start')).toBe(true);
    await page.fill('#key', KEY);
    await page.fill('#subject', 'The dashboard is down');
    await page.selectOption('#plan', 'enterprise');
    await page.click('#start');
    // The person on call is being paged: the run goes on while its first events are on the page.
    await page.locator('#log li', { hasText: 'escalate' }).first().waitFor();
    await page.locator('#log li', { hasText: 'run.completed' }).waitFor();
    expect(await page.innerText('#status')).toMatch(/^The run completed after \d+ ms\.$/);
    expect(await page.innerText('#outcome')).toMatch(/category\s+outage\s+priority\s+P1/);
    expect(await page.locator('#steps pre').last().innerText()).toMatch(/\/v1\/runs\/run-[a-z0-9]{16,}/);
    expect(problems).toEqual([]);
  });

  it('forgets the key when the page is left, and keeps it nowhere', async () => {
    const { page } = await visit(browser, address());
    await page.fill('#key', KEY);
    await page.click('#start');
    await page.locator('#log li', { hasText: 'run.completed' }).waitFor();
    expect(await page.evaluate('localStorage.length + sessionStorage.length')).toBe(0);
    expect(await page.context().cookies()).toEqual([]);
    expect(page.url()).toBe(address());
    await page.reload();
    expect(await page.inputValue('#key')).toBe('');
  });

  it('says why when the host says no', async () => {
    const { page } = await visit(browser, address());
    await page.fill('#key', 'not a key…');
    expect(await page.isDisabled('#start')).toBe(true);
    await page.fill('#key', 'not-a-key');
    await page.click('#start');
    await page.locator('#status[data-state=failed]').waitFor();
    expect(await page.innerText('#status')).toMatch(/credential|key/i);
    await page.fill('#key', KEYS.viewer.key);
    await page.click('#start');
    await page.locator('#status', { hasText: 'runs:create' }).waitFor();
  });

  it('shows text as text, whatever is in it', async () => {
    const { page, problems } = await visit(browser, address());
    const markup = '<img src="/nowhere" onerror="alert(1)">';
    await page.fill('#key', KEY);
    await page.fill('#subject', markup);
    await page.click('#start');
    await page.locator('#log li', { hasText: 'run.completed' }).waitFor();
    expect(await page.innerText('#outcome')).toContain(markup);
    expect(await page.locator('img').count()).toBe(0);
    expect(problems).toEqual([]);
  });

  it('lists every operation of the API document', async () => {
    const { page } = await visit(browser, reference());
    await page.locator('.operation').first().waitFor();
    const shown = await page.locator('.operation').evaluateAll((all) => all.map(({ id }) => id));
    expect(shown.sort()).toEqual((await operationIds()).sort());
  });

  it('explains an operation: its line, its parameters, its shapes and its refusals', async () => {
    const { page } = await visit(browser, reference('#pauseRun'));
    const operation = page.locator('#pauseRun');
    await operation.locator('.part').first().waitFor();
    const text = await operation.innerText();
    expect(text).toContain(`curl -X POST ${host.url}/v1/runs/RUN_ID:pause`);
    for (const word of ['runs:cancel', 'runId', 'drainPolicy', 'immediate · drain-current-node', 'Reply 202', '409']) {
      expect(text).toContain(word);
    }
    await page.goto(reference('#registerWorkflow'));
    const nodes = page.locator('#registerWorkflow .part', { hasText: 'Request' }).locator('details').first();
    await nodes.locator('summary').first().click();
    await nodes.getByText('typeId').waitFor();
  });

  it('has something to say about every operation', async () => {
    const { page, problems } = await visit(browser, reference());
    await page.locator('.operation').first().waitFor();
    await page.evaluate("for (const each of document.querySelectorAll('.operation > summary')) each.click()");
    await page.locator('.operation').last().locator('.part').last().waitFor();
    const texts = await page.locator('.operation').allInnerTexts();
    expect(texts.filter((text) => !/curl .*Reply [23]\d\d/s.test(text))).toEqual([]);
    expect(problems).toEqual([]);
  });

  it('opens what the address names, also when the filter had hidden it', async () => {
    const { page } = await visit(browser, reference('#getRun'));
    await page.locator('#getRun[open]').waitFor();
    expect(await focused(page)).toContain('/v1/runs/{runId}');
    await page.fill('#filter', 'cancel');
    expect(await page.locator('#createRun').isVisible()).toBe(false);
    await page.evaluate("location.hash = 'createRun'");
    await page.locator('#createRun[open]').waitFor();
    expect(await page.inputValue('#filter')).toBe('');
  });

  it('filters by words, methods and scopes', async () => {
    const { page } = await visit(browser, reference());
    await page.locator('.operation').first().waitFor();
    const visible = (): Promise<string[]> =>
      page.locator('.operation:visible').evaluateAll((all) => all.map(({ id }) => id));
    await page.fill('#filter', 'POST runs:cancel /v1/runs');
    expect((await visible()).sort()).toEqual(['bulkCancelRuns', 'cancelRun', 'pauseRun', 'resumeRun']);
    expect(await page.innerText('#filter-count')).toMatch(/^4 of \d+ operations$/);
    expect(await page.locator('.area:visible').count()).toBe(1);
    await page.fill('#filter', 'no such thing');
    expect(await page.innerText('#filter-count')).toBe('Nothing matches.');
    await page.fill('#filter', '');
    expect(await visible()).toHaveLength((await operationIds()).length);
  });

  it('can be walked through with the keyboard, in the order in which it is read', async () => {
    const { page } = await visit(browser, address());
    await page.locator('#facts div').first().waitFor();
    const stops: string[] = [];
    for (let index = 0; index < 15; index++) {
      await page.keyboard.press('Tab');
      stops.push(await focused(page));
      expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle'), stops.at(-1)).toBe('solid');
      if (stops.at(-1) === '#key') await page.keyboard.type(KEY);
    }
    expect(stops).toEqual([
      ...['Skip to the content', 'Capstan', 'Documentation', 'API reference', 'Console'],
      ...['#key', 'Copy', 'Copy', 'Copy'],
      ...['#subject', '#plan', '#start', '#log'],
      ...['Show the discovery document', 'discovery'],
    ]);
  });

  it('leads past the head of the page with its first stop', async () => {
    const { page } = await visit(browser, address());
    await page.keyboard.press('Tab');
    expect(await focused(page)).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    expect(await focused(page)).toBe('#main');
  });

  it('bars nobody in either theme, and fits every window', async () => {
    const widths = [360, 768, 1360];
    const { page } = await visit(browser, reference('#createRun'));
    await page.locator('#createRun .part').first().waitFor();
    expect(await barriers(page)).toEqual([]);
    expect(await misfits(page, widths)).toEqual([]);
    await page.goto(address());
    await page.fill('#key', KEY);
    await page.click('#start');
    await page.locator('#log li', { hasText: 'run.completed' }).waitFor();
    expect(await barriers(page)).toEqual([]);
    expect(await misfits(page, widths)).toEqual([]);
  });

  it('stands still for those who ask for it, and turns for the others', async () => {
    const moving = 'document.getAnimations().length';
    expect(await (await visit(browser, address())).page.evaluate(moving)).toBe(0);
    const { page } = await visit(browser, address(), { reducedMotion: 'no-preference' });
    expect(await page.evaluate(moving)).toBe(1);
  });
});

/** The element that has the focus: by its id, or else by its first line. */
function focused(page: Page): Promise<string> {
  return page.evaluate(
    "document.activeElement.id ? '#' + document.activeElement.id : document.activeElement.innerText.trim()",
  );
}
