import { consoleRoot } from '../api/client.ts';

const PAUSE_MS = 500;
/** A page that was loaded afresh so shortly before is not helped by that. */
const HELPED_MS = 10_000;
const NOTE = 'capstan-loaded-afresh';

/**
 * Loads a part of the console. Browsers remember that a part could not be loaded, such as during a restart of the host,
 * or after an upgrade that gave it another name: then the page is loaded afresh as soon as the host answers.
 */
export async function loaded<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    while (!(await answers())) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    if (Date.now() - Number(sessionStorage.getItem(NOTE)) < HELPED_MS) throw error;
    sessionStorage.setItem(NOTE, String(Date.now()));
    location.reload();
    return new Promise(() => {});
  }
}

async function answers(): Promise<boolean> {
  return fetch(consoleRoot, { cache: 'no-store' }).then(
    ({ ok }) => ok,
    () => false,
  );
}
