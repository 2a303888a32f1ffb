import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AskedHost } from '../support/retrying-load.ts';

/** The key of everybody in the trial. */
const KEY = 'upgrade-trial-key-of-alpha';
const START_MAX_MS = 120_000;

/** A host of some version, in a process of its own. */
export interface TrialHost extends AskedHost {
  readonly name: string;
  output(): string;
  /** Asks it to stop, and gives the code that it ends with. */
  stop(): Promise<number | null>;
  kill(): Promise<void>;
}

/** Starts a host from the sources of a checkout. */
export async function startHostOf(checkout: string, name: string, databaseUrl: string): Promise<TrialHost> {
  const child = spawn(process.execPath, ['src/cli/main.ts', 'serve'], {
    cwd: checkout,
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      DATABASE_URL: databaseUrl,
      CAPSTAN_LOG: 'warn',
      CAPSTAN_CONFORMANCE: '1',
      CAPSTAN_RATE_LIMIT: '1000000',
      CAPSTAN_LEASE_MS: '5000',
      CAPSTAN_API_KEYS: JSON.stringify([{ key: KEY, tenant: 'alpha', principal: 'trial', role: 'owner' }]),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  const exit = once(child, 'exit');
  const url = await new Promise<string>((resolve, reject) => {
    const giveUp = setTimeout(() => reject(new Error(`${name} does not listen:\n${text}`)), START_MAX_MS);
    const look = (chunk: string): void => {
      text += chunk;
      const [, found] = /^listening on (http:\S+)$/m.exec(text) ?? [];
      if (found === undefined) return;
      clearTimeout(giveUp);
      resolve(found);
    };
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', look);
    void exit.then(() => reject(new Error(`${name} ended:\n${text}`)));
  });
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal);
    const [code] = await exit;
    return code;
  };
  return {
    ...{ name, url, key: KEY },
    output: () => text,
    stop: () => end('SIGTERM'),
    kill: async () => void (await end('SIGKILL')),
  };
}
