/** What the numbers on feedback cost: a month with a million annotations, asked for over HTTP. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  type AnnotationRow,
  countRating,
  insertAnnotation,
  markRun,
} from '../src/capabilities/people/feedback/records.ts';
import { correctionsOf, figuresOf, liveCorrectionsOf } from '../src/capabilities/people/feedback/summary-records.ts';
import { RUN_PREFIX } from '../src/runtime/creation.ts';
import { insertRun } from '../src/store/log.ts';
import type { Statement } from '../src/store/sql.ts';
import { digits, firstIdAt } from '../src/system/ids.ts';
import { api } from './api.ts';
import { type Cost, costOf, type GrowthBench, growthOf, inParallel, partOf, withHost } from './growth.ts';
import { placed, RUN, writerFor } from './planted.ts';
import { type BenchServer, KEY, startCapstan } from './servers.ts';
import { median } from './statistics.ts';

const RUNS = 500_000;
const ANNOTATIONS_PER_RUN = 2;
const MONTH_MS = 30 * 24 * 60 * 60 * 1_000;
const TENANT = 'alpha';
const ASKED = 7;
const SUMMARY = '/v1/host/capstan/feedback/summary';

/** The summary of a month: how long a question takes, and which indexes answer it. */
export async function benchFeedback(): Promise<void> {
  console.log(`\nthe summary of a month with ${RUNS.toLocaleString('en')} runs and twice as many annotations`);
  const capstan = await startCapstan();
  try {
    const database = new DatabaseSync(join(capstan.folder, 'capstan.db'));
    fill(database, RUNS);
    showPlans(database);
    database.close();
    for (const query of ['', '?bucket=week', '?workflowId=workflow-3']) await ask(capstan, query);
  } finally {
    await capstan.stop();
  }
}

const FEW = 20_000;
const MANY = 200_000;
/** How many runs all summaries of a measurement have together. */
const SUMMARISED = 1_000_000;

/** The summary of a month with few runs, and of one with ten times as many. */
export const summary: GrowthBench = {
  name: 'summary',
  about: 'the summary of feedback on the runs of a month: cost of each run in it',
  isSqliteOnly: true,
  measure: (options) =>
    withHost(options, (few) =>
      withHost(options, async (many) => {
        const sizes = [partOf(options, FEW), partOf(options, MANY)] as const;
        const hosts = new Map([[sizes[0], few] as const, [sizes[1], many] as const]);
        for (const [runs, { folder }] of hosts) fillFolder(folder, runs);
        const cost = (runs: number): Promise<Cost> =>
          costOfSummaries(hosts.get(runs)!, runs, Math.ceil(SUMMARISED / runs));
        return [await growthOf(options, { what: 'runs of a summary', each: 'run', sizes, cost })];
      }),
    ),
};

function costOfSummaries(host: BenchServer, runs: number, times: number): Promise<Cost> {
  return costOf(host, runs * times, () => inParallel(times, 1, () => api(host, 'GET', SUMMARY)));
}

function fillFolder(folder: string, runs: number): void {
  const database = new DatabaseSync(join(folder, 'capstan.db'));
  fill(database, runs);
  database.close();
}

async function ask({ url }: BenchServer, query: string): Promise<void> {
  const times: number[] = [];
  let runs = 0;
  const busy = await cpuSeconds(url);
  for (let count = 0; count < ASKED; count++) {
    const started = performance.now();
    const response = await fetch(`${url}${SUMMARY}${query}`, {
      headers: { authorization: `Bearer ${KEY}` },
    });
    ({ runs } = (await response.json()) as { runs: number });
    times.push(performance.now() - started);
  }
  const cpuMs = ((await cpuSeconds(url)) - busy) * (1_000 / ASKED);
  console.log(
    `  GET feedback/summary${query}: ${median(times).toFixed(0)} ms (${cpuMs.toFixed(0)} of them busy) over ${runs} runs` +
      ' (under 300 wanted)',
  );
}

async function cpuSeconds(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^capstan_process_cpu_seconds_total (\S+)/m.exec(text)?.[1]);
}

/** Writes runs as the host does, but in one transaction; `more` is written with each. */
export function plantRuns(
  database: DatabaseSync,
  runs: number,
  more: (write: (statement: Statement) => void, place: Place, index: number, at: number) => void = () => {},
): void {
  const write = writerFor(database);
  const first = Date.now() - MONTH_MS;
  database.exec('PRAGMA synchronous = OFF; BEGIN IMMEDIATE');
  for (let index = 0; index < runs; index++) {
    const at = first + Math.floor((index / runs) * MONTH_MS);
    const runId = `${firstIdAt(at, RUN_PREFIX)}000${digits(index, 10)}`;
    const place = { tenant: TENANT, run_id: runId, workspace: null, workflow_id: `workflow-${index % 20}` };
    const ending =
      index % 999 === 0
        ? { status: 'running', ended_at: null }
        : { status: index % 50 === 0 ? 'failed' : 'completed', ended_at: at };
    write(insertRun({ ...RUN, ...place, created_at: at, updated_at: at, ...ending }));
    more(write, place, index, at);
  }
  database.exec('COMMIT');
}

type Place = Pick<AnnotationRow, 'tenant' | 'run_id' | 'workspace' | 'workflow_id'>;

function fill(database: DatabaseSync, runs: number): void {
  plantRuns(database, runs, (write, place, index, at) => {
    for (let count = 0; count < ANNOTATIONS_PER_RUN; count++) {
      const row = annotation(place, index * ANNOTATIONS_PER_RUN + count, at);
      write(markRun(row, { annotated: true, corrected: row.kind === 'correction', flagged: row.kind === 'flag' }));
      if (row.kind === 'rating') write(countRating(row));
      write(insertAnnotation(row));
    }
  });
}

function annotation(place: Place, number: number, at: number): AnnotationRow {
  const kind = (['rating', 'correction', 'rating', 'flag'] as const)[number % 4]!;
  const nodeId = `node-${number % 11}`;
  return {
    ...place,
    annotation_id: `ann-${digits(number, 22)}`,
    node_id: nodeId,
    target: nodeId,
    author: `principal:${number % 7}`,
    kind,
    rating: kind === 'rating' ? 1 + (number % 5) : null,
    created_at: at,
    body: JSON.stringify({ kind, nodeId, note: 'about as long as what people write, one sentence or two' }),
  };
}

/** Which indexes answer: a plan that scans a table would say SCAN. */
function showPlans(database: DatabaseSync): void {
  const counted = { tenant: TENANT };
  const range = { from: RUN_PREFIX, before: firstIdAt(Date.now(), RUN_PREFIX) };
  const statements = {
    figures: figuresOf(counted, range),
    'figures of a workflow': figuresOf({ ...counted, workflowId: 'workflow-3' }, range),
    corrections: correctionsOf(counted, range),
    'corrections of live runs': liveCorrectionsOf(counted, range),
    'corrections of a workflow': correctionsOf({ ...counted, workflowId: 'workflow-3' }, range),
  };
  for (const [name, { sql, params }] of Object.entries(statements)) {
    const steps = database.prepare(`EXPLAIN QUERY PLAN ${placed(sql)}`).all(...params) as { detail: string }[];
    const used = steps.map(({ detail }) => detail).filter((detail) => /^(SEARCH|SCAN) (?!every|live)/.test(detail));
    console.log(`  ${name}:`);
    for (const detail of used) console.log(`    ${detail}`);
  }
}
