import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below those that systems hand out to whoever asks for any: until it is used, nobody else gets it by chance. */
const [FIRST, LAST] = [20_000, 32_000];
const TRIES_MAX = 100;

/** A port of this machine that nobody listens on now. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const port = randomInt(FIRST, LAST);
    if (await isFree(port)) return port;
  }
  throw new Error('no port is free');
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
