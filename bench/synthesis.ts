/** What it costs to look for habits: all runs of a tenant the first time, and what is new the second. */
import { readFileSync } from 'node:fs';
import { commitPast } from '../test/support/database.ts';
import { plantedHistory } from '../test/support/planted-runs.ts';
import { type BenchServer, KEY, startCapstan } from './servers.ts';

const RUNS = 100_000;
const MORE = 1_000;
const PROMPTS = [
  { templateId: 'speaker', version: '1.0.0' },
  { templateId: 'other-speaker', version: '1.0.0' },
] as const;

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

async function look(server: BenchServer, when: string): Promise<void> {
  const started = performance.now();
  const { created, scannedRuns } = await post(server, '/v1/host/capstan/proposals:synthesize', {});
  const ms = (performance.now() - started).toFixed(0);
  console.log(`  ${when}: ${ms} ms, ${scannedRuns} runs read, ${created.length} drafts`);
}

async function post({ url }: BenchServer, path: string, body: object) {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return (await response.json()) as { readonly created: readonly unknown[]; readonly scannedRuns: number };
}

function memoryMb({ pid }: BenchServer, what: 'VmRSS' | 'VmHWM'): string {
  const [, kb] = new RegExp(`^${what}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return (Number(kb) / 1_024).toFixed(0);
}
