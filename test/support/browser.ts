import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type axe from 'axe-core';
import { type Browser, type BrowserContextOptions, type Page, chromium as playwright } from 'playwright-core';
import { inject, onTestFinished } from 'vitest';

/** As root in a container, and without a word to anybody but the host under test. */
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--in-process-gpu',
  '--disable-dev-shm-usage',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
  // One process and one thread less to talk to: pages are small, and the machine is busy with other tests.
  '--enable-features=NetworkServiceInProcess2',
  '--no-zygote',
  '--num-raster-threads=1',
];

export function launchBrowser(): Promise<Browser> {
  return playwright.launch({ executablePath: inject('browser'), headless: true, args: FLAGS });
}

/** A page, until the end of the test, and what went wrong on it. */
export interface Visit {
  readonly page: Page;
  /** Errors and warnings of the console, scripts that threw, requests that failed. */
  readonly problems: readonly string[];
  /** Every address that the page asked for. */
  readonly requests: readonly string[];
}

/** Opens an address in a profile of its own. */
export async function visit(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const watched = await newPage(browser, options);
  // A page that nobody looks at any more goes on asking the host, and drawing what it says.
  onTestFinished(() => watched.page.context().close());
  await watched.page.goto(url);
  return watched;
}

/** A page whose problems and requests can be forgotten. */
export interface WatchedPage extends Visit {
  forget(): void;
}

/** A page in a profile of its own, which is watched from the beginning. */
export async function newPage(browser: Browser, options: BrowserContextOptions): Promise<WatchedPage> {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
  const page = await context.newPage();
  const problems: string[] = [];
  const requests: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(`${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('requestfailed', (request) => problems.push(`${request.url()}: ${request.failure()?.errorText}`));
  page.on('request', (request) => requests.push(request.url()));
  const forget = (): void => {
    problems.length = 0;
    requests.length = 0;
  };
  return { page, problems, requests, forget };
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Colours change at once: those on the way from one to the other are nobody's. */
const WITHOUT_FADING = `{
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('*, ::before, ::after { transition: none !important }');
  document.adoptedStyleSheets.push(sheet);
}`;

/**
 * What a person with a screen reader, a keyboard or weak eyes would stumble over. The page is looked at in the light
 * theme; in the dark theme nothing but the colours is different.
 */
export async function barriers(page: Page): Promise<string[]> {
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(`${AXE}; ${WITHOUT_FADING}`);
  const inLight = await violations(page, '');
  await showTheme(page, 'dark');
  const inDark = await violations(page, "runOnly: ['color-contrast', 'link-in-text-block']");
  await showTheme(page, 'light');
  return [...inLight, ...inDark.map((problem) => `in the dark theme: ${problem}`)];
}

/** Has a page follow the theme of the machine. It is told of it with the next frame. */
export async function showTheme(page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  await page.emulateMedia({ colorScheme });
  await page.evaluate('new Promise(requestAnimationFrame)');
}

/** The widths of windows, among these, that a page does not fit. */
export async function misfits(page: Page, widths: readonly number[]): Promise<number[]> {
  const wrong: number[] = [];
  for (const width of widths) {
    await page.setViewportSize({ width, height: 844 });
    if ((await page.evaluate('document.documentElement.scrollWidth')) !== width) wrong.push(width);
  }
  return wrong;
}

async function violations(page: Page, options: string): Promise<string[]> {
  // Only what is wrong is collected: what is right fills megabytes on a long page.
  const found = await page.evaluate<axe.AxeResults['violations']>(
    `axe.run(document, { resultTypes: ['violations'], preload: false, ${options} }).then(({ violations }) => violations)`,
  );
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}
