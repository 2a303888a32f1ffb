import type { RunRef, Visibility } from './log.ts';
import { lookup, type Statement, sql, type Write } from './sql.ts';

/** Owner of the definitions that every tenant of the host may run. No tenant can have this name. */
export const HOST_OWNER = '*';

/** One immutable version of a workflow definition. */
export interface DefinitionRow {
  /** A tenant, a workspace (see `ownerOf`) or `HOST_OWNER`. */
  readonly owner: string;
  readonly workflow_id: string;
  readonly version: number;
  readonly digest: string;
  readonly body: string;
  readonly created_at: number;
}

/** The current version of a workflow, which new runs use, and when it became current. */
export interface WorkflowRow extends DefinitionRow {
  readonly updated_at: number;
}

/**
 * The owner of what a caller registers: its tenant, or its workspace. `#` cannot occur in a tenant's name, so the two
 * never collide.
 */
export function ownerOf({ tenant, workspace }: Visibility): string {
  return workspace === undefined ? tenant : `${tenant}#/${workspace}`;
}

/**
 * SQL condition for the owners whose definitions a caller may use. Its statement passes `ownerOf(caller)` as `$1` and
 * the tenant as `$2`.
 */
export const VISIBLE_OWNERS = `owner IN ($1, $2, '${HOST_OWNER}')`;
/** SQL expression that ranks owners by precedence: workspace before tenant before host. */
export const ownerPrecedence = (owner: string): string => `CASE ${owner} WHEN $1 THEN 0 WHEN $2 THEN 1 ELSE 2 END`;

/**
 * SQL condition that excludes rows shadowed by a row with the same id and a nearer owner. `isThere` restricts which
 * rows of `nearer` count.
 */
export function notShadowed(table: string, id: string, isThere = 'TRUE'): string {
  return `NOT EXISTS (SELECT 1 FROM ${table} nearer WHERE nearer.${id} = ${table}.${id} AND ${isThere}
    AND nearer.${VISIBLE_OWNERS} AND ${ownerPrecedence('nearer.owner')} < ${ownerPrecedence(`${table}.owner`)})`;
}

/** Finds the definition that a new run uses: the current version of the nearest owner that has the workflow. */
export function findWorkflow(from: Visibility, workflowId: string): Statement {
  return sql(
    `SELECT definitions.*, workflows.updated_at FROM workflows JOIN definitions USING (owner, workflow_id, version)
     WHERE workflow_id = $3 AND ${VISIBLE_OWNERS} ORDER BY ${ownerPrecedence('owner')} LIMIT 1`,
    ownerOf(from),
    from.tenant,
    workflowId,
  );
}

/** Finds the owner and version that `findWorkflow` would return, without loading the definition. */
export function findWorkflowVersion(from: Visibility, workflowId: string): Statement {
  return lookup(
    `SELECT owner, version FROM workflows WHERE workflow_id = $3 AND ${VISIBLE_OWNERS} ORDER BY ${ownerPrecedence('owner')} LIMIT 1`,
    ownerOf(from),
    from.tenant,
    workflowId,
  );
}

/** Finds one version of a definition, current or not. */
export function findDefinition(owner: string, workflowId: string, version: number): Statement {
  return sql(
    'SELECT * FROM definitions WHERE owner = $1 AND workflow_id = $2 AND version = $3',
    owner,
    workflowId,
    version,
  );
}

/** Lists the versions of a workflow before a number, newest first. */
export function listVersions(owner: string, workflowId: string, before: number, limit: number): Statement {
  return sql(
    `SELECT * FROM definitions WHERE owner = $1 AND workflow_id = $2 AND version < $3 ORDER BY version DESC LIMIT $4`,
    owner,
    workflowId,
    before,
    limit,
  );
}

/** The newest version of a workflow, which need not be the current one. */
export interface LatestVersion {
  readonly version: number;
  readonly digest: string;
  /** The version that new runs use; null if the workflow was removed. */
  readonly current: number | null;
  readonly updated_at: number | null;
}

