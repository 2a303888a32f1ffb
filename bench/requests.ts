/** Requests that every client makes: the same one again, and lists. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { api } from './api.ts';
import { plantRuns } from './feedback.ts';
import { type Cost, costOf, inParallel, printGrowth } from './growth.ts';
import { type BenchServer, KEY, startCapstan } from './servers.ts';

const CONCURRENCY = 32;

/** Clients that are not sure whether they were heard, and ask again with the same key: few keys, and many. */
export async function benchRetries(): Promise<void> {
  console.log('\nretries with an idempotency key: cost of each');
  const capstan = await startCapstan();
  try {
    await retries(capstan, 20, 100);
    printGrowth('retries', await retries(capstan, 10, 100), await retries(capstan, 100, 100));
    const once = await retries(capstan, 3_000, 1);
    console.log(`  a first request: ${once.cpuUs.toFixed(0)} µs, with the run`);
  } finally {
    await capstan.stop();
  }
}

let keys = 0;

async function retries(capstan: BenchServer, different: number, each: number): Promise<Cost> {
  const first = keys;
  keys += different;
  const runIds = new Set<string>();
  const cost = await costOf(capstan, different * each, () =>
    inParallel(different * each, CONCURRENCY, async (index) => {
      const headers = {
        authorization: `Bearer ${KEY}`,
        'content-type': 'application/json',
        'idempotency-key': `retry-${first + (index % different)}`,
      };
      const body = JSON.stringify({ workflowId: 'conformance-noop' });
      const answer = await fetch(`${capstan.url}/v1/runs`, { method: 'POST', headers, body });
      if (answer.status !== 201) throw new Error(`refused with ${answer.status}`);
      runIds.add(((await answer.json()) as { runId: string }).runId);
    }),
  );
  if (runIds.size !== different) throw new Error(`${different} keys made ${runIds.size} runs`);
  return cost;
}

const ASKED = 200;
const SIZES = [100_000, 1_000_000] as const;
const LISTS = [
  '?limit=50',
  '?status=failed&limit=50',
  '?status=running&limit=50',
  '?workflowId=workflow-3&limit=50',
  '?workflowId=workflow-3&status=failed&limit=50',
];

/** Lists of runs, where there are many runs and where there are ten times as many. */
export async function benchLists(): Promise<void> {
  console.log(`\nlists of runs: cost of each of ${ASKED} requests`);
  const costs: Cost[][] = [];
  for (const runs of SIZES) {
    const capstan = await startCapstan();
    try {
      const database = new DatabaseSync(join(capstan.folder, 'capstan.db'));
      plantRuns(database, runs);
      database.close();
      const found: Cost[] = [];
      for (const query of LISTS) {
        const ask = (): Promise<unknown> => api(capstan, 'GET', `/v1/host/capstan/runs${query}`);
        await ask();
        found.push(await costOf(capstan, ASKED, () => inParallel(ASKED, 4, ask)));
      }
      costs.push(found);
    } finally {
      await capstan.stop();
    }
  }
  for (const [index, query] of LISTS.entries()) {
    const [few, many] = SIZES.map((units, size) => ({ ...costs[size]![index]!, units }));
    printGrowth(query, few!, many!);
  }
}
