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
  // Pages live for seconds: what V8 spends on faster code is not earned back.
  '--js-flags=--single-threaded,--no-opt',
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
 * Finds what text there is by its look: its colours, its size, and what is behind it. Contrast is three quarters of the
 * work of axe, and text that looks the same has the same contrast, so three of each look are enough.
 */
const LOOKS = `window.looks = () => {
  const OF_EACH = 3;
  const behind = (element) => {
    if (element === null) return '';
    const { backgroundColor, backgroundImage, opacity } = getComputedStyle(element);
    const own = backgroundColor + backgroundImage + opacity;
    return own === 'rgba(0, 0, 0, 0)none1' ? behind(element.parentElement) : own + behind(element.parentElement);
  };
  const hasText = (element) =>
    element.matches('input, select, textarea') ||
    [...element.childNodes].some(({ nodeType, data }) => nodeType === Node.TEXT_NODE && data.trim() !== '');
  const lookOf = (element) => {
    const { color, fontSize, fontWeight } = getComputedStyle(element);
    const around = element.parentElement && getComputedStyle(element.parentElement).color;
    const isOff = element.closest(':disabled, [aria-disabled=true], [aria-hidden=true], [inert]') !== null;
    return [color, fontSize, fontWeight, around, isOff, element.tagName, behind(element)].join();
  };
  const found = Map.groupBy(
    [...document.body.querySelectorAll('*')].filter((element) => hasText(element) && element.checkVisibility()),
    lookOf,
  );
  return [...found.values()].flatMap((alike) => alike.slice(0, OF_EACH));
}`;

/**
 * What a person with a screen reader, a keyboard or weak eyes would stumble over. The page is looked at in the light
 * theme; in the dark theme nothing but the colours is different.
 */
export async function barriers(page: Page): Promise<string[]> {
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(`${AXE}; ${WITHOUT_FADING}; ${LOOKS}`);
  const inLight = await violations(page, 'document', "rules: { 'color-contrast': { enabled: false } }");
  const inColours = await violations(page, 'looks()', COLOURS);
  await showTheme(page, 'dark');
  const inDark = await violations(page, 'looks()', COLOURS);
  await showTheme(page, 'light');
  return [...inLight, ...inColours, ...inDark.map((problem) => `in the dark theme: ${problem}`)];
}

const COLOURS = "runOnly: ['color-contrast', 'link-in-text-block']";

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

async function violations(page: Page, where: string, options: string): Promise<string[]> {
  // Only what is wrong is collected: what is right fills megabytes on a long page.
  const found = await page.evaluate<axe.AxeResults['violations']>(
    `axe.run(${where}, { resultTypes: ['violations'], preload: false, selectors: false, ${options} }).then(({ violations }) => violations)`,
  );
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}
