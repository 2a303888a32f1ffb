import { mkdirSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { showTheme } from './browser.ts';

/** Takes a picture of a page into the folder that `CAPSTAN_SHOTS` names; `npm run screenshots` names that of the documents. */
export async function shoot(page: Page, name: string): Promise<void> {
  const folder = process.env.CAPSTAN_SHOTS;
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: `${folder}/${name}.jpg`, type: 'jpeg', quality: 60 });
}

/** Takes a picture in each theme. */
export async function shootBoth(page: Page, name: string): Promise<void> {
  if (process.env.CAPSTAN_SHOTS === undefined) return;
  await shoot(page, `${name}-light`);
  await showTheme(page, 'dark');
  await shoot(page, `${name}-dark`);
  await showTheme(page, 'light');
}
