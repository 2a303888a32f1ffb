import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';

/** The pictures that the documents use; the others go where only the one who looks at them finds them. */
const KEPT: readonly string[] = ['inbox-light', 'proposal-light', 'goal-dark'];

/** Takes a picture of a page, and keeps it if the documents show it. `CAPSTAN_SHOTS` names a folder for all others. */
export async function shoot(page: Page, name: string): Promise<void> {
  const folder = KEPT.includes(name)
    ? fileURLToPath(new URL('../../docs/console/', import.meta.url))
    : process.env.CAPSTAN_SHOTS;
  if (folder === undefined) return;
  await page.screenshot({ path: `${folder}/${name}.jpg`, type: 'jpeg', quality: 60 });
}
