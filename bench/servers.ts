import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** The key of the tenant that every load belongs to. */
export const KEY = 'bench-key-of-alpha';
/** Longer than the rest after which a host gives memory back that a load took (`src/system/memory.ts`). */
export const REST_MS = 310_000;

/** A program that a load is put on. */
export interface BenchServer {
  readonly url: string;
  readonly pid: number;
  /** The database server that works for it alone, if it has one. */
  readonly databasePid?: number;
  /** Where its data is. */
  readonly folder: string;
  readonly environment: Record<string, string>;
  /** Ends it at once, and leaves its data. */
  kill(): Promise<void>;
  /** Ends it and takes its data away. */
  stop(): Promise<void>;
}

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

/** The command as an operator runs it. It serves in its own process: the Node of the bench is new enough for it. */
export const COMMAND = path('../bin/capstan.js');

/** The host as an operator runs it, with its default store, on a folder of its own. */
export function startCapstan(
  environment: Record<string, string> = {},
  options: readonly string[] = [],
): Promise<BenchServer> {
  return start((folder) => [COMMAND, 'serve', '--data', folder, ...options], {
    PORT: '0',
    CAPSTAN_LOG: 'silent',
    CAPSTAN_CONFORMANCE: '1',
    CAPSTAN_RATE_LIMIT: '1000000',
    CAPSTAN_API_KEYS: JSON.stringify([{ key: KEY, tenant: 'alpha', principal: 'bench', role: 'owner' }]),
    ...environment,
  });
}

/** Kills a host, and starts it again on what it left behind, once the time has come. */
export async function restartCapstan(host: BenchServer, notBefore: number): Promise<BenchServer> {
  await host.kill();
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, notBefore - Date.now())));
  const { folder, environment, databasePid } = host;
  const again = await start(() => [COMMAND, 'serve', '--data', folder], environment, { folder });
  return { ...again, ...(databasePid ? { databasePid } : {}) };
}

/** The limit program, with two or three commits for each run. */
export function startLimit(commits: 2 | 3 = 2): Promise<BenchServer> {
  return start((folder) => [path('./limit.ts'), folder, String(commits)], {});
}

interface StartOptions {
  /** Where its data is; a new folder by default. */
  readonly folder?: string;
  /** How it is told to end. */
  readonly ending?: NodeJS.Signals;
}

/** A program that says what it listens on, as the host does. */
export async function start(
  argumentsFor: (folder: string) => string[],
  environment: Record<string, string>,
  { folder = mkdtempSync(join(tmpdir(), 'capstan-bench-')), ending = 'SIGKILL' }: StartOptions = {},
): Promise<BenchServer> {
  const child = spawn(process.execPath, argumentsFor(folder), {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  };
  return {
    url: await announcedUrl(child),
    pid: child.pid!,
    folder,
    environment,
    kill: () => end('SIGKILL'),
    stop: async () => {
      await end(ending);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function announcedUrl(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout! })) {
    const [, url] = /^listening on (\S+)$/.exec(line) ?? [];
    if (url) return url;
  }
  throw new Error('the server ended before it was listening');
}
