import { chmod, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { isObject } from '../protocol/format/json.ts';
import { UsageError } from './exit.ts';
import type { Terminal } from './terminal.ts';

export const DEFAULT_URL = 'http://127.0.0.1:3210';

/** Which host to speak to, and as whom. */
export interface Login {
  readonly url: string;
  readonly key: string | undefined;
  /** Where the key comes from, to tell people. */
  readonly source: 'CAPSTAN_KEY' | 'login' | undefined;
}

interface Saved {
  /** The host that is meant when none is named. */
  readonly url?: string;
  /** Keys by the host they are for: none is ever shown to another. */
  readonly keys: Readonly<Record<string, string>>;
}

type Environment = Terminal['environment'];

export function credentialsPath({ CAPSTAN_CONFIG, XDG_CONFIG_HOME }: Environment): string {
  return CAPSTAN_CONFIG ?? join(XDG_CONFIG_HOME ?? join(homedir(), '.config'), 'capstan', 'credentials.json');
}

export async function currentLogin(environment: Environment): Promise<Login> {
  const saved = await readSaved(credentialsPath(environment));
  const url = normalUrl(environment.CAPSTAN_URL || saved.url || DEFAULT_URL);
  if (environment.CAPSTAN_KEY) return { url, key: environment.CAPSTAN_KEY, source: 'CAPSTAN_KEY' };
  const key = Object.hasOwn(saved.keys, url) ? saved.keys[url] : undefined;
  return { url, key, source: key === undefined ? undefined : 'login' };
}

export async function saveLogin(environment: Environment, url: string, key: string): Promise<void> {
  const path = credentialsPath(environment);
  const saved = await readSaved(path);
  await writeSaved(path, { url, keys: { ...saved.keys, [url]: key } });
}

/** Says whether there was a key to forget. */
export async function forgetLogin(environment: Environment, url: string): Promise<boolean> {
  const path = credentialsPath(environment);
  const { [url]: forgotten, ...keys } = (await readSaved(path)).keys;
  if (forgotten === undefined) return false;
  await writeSaved(path, { url, keys });
  return true;
}

/** Whether others on this machine may read the file. */
export async function isOpenToOthers(environment: Environment): Promise<boolean> {
  const found = await stat(credentialsPath(environment)).catch(ifAbsent(undefined));
  return found !== undefined && (found.mode & 0o077) !== 0;
}

export function normalUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new UsageError(`${text} is not the URL of a host. It looks like ${DEFAULT_URL}.`);
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

async function readSaved(path: string): Promise<Saved> {
  const text = await readFile(path, 'utf8').catch(ifAbsent('{}'));
  const saved = parse(path, text);
  const keys = isObject(saved.keys) ? (saved.keys as Record<string, string>) : {};
  return typeof saved.url === 'string' ? { url: saved.url, keys } : { keys };
}

function parse(path: string, text: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(text);
    if (isObject(parsed)) return parsed;
  } catch {
    // Told below, together with JSON of another shape; the text is not repeated, since it may hold keys.
  }
  throw new UsageError(`${path} cannot be read. Remove it and log in again.`);
}

/** Written beside and moved, so that nobody ever finds half a file, and none that others may read. */
async function writeSaved(path: string, saved: Saved): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const beside = `${path}.new`;
  await writeFile(beside, `${JSON.stringify(saved, null, 2)}\n`, { mode: 0o600 });
  await chmod(beside, 0o600);
  await rename(beside, path);
}

function ifAbsent<T>(otherwise: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === 'ENOENT') return otherwise;
    throw error;
  };
}
