/** Requests that every client makes: the same one again, and lists. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { insertTags } from '../src/store/log.ts';
import { api } from './api.ts';
import { plantRuns } from './feedback.ts';
import {
  type Cost,
  costOf,
  type Growth,
  type GrowthBench,
  type GrowthOptions,
  growthOf,
  inParallel,
  partOf,
  withHost,
} from './growth.ts';
import { type BenchServer, KEY } from './servers.ts';

const CONCURRENCY = 32;
const RETRIES = 5_000;

/** Clients that are not sure whether they were heard, and ask again with the same key: few keys, and many. */
export const retries: GrowthBench = {
  name: 'retries',
  about: 'retries with an idempotency key: cost of each',
  measure: (options) =>
    withHost(options, async (host) => {
      const sizes = [partOf(options, 100), partOf(options, 1_000)] as const;
      let [round, first] = [0, Number.NaN];
      const cost = async (keys: number): Promise<Cost> => {
        const prefix = `retry-${round++}`;
        first = (await costOfPosts(host, { prefix, keys, requests: keys })).cpuUs;
        return costOfPosts(host, { prefix, keys, requests: partOf(options, RETRIES) });
      };
      const growth = await growthOf(options, { what: 'idempotency keys', each: 'retry', sizes, cost });
      console.log(`  a first request: ${first.toFixed(0)} µs, with the run`);
      return [growth];
    }),
};

interface Posts {
  readonly prefix: string;
  /** How many idempotency keys they share. */
  readonly keys: number;
  readonly requests: number;
}

async function costOfPosts(host: BenchServer, { prefix, keys, requests }: Posts): Promise<Cost> {
  const runIds = new Set<string>();
  const cost = await costOf(host, requests, () =>
    inParallel(requests, CONCURRENCY, async (index) => {
      runIds.add(await startedRun(host, `${prefix}-${index % keys}`));
    }),
  );
  if (runIds.size !== Math.min(keys, requests)) throw new Error(`${keys} keys made ${runIds.size} runs`);
  return cost;
}

async function startedRun({ url }: BenchServer, idempotencyKey: string): Promise<string> {
  const headers = {
    authorization: `Bearer ${KEY}`,
    'content-type': 'application/json',
    'idempotency-key': idempotencyKey,
  };
  const body = JSON.stringify({ workflowId: 'conformance-noop' });
  const answer = await fetch(`${url}/v1/runs`, { method: 'POST', headers, body });
  if (answer.status !== 201) throw new Error(`refused with ${answer.status}`);
  return ((await answer.json()) as { runId: string }).runId;
}

const ASKED = 2_000;
/** A list that has to look at every run takes much longer than the others; it is asked for less often. */
const ASKING_MS = 1_500;
const SIZES = [100_000, 1_000_000] as const;
/** Each tag is on one of so many runs. */
const TAGS = 1_000;
const LISTS: Record<string, string> = {
  'listed runs': '?limit=50',
  'listed runs, failed': '?status=failed&limit=50',
  'listed runs, running': '?status=running&limit=50',
  'listed runs of a workflow': '?workflowId=workflow-3&limit=50',
  'listed runs of it, failed': '?workflowId=workflow-3&status=failed&limit=50',
  'listed runs with a tag': '?tag=team-7&limit=50',
  'listed runs of an hour': `?since=${daysAgo(10)}&until=${daysAgo(10 - 1 / 24)}&limit=50`,
};

function daysAgo(days: number): string {
  return new Date(Date.now() - days * 24 * 60 * 60 * 1_000).toISOString();
}

/** Lists of runs, where there are many runs and where there are ten times as many. */
export const lists: GrowthBench = {
  name: 'lists',
  about: 'lists of runs: cost of each request',
  isSqliteOnly: true,
  measure: async (options) => {
    const sizes = [partOf(options, SIZES[0]), partOf(options, SIZES[1])] as const;
    return withHost(options, (few) =>
      withHost(options, async (many) => {
        const hosts = new Map([[sizes[0], few] as const, [sizes[1], many] as const]);
        for (const [runs, host] of hosts) plant(host, runs);
        return growthOfLists(options, sizes, (size) => hosts.get(size)!);
      }),
    );
  },
};

async function growthOfLists(
  options: GrowthOptions,
  sizes: readonly [number, number],
  hostOf: (size: number) => BenchServer,
): Promise<Growth[]> {
  const growths: Growth[] = [];
  for (const [what, query] of Object.entries(LISTS)) {
    const cost = (size: number): Promise<Cost> => costOfList(hostOf(size), query, partOf(options, ASKED));
    growths.push(await growthOf(options, { what, each: 'request', sizes, cost }));
  }
  return growths;
}

/** Asks for a list again and again, until that was often or long enough. */
async function costOfList(host: BenchServer, query: string, askedMax: number): Promise<Cost> {
  const until = performance.now() + ASKING_MS;
  let asked = 0;
  const ask = async (): Promise<void> => {
    if (performance.now() > until) return;
    await api(host, 'GET', `/v1/host/capstan/runs${query}`);
    asked++;
  };
  const all = await costOf(host, 1, () => inParallel(askedMax, 4, ask));
  return { ...all, units: asked, cpuUs: all.cpuUs / asked };
}

function plant(host: BenchServer, runs: number): void {
  const database = new DatabaseSync(join(host.folder, 'capstan.db'));
  plantRuns(database, runs, (write, { tenant, run_id: runId }, index) => {
    for (const tagged of insertTags({ tenant, runId }, [`team-${index % TAGS}`])) write(tagged);
  });
  database.close();
}
