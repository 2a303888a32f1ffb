import { resolve } from 'node:path';
import type { Config } from '../config.ts';
import { parseDatabaseUrl } from '../store/database-url.ts';
import { StoreFailure } from '../store/store.ts';

/** The settings that name what a start needs: an address, a store and a folder of workflows. */
type StartSettings = Pick<Config, 'host' | 'port' | 'dataFolder' | 'databaseUrl' | 'workflowsFolder'>;

/** The SQLite result for a file that is something else. */
const NOT_A_DATABASE = 26;

/** What every error of the operating system, of SQLite or of PostgreSQL may carry. */
interface SystemError {
  readonly code?: unknown;
  readonly syscall?: unknown;
  readonly path?: string;
  readonly errcode?: unknown;
  readonly severity?: unknown;
  readonly message: string;
}

/** Says in one line why the host or its store cannot be opened, and what to do about it. */
export function startFailure(error: Error, settings: StartSettings): string {
  const cause = innermost(error);
  return (
    workflowsFailure(cause, settings) ??
    (error instanceof StoreFailure && settings.databaseUrl
      ? databaseFailure(cause, settings.databaseUrl)
      : (listenFailure(cause, settings) ?? folderFailure(error, cause, settings))) ??
    error.message
  );
}

/** Whether a start failed because its address cannot be used. */
export function isListenFailure(error: Error, settings: StartSettings): boolean {
  return listenFailure(innermost(error), settings) !== undefined;
}

function innermost(error: Error): SystemError {
  return error.cause instanceof Error ? innermost(error.cause) : error;
}

function listenFailure({ code, syscall }: SystemError, { host, port }: StartSettings): string | undefined {
  if (syscall === 'getaddrinfo' || code === 'EADDRNOTAVAIL') {
    return `This machine has no address ${host}. Correct --host (HOST), for example 127.0.0.1 or 0.0.0.0.`;
  }
  if (syscall !== 'listen') return undefined;
  if (code === 'EADDRINUSE') {
    return `Port ${port} of ${host} is taken by another program. Stop that program, or choose another port with --port (PORT).`;
  }
  return `Cannot listen on port ${port} of ${host} (${code}). Choose another port with --port (PORT).`;
}

function workflowsFailure({ code, syscall }: SystemError, { workflowsFolder }: StartSettings): string | undefined {
  if (syscall !== 'scandir' || workflowsFolder === undefined) return undefined;
  return `Cannot read the workflows folder ${workflowsFolder} (${code}). Create it, or correct --workflows (CAPSTAN_WORKFLOWS).`;
}

function folderFailure(
  error: Error,
  { code, syscall, path = '', errcode }: SystemError,
  { dataFolder }: StartSettings,
): string | undefined {
  const advice = 'Choose another folder with --data (CAPSTAN_DATA).';
  if (errcode === NOT_A_DATABASE)
    return `The data folder ${dataFolder} holds a file that is not a Capstan store. ${advice}`;
  // The store has its own words for what it found, a damaged file for instance.
  if (error instanceof StoreFailure) return undefined;
  const isWithin = syscall === 'mkdir' || (path !== '' && resolve(path).startsWith(resolve(dataFolder)));
  if (isWithin && (code === 'EEXIST' || code === 'ENOTDIR'))
    return `The data folder ${dataFolder} is a file, not a folder. ${advice}`;
  return isWithin || typeof errcode === 'number'
    ? `Cannot write to the data folder ${dataFolder} (${code}). ${advice}`
    : undefined;
}

/** Names the address only, because the URL may contain a password. */
function databaseFailure({ code, severity, message }: SystemError, url: string): string | undefined {
  const parsed = parseDatabaseUrl(url);
  const host = typeof parsed === 'string' ? '' : parsed.servers.map(({ name }) => name).join(', ');
  if (severity !== undefined) return `The database at ${host} refused: ${message}. Check DATABASE_URL.`;
  const isNetwork = typeof code === 'string' && /^E[A-Z_]+$/.test(code);
  if (!isNetwork && !/time|connect/i.test(message)) return undefined;
  return `Cannot reach the database at ${host} (${isNetwork ? code : message}). Start it, or correct DATABASE_URL.`;
}
