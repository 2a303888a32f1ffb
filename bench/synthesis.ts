/** What it costs to look for habits: all runs of a tenant the first time, and what is new the second. */
import { readFileSync } from 'node:fs';
import { commitPast } from '../test/support/database.ts';
import { plantedHistory } from '../test/support/planted-runs.ts';
import { type Cost, costOf, type GrowthBench, growthOf, partOf, withHost } from './growth.ts';
import { type BenchServer, KEY, startCapstan } from './servers.ts';
import { keyOf, tenantKeys, tenantOf } from './tenants.ts';

const RUNS = 100_000;
const MORE = 1_000;
const PROMPTS = [
  { templateId: 'speaker', version: '1.0.0' },
  { templateId: 'other-speaker', version: '1.0.0' },
] as const;

/** How long it takes to look for habits, and how much memory. */
export async function benchSynthesis(): Promise<void> {
  console.log(`\nlooking for habits in ${RUNS.toLocaleString('en')} runs`);
  const capstan = await startCapstan();
  try {
    for (const prompt of PROMPTS) await post(capstan, '/v1/prompts', { ...prompt, kind: 'system', text: 'Speak.' });
    const store = { databaseUrl: undefined, dataFolder: capstan.folder };
    const planting = { tenant: 'alpha', seed: 3, until: Date.now(), prompts: PROMPTS };
    await commitPast(store, plantedHistory({ ...planting, runs: RUNS }));
    console.log(`  before: ${memoryMb(capstan, 'VmRSS')} MB`);
    await look(capstan, 'the first time');
    await look(capstan, 'again');
    for (let count = 0; count < MORE; count++) await post(capstan, '/v1/runs', { workflowId: 'conformance-noop' });
    await look(capstan, `with ${MORE.toLocaleString('en')} more`);
    console.log(`  most memory at any time: ${memoryMb(capstan, 'VmHWM')} MB`);
  } finally {
    await capstan.stop();
  }
}

const FEW = 2_000;
const MANY = 20_000;

/** The first look at the history of a tenant that has few runs, and of one that has ten times as many. */
export const habits: GrowthBench = {
  name: 'habits',
  about: 'looking for habits in the history of a tenant for the first time: cost of each run',
  measure: (options) => {
    // Only the first look reads everything, so that each has a tenant of its own.
    let tenants = 0;
    const looks = 2 * (options.rounds + 1);
    const cost = (host: BenchServer, runs: number): Promise<Cost> => costOfFirstLook(host, tenants++, runs);
    const sizes = [partOf(options, FEW), partOf(options, MANY)] as const;
    const work = { what: 'runs of a synthesis', each: 'run', sizes };
    return withHost(
      options,
      async (host) => [await growthOf(options, { ...work, cost: (runs) => cost(host, runs) })],
      tenantKeys(looks),
    );
  },
};

async function costOfFirstLook(host: BenchServer, tenant: number, runs: number): Promise<Cost> {
  const key = keyOf(tenant);
  for (const prompt of PROMPTS) await post(host, '/v1/prompts', { ...prompt, kind: 'system', text: 'Speak.' }, key);
  // The ids of planted runs follow from the seed, and no two runs of a store have the same.
  const planting = { tenant: tenantOf(tenant), seed: tenant + 1, until: Date.now(), prompts: PROMPTS };
  const store = { databaseUrl: host.environment.DATABASE_URL, dataFolder: host.folder };
  await commitPast(store, plantedHistory({ ...planting, runs }));
  return costOf(host, runs, async () => {
    const { scannedRuns } = await post(host, '/v1/host/capstan/proposals:synthesize', {}, key);
    if (scannedRuns < runs) throw new Error(`of ${runs} runs ${scannedRuns} were read`);
  });
}

async function look(server: BenchServer, when: string): Promise<void> {
  const started = performance.now();
  const { created, scannedRuns } = await post(server, '/v1/host/capstan/proposals:synthesize', {});
  const ms = (performance.now() - started).toFixed(0);
  console.log(`  ${when}: ${ms} ms, ${scannedRuns} runs read, ${created.length} drafts`);
}

async function post({ url }: BenchServer, path: string, body: object, key = KEY) {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return (await response.json()) as { readonly created: readonly unknown[]; readonly scannedRuns: number };
}

function memoryMb({ pid }: BenchServer, what: 'VmRSS' | 'VmHWM'): string {
  const [, kb] = new RegExp(`^${what}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return (Number(kb) / 1_024).toFixed(0);
}