/** Finds the newest version of a workflow, from which the next version number and unchanged content are derived. */
export function latestVersion(owner: string, workflowId: string): Statement {
  return sql(
    `SELECT definitions.version, digest, workflows.version AS current, workflows.updated_at
     FROM definitions LEFT JOIN workflows USING (owner, workflow_id)
     WHERE owner = $1 AND workflow_id = $2 ORDER BY definitions.version DESC LIMIT 1`,
    owner,
    workflowId,
  );
}

/** Cursor of a page of workflows: the position of its last entry. */
export interface WorkflowCursor {
  readonly updatedAt: number;
  readonly workflowId: string;
}

/** Lists the workflows that a caller may run, most recently updated first. */
export function listWorkflows(from: Visibility, after: WorkflowCursor, limit: number): Statement {
  return sql(
    `SELECT definitions.*, workflows.updated_at FROM workflows JOIN definitions USING (owner, workflow_id, version)
     WHERE ${VISIBLE_OWNERS} AND (updated_at < $3 OR (updated_at = $3 AND workflow_id > $4))
       AND ${notShadowed('workflows', 'workflow_id')}
     ORDER BY updated_at DESC, workflow_id LIMIT $5`,
    ownerOf(from),
    from.tenant,
    after.updatedAt,
    after.workflowId,
    limit,
  );
}

/** Inserts a new version. Fails the expectation `version` if a concurrent writer took the number. */
export function insertDefinition(row: DefinitionRow): Write {
  return {
    sql: `INSERT INTO definitions (owner, workflow_id, version, digest, body, created_at)
          VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (owner, workflow_id, version) DO NOTHING`,
    params: [row.owner, row.workflow_id, row.version, row.digest, row.body, row.created_at],
    expect: 1,
    expectation: 'version',
  };
}

/** Kinds of runs whose definitions are stored for them alone. */
type OwnedKind = 'preview' | 'trial';

/** The owner of definitions that are stored for runs alone: nobody can register or start anything under it. */
export function runsOwner(tenant: string, kind: OwnedKind, id: string): string {
  return `${tenant}#${kind}/${id}`;
}

/** Deletes the definition that was stored for a run and its forks, with the last of them. Its row must still exist. */
export function deleteDefinitionOf({ tenant, runId }: RunRef, kind: OwnedKind): Write {
  return {
    sql: `DELETE FROM definitions WHERE (owner, workflow_id, version) IN (
            SELECT workflow_owner, workflow_id, workflow_version FROM runs WHERE run_id = $1 AND tenant = $2
              AND substr(workflow_owner, 1, length(CAST($3 AS TEXT))) = $3
              AND NOT EXISTS (SELECT 1 FROM runs other WHERE other.tenant = $2 AND other.workflow_id = runs.workflow_id
                AND other.workflow_owner = runs.workflow_owner AND other.workflow_version = runs.workflow_version
                AND other.run_id <> $1))`,
    params: [runId, tenant, runsOwner(tenant, kind, '')],
  };
}

/**
 * Sets the current version of a workflow by compare-and-swap. Fails the expectation `version` if it is no longer
 * `current` (null: none).
 */
export function setCurrentVersion(
  owner: string,
  workflowId: string,
  version: number,
  now: number,
  current: number | null,
): Write {
  const params = [owner, workflowId, version, now];
  const guard = { expect: 1, expectation: 'version' } as const;
  if (current === null) {
    const insert = 'INSERT INTO workflows (owner, workflow_id, version, updated_at) VALUES ($1, $2, $3, $4)';
    return { sql: `${insert} ON CONFLICT (owner, workflow_id) DO NOTHING`, params, ...guard };
  }
  return {
    sql: `UPDATE workflows SET version = $3, updated_at = $4 WHERE owner = $1 AND workflow_id = $2 AND version = $5`,
    params: [...params, current],
    ...guard,
  };
}

/**
 * Removes a workflow from use; its versions stay for runs that use them. Fails the expectation `version` if another
 * version became current.
 */
export function removeWorkflow(owner: string, workflowId: string, current: number): Write {
  return {
    sql: 'DELETE FROM workflows WHERE owner = $1 AND workflow_id = $2 AND version = $3',
    params: [owner, workflowId, current],
    expect: 1,
    expectation: 'version',
  };
}
