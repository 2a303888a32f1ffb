import type { Browser, BrowserContextOptions } from 'playwright-core';
import { type Visit, visit } from './browser.ts';

/** Nobody is signed in at first, which browsers report as an error; a page that is left ends its requests. */
const EXPECTED = /status of 401|ERR_ABORTED/;

/** Texts that a page must show and never execute. */
export const PAYLOADS = [
  '<script>window.hit=1</script>',
  '<img src=x onerror="window.hit=1">',
  '<svg onload=window.hit=1>',
  '"><iframe srcdoc="<script>parent.hit=1</script>">',
  "javascript:window.hit=1//'",
  '{{constructor.constructor("window.hit=1")()}}',
];

/** Opens a page of the console as somebody who signs in first. */
export async function enter(
  browser: Browser,
  host: string,
  key: string,
  rest: string,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const visited = await visit(browser, `${host}/console/${rest}`, options);
  await visited.page.fill('input[name=key]', key);
  await visited.page.click('button[type=submit]');
  await visited.page.locator('nav').first().waitFor();
  return visited;
}

/** What went wrong on a page, but for what has to. */
export function unexpected({ problems }: Visit, more = EXPECTED): string[] {
  return problems.filter((problem) => !EXPECTED.test(problem) && !more.test(problem));
}
