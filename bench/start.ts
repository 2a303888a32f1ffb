import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { bundleProgram } from '../scripts/bundle.ts';
import { cpuOfTree } from './processor.ts';
import { KEY } from './servers.ts';
import { median } from './statistics.ts';

const ROUNDS = 5;
const REST_MS = 5_000;
const RUNS = 2_000;

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);

/** The figures of one round, by what they measure. */
type Figures = Record<string, number>;

/** What a start, a rest and a call cost: from the sources, and from the bundle that the package has. Linux alone. */
export async function benchStart(): Promise<void> {
  console.log(`\nstart, rest and calls, medians of ${ROUNDS} rounds`);
  const folder = mkdtempSync(join(ROOT, '.bundle-'));
  try {
    await bundleProgram(folder);
    const programs = { sources: join(ROOT, 'src/cli/main.ts'), package: join(folder, 'main.js') };
    const caches = mkdtempSync(join(tmpdir(), 'capstan-compiled-'));
    for (const program of Object.values(programs)) await roundOf(program, caches);
    const rounds: Record<keyof typeof programs, Figures>[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const sources = await roundOf(programs.sources, caches);
      rounds.push({ sources, package: await roundOf(programs.package, caches) });
    }
    rmSync(caches, { recursive: true, force: true });
    const names = Object.keys(rounds[0]!.package);
    const row = (name: string) => ({
      sources: rounded(rounds.map(({ sources }) => sources[name]!)),
      package: rounded(rounds.map((round) => round.package[name]!)),
    });
    console.table(Object.fromEntries(names.map((name) => [name, row(name)])));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One start on an empty folder, with the cache of compiled code that the command has after its first use. */
async function roundOf(program: string, cache: string): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-bench-'));
  const env = {
    ...process.env,
    NODE_COMPILE_CACHE: cache,
    PORT: '0',
    CAPSTAN_LOG: 'silent',
    CAPSTAN_RATE_LIMIT: '1000000',
    CAPSTAN_DRAIN_MS: '0',
    CAPSTAN_API_KEYS: JSON.stringify([{ key: KEY, tenant: 'alpha', principal: 'bench', role: 'owner' }]),
  };
  const started = performance.now();
  const child = spawn(process.execPath, [program, 'serve', '--data', folder], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const url = await listening(child.stdout);
    const readyMs = performance.now() - started;
    const readyCpuMs = cpuOfTree(child.pid!);
    await wait(REST_MS);
    const restMb = residentMb(child.pid!);
    const before = cpuOfTree(child.pid!);
    await wait(REST_MS);
    const restCpuMs = cpuOfTree(child.pid!) - before;
    const callEnv = { ...env, CAPSTAN_URL: url, CAPSTAN_KEY: KEY };
    const versionMs = await timeOf([program, '--version'], callEnv);
    const listMs = await timeOf([program, 'runs', 'list'], callEnv);
    const bytes = await bytesPerRun(url, folder);
    return {
      'start to ready, ms': readyMs,
      'start to ready, CPU ms': readyCpuMs,
      [`memory after ${REST_MS / 1_000} s, MB`]: restMb,
      [`CPU in ${REST_MS / 1_000} s at rest, ms`]: restCpuMs,
      'capstan --version, ms': versionMs,
      'capstan runs list, ms': listMs,
      'database bytes per one-step run': bytes,
    };
  } finally {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
    rmSync(folder, { recursive: true, force: true });
  }
}

async function listening(output: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface({ input: output })) {
    const [, url] = /^listening on (\S+)$/.exec(line) ?? [];
    if (url) return url;
  }
  throw new Error('the host ended before it was listening');
}

/** What a finished run of one node adds to the files of the store. */
async function bytesPerRun(url: string, folder: string): Promise<number> {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
  const node = { id: 'n', typeId: 'core.noop', name: 'n', position: { x: 0, y: 0 }, config: {}, inputs: {} };
  const definition = { id: 'one', name: 'one node', version: '1', nodes: [node], edges: [] };
  const rest = { triggers: [], variables: [], metadata: {}, settings: {} };
  const post = (path: string, body: object) =>
    fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const registered = await post('/v1/host/capstan/workflows', { ...definition, ...rest });
  if (!registered.ok) throw new Error(await registered.text());
  const before = storedBytes(folder);
  for (let started = 0; started < RUNS; started += 50) {
    await Promise.all(Array.from({ length: 50 }, () => post('/v1/runs', { workflowId: 'one' })));
  }
  await wait(1_000);
  return (storedBytes(folder) - before) / RUNS;
}

/** The bytes of the pages that are in use. */
function storedBytes(folder: string): number {
  using database = new DatabaseSync(join(folder, 'capstan.db'), { readOnly: true });
  const pragma = (name: string): number => Number(Object.values(database.prepare(`PRAGMA ${name}`).get()!)[0]);
  return (pragma('page_count') - pragma('freelist_count')) * pragma('page_size');
}

async function timeOf(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const started = performance.now();
  await run(process.execPath, [...args], { env });
  return performance.now() - started;
}

function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_000;
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function rounded(values: readonly number[]): number {
  return Math.round(median(values));
}
