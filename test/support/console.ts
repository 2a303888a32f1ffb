import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { onTestFinished } from 'vitest';
import { newPage, type Visit, type WatchedPage } from './browser.ts';

/** Nobody is signed in at first, which browsers report as an error; a page that is left ends its requests. */
const EXPECTED = /status of 401|ERR_ABORTED/;

/** Texts that a page must show and never execute: what tries markup, attributes, addresses, templates and odd encodings. */
export const ALL_PAYLOADS: readonly string[] = [
  '<script>window.hit=1</script>',
  '<img src=x onerror="window.hit=1">',
  '<svg onload=window.hit=1>',
  '"><iframe srcdoc="<script>parent.hit=1</script>">',
  "javascript:window.hit=1//'",
  '{{constructor.constructor("window.hit=1")()}}',
  '<ScRiPt>window.hit=1</sCrIpT>',
  '<script/src=data:,window.hit=1></script>',
  '<<script>window.hit=1//<</script>',
  '</script><script>window.hit=1</script>',
  '</textarea><script>window.hit=1</script>',
  '</title><script>window.hit=1</script>',
  '<!--<img src="--><img src=x onerror=window.hit=1//">',
  '<![CDATA[<script>window.hit=1</script>]]>',
  '<body onload=window.hit=1>',
  '<input autofocus onfocus=window.hit=1>',
  '<select autofocus onfocus=window.hit=1>',
  '<details open ontoggle=window.hit=1>',
  '<marquee onstart=window.hit=1>',
  '<video><source onerror=window.hit=1>',
  '<audio src=x onerror=window.hit=1>',
  '<object data="javascript:window.hit=1">',
  '<embed src="javascript:window.hit=1">',
  '<a href="javascript:window.hit=1" autofocus>a</a>',
  '<a href="java\tscript:window.hit=1">a</a>',
  '<form action="javascript:window.hit=1"><button>b</button></form>',
  '<math href="javascript:window.hit=1">m</math>',
  '<svg><animate onbegin=window.hit=1 attributeName=x dur=1s>',
  '<svg><script href="data:,window.hit=1"/></svg>',
  '<style>@import "javascript:window.hit=1";</style>',
  '<link rel=stylesheet href="data:,*{color:red}">',
  '<meta http-equiv=refresh content="0;url=javascript:window.hit=1">',
  '<base href="javascript:window.hit=1//">',
  '" onmouseover="window.hit=1" x="',
  "' onfocus='window.hit=1' autofocus='",
  '#{window.hit=1} <%= window.hit=1 %>',
  '\u003cscript\u003ewindow.hit=1\u003c/script\u003e',
  '&lt;script&gt;window.hit=1&lt;/script&gt;',
  '\u202e<script>window.hit=1</script>\u202c',
  '[a](javascript:window.hit=1) ![b](x"onerror="window.hit=1)',
];
/** The first of each sort. */
export const PAYLOADS = ALL_PAYLOADS.slice(0, 6);
/** All of these in one text: a page that takes it for anything but text executes at least one. It begins as an address. */
export const PAYLOAD = PAYLOADS.toSorted(
  (one, other) => Number(other.startsWith('javascript:')) - Number(one.startsWith('javascript:')),
).join(' ');

const WINDOW = { width: 1280, height: 720 };
/** As long as the console waits for an undo, and a little more. */
const UNDO_MS = 5_100;
/** A clock can be stopped only at a time that has not come yet. No test takes longer. */
const HEADROOM_MS = 60_000;
/** As long as the console waits between two questions, and a little more. */
const POLL_MS = 5_100;

/** The windows of each browser, by who looks through them and how; a window is open for one test at a time. */
const windows = new WeakMap<Browser, Map<string, Promise<WatchedPage>>>();

/**
 * Opens a page of the console as somebody who is signed in. A second test of the same person gets the same window: what a
 * new one loads and compiles costs four times as much as the page.
 */
export async function enter(
  browser: Browser,
  host: string,
  key: string,
  rest: string,
  { viewport = WINDOW, ...options }: BrowserContextOptions = {},
): Promise<Visit> {
  const window = await windowOf(browser, JSON.stringify([host, key, options]), options);
  const { page } = window;
  window.forget();
  // A page that nobody looks at any more goes on asking the host, and drawing what it says.
  onTestFinished(async () => {
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.goto('about:blank');
  });
  await page.setViewportSize(viewport ?? WINDOW);
  await page.goto(`${host}/console/${rest}`);
  const isSignedIn = (await page.context().cookies()).length > 0;
  if (!isSignedIn) {
    await page.fill('input[name=key]', key);
    await page.click('button[type=submit]');
  }
  await page.locator('nav').first().waitFor();
  return window;
}

function windowOf(browser: Browser, who: string, options: BrowserContextOptions): Promise<WatchedPage> {
  const known = windows.get(browser) ?? new Map<string, Promise<WatchedPage>>();
  windows.set(browser, known);
  const window = known.get(who) ?? newWindow(browser, options);
  known.set(who, window);
  return window;
}

/** A window whose clock a test can put forward. Until then its time passes as it does everywhere. */
async function newWindow(browser: Browser, options: BrowserContextOptions): Promise<WatchedPage> {
  const window = await newPage(browser, options);
  await window.page.clock.install();
  return window;
}

/** Goes to another page of the console as a link does, without loading everything anew. */
export async function go(page: Page, rest: string): Promise<void> {
  await page.evaluate(`history.pushState(null, '', new URL(${JSON.stringify(rest)}, document.baseURI))`);
}

/** Loads a page again, and waits until it is told what happens from now on. */
export async function reloadWithFeed(page: Page): Promise<void> {
  const url = page.url();
  // The answer to a question of the page before would be taken for that of the new one.
  await page.goto('about:blank');
  const feed = page.waitForResponse((response) => response.url().endsWith('/v1/host/capstan/events'));
  await page.goto(url);
  await feed;
}

/**
 * Does something that can be undone, and lets the time pass in which it can be: the page sends it now. The clock stands
 * still meanwhile, so the time cannot pass by itself while a busy machine looks for the notice.
 */
export async function passUndo(page: Page, act: () => Promise<void>): Promise<void> {
  await whileHeld(page, async () => {
    await act();
    await undoButton(page).waitFor();
    await page.clock.fastForward(UNDO_MS);
  });
}

/** Does something and undoes it before the page sends it, however busy the machine is. */
export async function undo(page: Page, act: () => Promise<void>): Promise<void> {
  await whileHeld(page, async () => {
    await act();
    await undoButton(page).click();
  });
}

/** The one for what was done last. */
function undoButton(page: Page): Locator {
  return page.getByRole('button', { name: 'Undo' }).last();
}

/** Stops the clock of a page for a while. What the page then reads from the host is not shown before the clock goes on. */
async function whileHeld(page: Page, act: () => Promise<void>): Promise<void> {
  const now = await page.evaluate<number>('Date.now()');
  await page.clock.pauseAt(now + HEADROOM_MS);
  try {
    await act();
  } finally {
    await page.clock.resume();
  }
}

/** Lets the time pass after which the page asks the host again for what no stream tells. */
export async function passPoll(page: Page): Promise<void> {
  await page.clock.fastForward(POLL_MS);
}

/** What went wrong on a page, but for what has to. */
export function unexpected({ problems }: Visit, more = EXPECTED): string[] {
  return problems.filter((problem) => !EXPECTED.test(problem) && !more.test(problem));
}
