import { chmod, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { isObject } from '../protocol/format/json.ts';
import { UsageError } from './exit.ts';
import type { Terminal } from './terminal.ts';

/** The host that is used when neither CAPSTAN_URL nor `capstan login` names one. */
const DEFAULT_URL = 'http://127.0.0.1:3210';

/** The host and API key that commands use. */
export interface Login {
  readonly url: string;
  readonly key: string | undefined;
  /** Where the key was found; shown by `capstan doctor`. */
  readonly source: 'CAPSTAN_KEY' | 'login' | undefined;
}

/** The content of the credentials file. */
interface CredentialsFile {
  /** The default host: the one of the last login. */
  readonly url?: string;
  /** API keys by host URL, so that a key is never sent to another host. */
  readonly keys: Readonly<Record<string, string>>;
}

type Environment = Terminal['environment'];

/** The path of the credentials file; CAPSTAN_CONFIG overrides it. */
export function credentialsPath({ CAPSTAN_CONFIG, XDG_CONFIG_HOME }: Environment): string {
  return CAPSTAN_CONFIG ?? join(XDG_CONFIG_HOME ?? join(homedir(), '.config'), 'capstan', 'credentials.json');
}

/** Finds the host and key; environment variables win over the credentials file. */
export async function currentLogin(environment: Environment): Promise<Login> {
  const saved = await readCredentials(credentialsPath(environment));
  const url = normalizeUrl(environment.CAPSTAN_URL || saved.url || DEFAULT_URL);
  if (environment.CAPSTAN_KEY) return { url, key: environment.CAPSTAN_KEY, source: 'CAPSTAN_KEY' };
  const key = Object.hasOwn(saved.keys, url) ? saved.keys[url] : undefined;
  return { url, key, source: key === undefined ? undefined : 'login' };
}

/** Stores the key for a host and makes that host the default. */
export async function saveLogin(environment: Environment, url: string, key: string): Promise<void> {
  const path = credentialsPath(environment);
  const saved = await readCredentials(path);
  await writeCredentials(path, { url, keys: { ...saved.keys, [url]: key } });
}

/** Deletes the stored key for a host; returns false when there was none. */
export async function removeLogin(environment: Environment, url: string): Promise<boolean> {
  const path = credentialsPath(environment);
  const { [url]: removed, ...keys } = (await readCredentials(path)).keys;
  if (removed === undefined) return false;
  await writeCredentials(path, { url, keys });
  return true;
}

/** Who can read the credentials file: only its owner, or group or others too. There may be none. */
export async function readersOfCredentials(environment: Environment): Promise<'owner' | 'others' | 'no file'> {
  const found = await stat(credentialsPath(environment)).catch(ifAbsent(undefined));
  if (found === undefined) return 'no file';
  return (found.mode & 0o077) === 0 ? 'owner' : 'others';
}

/** Checks a host URL and removes query, fragment and trailing slashes, so that equal hosts compare equal. */
export function normalizeUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new UsageError(`${text} is not a host URL. Use a URL like ${DEFAULT_URL}.`);
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

async function readCredentials(path: string): Promise<CredentialsFile> {
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
    // Reported below. The message leaves out the content, because it may contain keys.
  }
  throw new UsageError(`${path} is not a valid credentials file. Delete it and run \`capstan login\` again.`);
}

/** Writes a temporary file and renames it: readers never see a partial file, or one with open permissions. */
async function writeCredentials(path: string, saved: CredentialsFile): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.new`;
  await writeFile(temporary, `${JSON.stringify(saved, null, 2)}\n`, { mode: 0o600 });
  await chmod(temporary, 0o600);
  await rename(temporary, path);
}

function ifAbsent<T>(otherwise: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === 'ENOENT') return otherwise;
    throw error;
  };
}
