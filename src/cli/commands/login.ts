import { createClient, RefusedError } from '../../client/index.ts';
import type { CommandSpec } from '../command.ts';
import { credentialsPath, currentLogin, forgetLogin, normalUrl, saveLogin } from '../credentials.ts';
import { EXIT, UsageError } from '../exit.ts';

export const login: CommandSpec = {
  name: 'login',
  takes: '[url]',
  summary: 'Keep the address of a host and a key for it; the key is asked for, or piped in',
  example: 'login http://127.0.0.1:3210',
  async run(context, { args: [given] }) {
    const { terminal } = context;
    const { environment } = terminal;
    const url = given === undefined ? (await currentLogin(environment)).url : normalUrl(given);
    const typed = terminal.isInteractive ? await terminal.askSecret(`Key for ${url}: `) : await terminal.input();
    const key = typed.trim();
    if (key === '') throw new UsageError('There is no key. Pipe one in, or type it when you are asked.');
    const { implementation } = await createClient({ url, key }).getCapabilities();
    await checkKey(url, key);
    await saveLogin(environment, url, key);
    const { name = 'a host' } = (implementation ?? {}) as { name?: string };
    context.show({ url }, () => [`Logged in to ${name} at ${url}. The key is in ${credentialsPath(environment)}.`]);
    return EXIT.done;
  },
};

/** A key that may do nothing is still a key. */
export async function checkKey(url: string, key: string): Promise<void> {
  try {
    // Every host of the protocol has this route, and asks for a credential before it looks for the run.
    await createClient({ url, key }).getRun('run-that-is-not-there');
  } catch (error) {
    if (!(error instanceof RefusedError) || error.status === 401) throw error;
  }
}

export const logout: CommandSpec = {
  name: 'logout',
  takes: '[url]',
  summary: 'Forget the key for a host',
  example: 'logout http://127.0.0.1:3210',
  async run(context, { args: [given] }) {
    const { environment } = context.terminal;
    const url = given === undefined ? (await currentLogin(environment)).url : normalUrl(given);
    const isForgotten = await forgetLogin(environment, url);
    context.show({ url }, () => [isForgotten ? `The key for ${url} is forgotten.` : `There was no key for ${url}.`]);
    return EXIT.done;
  },
};
