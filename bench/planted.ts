import type { DatabaseSync } from 'node:sqlite';
import type { insertRun } from '../src/store/log.ts';
import type { Statement } from '../src/store/sql.ts';

/** A row of a run of the past. */
export const RUN: Parameters<typeof insertRun>[0] = {
  run_id: '',
  tenant: 'alpha',
  workspace: null,
  principal: 'bench',
  issuer: 'urn:capstan:api-key',
  lane: 'api-key',
  workflow_owner: '*',
  workflow_id: '',
  workflow_version: 1,
  parent_run_id: null,
  parent_node_id: null,
  facts: '{"tenantName":"alpha","inputs":{},"configurable":{},"limits":{},"depth":0}',
  engine_version: 1,
  event_log_schema_version: 2,
  created_at: 0,
  status: 'completed',
  sequence: 3,
  updated_at: 0,
  ended_at: null,
  error_code: null,
  log_seal: null,
};

/** Statements as the store writes them, prepared once. */
export function writerFor(database: DatabaseSync): (statement: Statement) => void {
  const prepared = new Map<string, ReturnType<DatabaseSync['prepare']>>();
  return ({ sql, params }) => {
    const known = prepared.get(sql) ?? database.prepare(placed(sql));
    prepared.set(sql, known);
    known.run(...params);
  };
}

/** A statement as SQLite reads it. */
export function placed(sql: string): string {
  return sql.replace(/\$(\d+)/g, '?$1');
}
