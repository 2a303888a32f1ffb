import chromium from '@sparticuz/chromium';
import axe from 'axe-core';
import { type Browser, type BrowserContextOptions, type Page, chromium as playwright } from 'playwright-core';
import { onTestFinished } from 'vitest';

/** As root in a container, and without a word to anybody but the host under test. */
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

export async function launchBrowser(): Promise<Browser> {
  return playwright.launch({ executablePath: await chromium.executablePath(), headless: true, args: FLAGS });
}

/** A page in a profile of its own, until the end of the test, and what went wrong on it. */
export interface Visit {
  readonly page: Page;
  /** Errors and warnings of the console, scripts that threw, requests that failed. */
  readonly problems: readonly string[];
  /** Every address that the page asked for. */
  readonly requests: readonly string[];
}

export async function visit(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
  // A page that nobody looks at any more goes on asking the host, and drawing what it says.
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const problems: string[] = [];
  const requests: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(`${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('requestfailed', (request) => problems.push(`${request.url()}: ${request.failure()?.errorText}`));
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(url);
  return { page, problems, requests };
}

/** What a person with a screen reader, a keyboard or weak eyes would stumble over. */
export async function barriers(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  // Only what is wrong is collected: what is right fills megabytes on a long page.
  const { violations } = await page.evaluate<Pick<axe.AxeResults, 'violations'>>(
    `axe.run(document, { resultTypes: ['violations'], preload: false }).then(({ violations }) => ({ violations }))`,
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}
