import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below those that systems give out by themselves, to whoever connects or listens anywhere: nobody gets one of these
 * between this search and its use.
 */
const [FIRST, AFTER_LAST] = [15_000, 32_768];
const TRIES = 100;

/** A port of this machine that nobody listens on now, and that nobody is given unless they ask for it. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries++) {
    const port = randomInt(FIRST, AFTER_LAST);
    if (await isFree(port)) return port;
  }
  throw new Error(`none of ${TRIES} ports is free`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
