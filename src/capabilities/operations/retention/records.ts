import type { RunRow, Visibility } from '../../../store/log.ts';
import { type Param, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

export const RETENTION_TABLES: readonly Migration[] = [
  {
    id: 'retention/0001',
    statements: [
      // Runs that are not kept any more. `events_left` is how much of a long log has yet to be cleared away.
      `CREATE TABLE expired_runs (
        run_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        workspace TEXT,
        expired_at BIGINT NOT NULL,
        events_left BIGINT NOT NULL
      ) $clustered`,
      'CREATE INDEX expired_runs_by_time ON expired_runs (expired_at)',
      'CREATE INDEX expired_runs_uncleared ON expired_runs (run_id) WHERE events_left > 0',
    ],
  },
];

/** What it takes to know of a run to be done with it. */
export type EndedRun = Pick<RunRow, 'run_id' | 'tenant' | 'workspace' | 'sequence'>;

/** How long runs are kept after their end: those of some tenants, and those of all others. */
export interface Windows {
  readonly keptMs: number;
  readonly keptMsOf: ReadonlyMap<string, number>;
}

/**
 * Runs that ended longer ago than they are kept, looked up tenant by tenant. What another run started is kept as long
 * as that one.
 */
export function findEndedBefore({ keptMs, keptMsOf }: Windows, limit: number): Statement {
  const params: Param[] = [keptMs, limit];
  const place = (value: Param): string => `$${params.push(value)}`;
  const exceptions = [...keptMsOf].map(([tenant, ms]) => `WHEN ${place(tenant)} THEN CAST(${place(ms)} AS BIGINT)`);
  const kept =
    exceptions.length === 0 ? '$1' : `CASE tenants.tenant ${exceptions.join(' ')} ELSE CAST($1 AS BIGINT) END`;
  return {
    sql: `WITH RECURSIVE tenants (tenant) AS (
            SELECT MIN(tenant) FROM runs
            UNION ALL SELECT (SELECT MIN(tenant) FROM runs WHERE runs.tenant > tenants.tenant) FROM tenants
            WHERE tenants.tenant IS NOT NULL)
          SELECT run_id, runs.tenant, workspace, sequence FROM tenants
          JOIN runs ON runs.tenant = tenants.tenant AND ended_at <= $now - ${kept}
          WHERE NOT EXISTS (SELECT 1 FROM runs parent WHERE parent.run_id = runs.parent_run_id)
          LIMIT $2`,
    params,
  };
}

export function noteExpired({ run_id, tenant, workspace }: EndedRun, eventsLeft: number): Write {
  return {
    sql: `INSERT INTO expired_runs (run_id, tenant, workspace, expired_at, events_left) VALUES ($1, $2, $3, $now, $4)
          ON CONFLICT (run_id) DO NOTHING`,
    params: [run_id, tenant, workspace, eventsLeft],
  };
}

export interface ExpiredRow {
  readonly run_id: string;
  readonly expired_at: number;
  readonly events_left: number;
}

export function findExpired({ tenant, workspace }: Visibility, runId: string): Statement {
  const found = 'SELECT run_id, expired_at, events_left FROM expired_runs WHERE run_id = $1 AND tenant = $2';
  return workspace === undefined
    ? sql(found, runId, tenant)
    : sql(`${found} AND workspace = $3`, runId, tenant, workspace);
}

/** One whose log has not been cleared away to the end. */
export function findUncleared(): Statement {
  return sql('SELECT run_id, expired_at, events_left FROM expired_runs WHERE events_left > 0 ORDER BY run_id LIMIT 1');
}

export function noteEventsLeft(runId: string, eventsLeft: number): Write {
  return { sql: 'UPDATE expired_runs SET events_left = $1 WHERE run_id = $2', params: [eventsLeft, runId] };
}

export function forgetExpired(keptMs: number, limit: number): Write {
  return {
    sql: `DELETE FROM expired_runs WHERE run_id IN (
            SELECT run_id FROM expired_runs WHERE expired_at <= $now - $1 AND events_left = 0
            ORDER BY expired_at LIMIT $2)`,
    params: [keptMs, limit],
  };
}
