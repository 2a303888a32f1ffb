import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parseArgs, promisify } from 'node:util';
import { isOfTheseSources } from '../bin/sources.js';
import { bytesIn, dependencyFolders } from '../test/support/installed-size.ts';
import { chain, register } from './api.ts';
import { load } from './load.ts';
import { measureWrites, startPostgres } from './postgres.ts';
import { cpuOfThreads, untilQuiet } from './processor.ts';
import { provenance } from './provenance.ts';
import { writeStart } from './report.ts';
import { type BenchServer, COMMAND, KEY, startCapstan } from './servers.ts';
import { type StartFigures, startRows } from './start-section.ts';

const OPTIONS = {
  rounds: { type: 'string', default: '5' },
  /** Seconds to wait for quiet cores before a round. */
  patience: { type: 'string', default: '60' },
  /** Seconds of rest: the first are for the garbage of the start, the others are measured. */
  rest: { type: 'string', default: '10' },
  runs: { type: 'string', default: '3000' },
  /** Skips the build and measures `dist/` as it is. */
  built: { type: 'boolean', default: false },
  /** The folder that the page is written to, if not that of the repository. */
  docs: { type: 'string' },
} as const;

const ROOT = join(import.meta.dirname, '..');
const run = promisify(execFile);

/** What hosts and commands cost before and after they work, and what is left of a run. Linux alone. */
export async function benchStart(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  const rounds = Number(values.rounds);
  console.log(`\nstart, rest and calls, ${rounds} rounds`);
  // What operators have: the bundle, and not the sources.
  if (!values.built) await run('npm', ['run', 'build'], { cwd: ROOT });
  else if (!isOfTheseSources(ROOT, join(ROOT, 'dist'))) throw new Error('dist/ is older than the sources');
  const amounts = { restMs: Number(values.rest) * 1_000, runs: Number(values.runs) };
  const measured: Awaited<ReturnType<typeof roundOf>>[] = [];
  // The first fills the cache of compiled code that a machine has after the first use.
  await roundOf({ restMs: 0, runs: 1 });
  for (let round = 0; round < rounds; round++) {
    await untilQuiet(Number(values.patience) * 1_000);
    measured.push(await roundOf(amounts));
  }
  const each = (name: keyof (typeof measured)[number]): number[] => measured.map((figures) => figures[name]);
  const figures: StartFigures = {
    readyMs: each('readyMs'),
    memoryMb: each('memoryMb'),
    ownMemoryMb: each('ownMemoryMb'),
    restPercent: each('restPercent'),
    versionMs: each('versionMs'),
    listMs: each('listMs'),
    installedMb: [await installedMb()],
    sqliteBytes: each('sqliteBytes'),
    postgresLogBytes: [await postgresLogBytes(amounts.runs)],
  };
  const report = { ...provenance(), figures };
  for (const row of startRows(report)) console.log(`  ${row.filter((cell) => cell !== '').join('; ')}`);
  writeStart(report, values.docs);
}

interface Amounts {
  readonly restMs: number;
  /** Runs over which the size of the database is averaged. */
  readonly runs: number;
}

/** One start on an empty folder, with the cache of compiled code that the command has after its first use. */
async function roundOf({ restMs, runs }: Amounts) {
  const startedAt = performance.now();
  const host = await startCapstan({ CAPSTAN_CONFORMANCE: '0' });
  try {
    const readyMs = performance.now() - startedAt;
    await wait(restMs);
    const restPercent = await restingPercent(host, restMs);
    const [memoryMb, ownMemoryMb] = memoryOf(host);
    const [versionMs, listMs] = [await timeOf(host, ['--version']), await timeOf(host, ['runs', 'list'])];
    return { readyMs, memoryMb, ownMemoryMb, restPercent, versionMs, listMs, sqliteBytes: await runBytes(host, runs) };
  } finally {
    await host.stop();
  }
}

async function restingPercent({ pid }: BenchServer, ms: number): Promise<number> {
  const before = cpuOfThreads(pid);
  await wait(ms);
  return (cpuOfThreads(pid) - before) / (ms * 10);
}

/** The memory of a process, and that part of it which is not the content of files. */
function memoryOf({ pid }: BenchServer): [all: number, own: number] {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mb = (name: string): number => (Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1]) * 1_024) / 1e6;
  return [mb('VmRSS'), mb('RssAnon')];
}

async function timeOf({ url }: BenchServer, args: readonly string[]): Promise<number> {
  const env = { ...process.env, CAPSTAN_URL: url, CAPSTAN_KEY: KEY };
  const startedAt = performance.now();
  await run(process.execPath, [COMMAND, ...args], { env });
  return performance.now() - startedAt;
}

/** What a run of one node that has ended adds to the pages of the database that are in use. */
async function runBytes(host: BenchServer, runs: number): Promise<number> {
  const definition = chain(1);
  await register(host, [definition]);
  const { url, folder } = host;
  const before = storedBytes(folder);
  await load({ url, key: KEY, way: 'call', concurrency: 32, runs, workflowId: definition.id });
  // The audit log is put in order after a moment.
  await wait(1_000);
  return (storedBytes(folder) - before) / runs;
}

function storedBytes(folder: string): number {
  using database = new DatabaseSync(join(folder, 'capstan.db'), { readOnly: true });
  const pragma = (name: string): number => Number(Object.values(database.prepare(`PRAGMA ${name}`).get()!)[0]);
  return (pragma('page_count') - pragma('freelist_count')) * pragma('page_size');
}

async function postgresLogBytes(runs: number): Promise<number> {
  const postgres = await startPostgres();
  try {
    return (await measureWrites(postgres, 'call', runs)).logBytes;
  } finally {
    await postgres.stop();
  }
}

/** The package as it is unpacked, and everything that npm installs beside it. */
async function installedMb(): Promise<number> {
  const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: ROOT,
    maxBuffer: 2 ** 24,
  });
  const [{ unpackedSize }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [{ unpackedSize: number }];
  return dependencyFolders(ROOT).reduce((sum, folder) => sum + bytesIn(folder), unpackedSize) / 1e6;
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
