import { RefusedError } from '../../client/index.ts';
import type { CommandSpec } from '../command.ts';
import { credentialsPath, currentLogin, normalizeUrl, removeLogin, saveLogin } from '../credentials.ts';
import { EXIT, UsageError } from '../exit.ts';
import { hostClient } from '../host-client.ts';

/** `capstan login`; stores the key only after the host has accepted it. */
export const login: CommandSpec = {
  name: 'login',
  takes: '[url]',
  summary: 'Store a host URL and an API key; the key is read from a prompt or from standard input',
  example: 'login http://127.0.0.1:3210',
  json: 'result',
  async run(context, { args: [given] }) {
    const { terminal } = context;
    const { environment } = terminal;
    const url = given === undefined ? (await currentLogin(environment)).url : normalizeUrl(given);
    const typed = terminal.isInteractive ? await terminal.askSecret(`Key for ${url}: `) : await terminal.input();
    const key = typed.trim();
    if (key === '') throw new UsageError('No key given. Type it at the prompt, or pass it on standard input.');
    const { implementation } = await hostClient({ url, key }).getCapabilities();
    await checkKey(url, key);
    await saveLogin(environment, url, key);
    const { name = 'a host' } = (implementation ?? {}) as { name?: string };
    context.show({ url }, () => [
      `Logged in to ${name} at ${url}. The key is stored in ${credentialsPath(environment)}.`,
    ]);
    return EXIT.done;
  },
};

/** Throws when the host does not accept the key; a key without any scope is accepted. */
export async function checkKey(url: string, key: string): Promise<void> {
  try {
    // Every OpenWOP host has this route and checks the key before it looks for the run.
    await hostClient({ url, key }).getRun('run-that-does-not-exist');
  } catch (error) {
    if (!(error instanceof RefusedError) || error.status === 401) throw error;
  }
}

/** `capstan logout`. */
export const logout: CommandSpec = {
  name: 'logout',
  takes: '[url]',
  summary: 'Delete the stored key for a host',
  example: 'logout http://127.0.0.1:3210',
  json: 'result',
  async run(context, { args: [given] }) {
    const { environment } = context.terminal;
    const url = given === undefined ? (await currentLogin(environment)).url : normalizeUrl(given);
    const isRemoved = await removeLogin(environment, url);
    context.show({ url }, () => [isRemoved ? `Deleted the key for ${url}.` : `No key was stored for ${url}.`]);
    return EXIT.done;
  },
};
