import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Config } from '../../src/config.ts';
import type { Param, Write } from '../../src/store/sql.ts';
import type { Answer, Api } from '../support/api.ts';
import { commitPast, readStore } from '../support/database.ts';
import { resolve, waits } from '../support/interrupts.ts';

const FOLDER = new URL('./logs/', import.meta.url);

/** A row of a table as a release wrote it. */
interface OldRow {
  readonly table: string;
  readonly row: Readonly<Record<string, Param>>;
}

/** What a release left behind of a run: its rows, those of its children, and what was told of it. */
export interface OldHistory {
  readonly release: string;
  readonly name: string;
  readonly runId: string;
  readonly rows: readonly OldRow[];
  readonly snapshot: Answer['body'];
}

/** A run worth keeping: it uses what others do not. */
interface Kept {
  readonly name: string;
  readonly workflowId: string;
  readonly rest?: object;
  /** The node that asks a person. */
  readonly asks?: string;
}

const ORDER = { orderId: 'A-1001', card: '4242 4242 4242 4242' };

/** The main features of examples and fixtures, one run each. */
export const KEPT: readonly Kept[] = [
  { name: 'branches', workflowId: 'support-triage', rest: { inputs: { subject: 'The dashboard is down' } } },
  { name: 'approval', workflowId: 'release-checklist', rest: { inputs: { version: '2.4.0' } }, asks: 'sign-off' },
  { name: 'children', workflowId: 'order-fulfilment', rest: { inputs: ORDER } },
  { name: 'failing-child', workflowId: 'order-fulfilment', rest: { inputs: { ...ORDER, failAt: 'charge' } } },
  { name: 'for-each', workflowId: 'sales-report', rest: { inputs: { table: 'region,price,count\nnorth,2,4\n' } } },
  { name: 'report', workflowId: 'nightly-report' },
  { name: 'nodes', workflowId: 'conformance-multi-node' },
  { name: 'inputs', workflowId: 'conformance-identity', rest: { inputs: { payload: { a: [1, null, 'é'] } } } },
  { name: 'failure', workflowId: 'conformance-failure' },
  { name: 'delay', workflowId: 'conformance-cancellable', rest: { inputs: { delayMs: 10 } } },
  { name: 'channels', workflowId: 'conformance-channel-ttl' },
  { name: 'subworkflow', workflowId: 'conformance-subworkflow-parent' },
];

/** Every history that is kept, of all releases. */
export function oldHistories(): OldHistory[] {
  return readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.json'))
    .sort()
    .map((path) => JSON.parse(readFileSync(new URL(path, FOLDER), 'utf8')) as OldHistory);
}

/** Runs one and keeps what it leaves behind, under the release that this is. */
export async function keep(api: Api, config: Config, release: string, kept: Kept): Promise<void> {
  const runId = await api.run(kept.workflowId, kept.rest);
  if (kept.asks !== undefined) {
    await waits(api, runId);
    await resolve(api, runId, kept.asks, { action: 'accept' });
  }
  const snapshot = await api.ended(runId);
  const rows = await rowsOf(config, runId);
  const history: OldHistory = { release, name: kept.name, runId, rows, snapshot };
  mkdirSync(new URL(`${release}/`, FOLDER), { recursive: true });
  writeFileSync(new URL(`${release}/${kept.name}.json`, FOLDER), `${JSON.stringify(history)}\n`);
}

async function rowsOf(config: Config, runId: string): Promise<OldRow[]> {
  const tree = `WITH RECURSIVE tree(run_id) AS (SELECT '${runId}' UNION ALL
    SELECT runs.run_id FROM runs JOIN tree ON runs.parent_run_id = tree.run_id)`;
  const read = async (table: string, query: string): Promise<OldRow[]> =>
    (await readStore<OldRow['row']>(config, `${tree} ${query}`)).map((row) => ({ table, row }));
  return [
    ...(await read(
      'definitions',
      `SELECT DISTINCT definitions.* FROM definitions JOIN runs ON owner = workflow_owner
         AND definitions.workflow_id = runs.workflow_id AND version = workflow_version
       WHERE run_id IN (SELECT run_id FROM tree)`,
    )),
    ...(await read('runs', 'SELECT * FROM runs WHERE run_id IN (SELECT run_id FROM tree)')),
    ...(await read('events', 'SELECT * FROM events WHERE run_id IN (SELECT run_id FROM tree)')),
  ];
}

/** Puts a history into a store, as if this host had taken the store over from the release that wrote it. */
export function bringBack(config: Config, { rows }: OldHistory): Promise<void> {
  return commitPast(config, rows.map(insert));
}

function insert({ table, row }: OldRow): Write {
  const columns = Object.keys(row);
  const places = columns.map((_, index) => `$${index + 1}`);
  return {
    // This host may have a workflow of the same name and version.
    sql: `INSERT OR REPLACE INTO ${table} (${columns.join(', ')}) VALUES (${places.join(', ')})`,
    params: Object.values(row),
  };
}
