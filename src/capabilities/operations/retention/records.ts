import type { RunRow, Visibility } from '../../../store/log.ts';
import { type Param, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

/** The table of expired runs. */
export const RETENTION_TABLES: readonly Migration[] = [
  {
    id: 'retention/0001',
    statements: [
      // Runs that were deleted. `events_left` is the number of events that have yet to be deleted.
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

/** What is needed to delete a run. */
export type EndedRun = Pick<RunRow, 'run_id' | 'tenant' | 'workspace' | 'sequence'>;

/** How long runs are stored after their end. */
export interface RetentionWindows {
  readonly defaultMs: number;
  /** By storage tenant, if it differs. */
  readonly byTenant: ReadonlyMap<string, number>;
}

/**
 * Runs whose retention window is over, read tenant by tenant. Child runs are stored as long as their parent.
 */
export function findEndedBefore({ defaultMs, byTenant }: RetentionWindows, limit: number): Statement {
  const params: Param[] = [defaultMs, limit];
  const place = (value: Param): string => `$${params.push(value)}`;
  const exceptions = [...byTenant].map(([tenant, ms]) => `WHEN ${place(tenant)} THEN CAST(${place(ms)} AS BIGINT)`);
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

/** Remembers that a run existed. */
export function noteExpired({ run_id, tenant, workspace }: EndedRun, eventsLeft: number): Write {
  return {
    sql: `INSERT INTO expired_runs (run_id, tenant, workspace, expired_at, events_left) VALUES ($1, $2, $3, $now, $4)
          ON CONFLICT (run_id) DO NOTHING`,
    params: [run_id, tenant, workspace, eventsLeft],
  };
}

/** A run that was deleted. */
export interface ExpiredRow {
  readonly run_id: string;
  readonly tenant: string;
  readonly expired_at: number;
  readonly events_left: number;
}

/** A deleted run, if it was visible. */
export function findExpired({ tenant, workspace }: Visibility, runId: string): Statement {
  const found = 'SELECT run_id, tenant, expired_at, events_left FROM expired_runs WHERE run_id = $1 AND tenant = $2';
  return workspace === undefined
    ? sql(found, runId, tenant)
    : sql(`${found} AND workspace = $3`, runId, tenant, workspace);
}

/** A deleted run that still has events. */
export function findUncleared(): Statement {
  return sql(
    'SELECT run_id, tenant, expired_at, events_left FROM expired_runs WHERE events_left > 0 ORDER BY run_id LIMIT 1',
  );
}

/** Stores how many events have yet to be deleted. */
export function noteEventsLeft(runId: string, eventsLeft: number): Write {
  return { sql: 'UPDATE expired_runs SET events_left = $1 WHERE run_id = $2', params: [eventsLeft, runId] };
}

/** Forgets runs that were deleted long ago. */
export function forgetExpired(rememberedMs: number, limit: number): Write {
  return {
    sql: `DELETE FROM expired_runs WHERE run_id IN (
            SELECT run_id FROM expired_runs WHERE expired_at <= $now - $1 AND events_left = 0
            ORDER BY expired_at LIMIT $2)`,
    params: [rememberedMs, limit],
  };
}
