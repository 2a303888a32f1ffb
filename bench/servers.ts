import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** What the kernel counts CPU time in. */
const TICK_MS = 10;

export const KEY = 'bench-key-of-alpha';

export interface BenchServer {
  readonly url: string;
  readonly pid: number;
  /** Where its data is. */
  readonly folder: string;
  stop(): Promise<void>;
}

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

/** The host as an operator runs it, with its default store, on a folder of its own. */
export function startCapstan(environment: Record<string, string> = {}): Promise<BenchServer> {
  return start((folder) => [path('../src/cli/main.ts'), 'serve', '--data', folder], {
    PORT: '0',
    CAPSTAN_LOG: 'silent',
    CAPSTAN_CONFORMANCE: '1',
    CAPSTAN_RATE_LIMIT: '1000000',
    CAPSTAN_API_KEYS: JSON.stringify([{ key: KEY, tenant: 'alpha', principal: 'bench', role: 'owner' }]),
    ...environment,
  });
}

/** Asks a host that must answer with success. */
// biome-ignore lint/suspicious/noExplicitAny: a client for a handful of replies
export async function api({ url }: BenchServer, method: string, path: string, body?: unknown): Promise<any> {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${KEY}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

export function startLimit(): Promise<BenchServer> {
  return start((folder) => [path('./limit.ts'), folder], {});
}

async function start(
  argumentsFor: (folder: string) => string[],
  environment: Record<string, string>,
): Promise<BenchServer> {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-bench-'));
  const child = spawn(process.execPath, argumentsFor(folder), {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return {
    url: await announcedUrl(child),
    pid: child.pid!,
    folder,
    stop: async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null) await once(child, 'exit');
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

/** The processor time that a process has used since it was started. */
export function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}
