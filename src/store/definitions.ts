import type { Visibility } from './log.ts';
import { type Statement, sql, type Write } from './sql.ts';

/** Definitions that every tenant of the host may run. No tenant has this name. */
export const HOST_OWNER = '*';

export interface DefinitionRow {
  readonly owner: string;
  readonly workflow_id: string;
  readonly version: number;
  readonly digest: string;
  readonly body: string;
  readonly created_at: number;
}

/** A definition that new runs get, and since when. */
export interface WorkflowRow extends DefinitionRow {
  readonly updated_at: number;
}

/** Who owns what is registered from here. `#` is in no tenant's name. */
export function ownerOf({ tenant, workspace }: Visibility): string {
  return workspace === undefined ? tenant : `${tenant}#/${workspace}`;
}

/** Whose definitions may be used from here, nearest first: the workspace's, the tenant's, the host's. `$1` is who asks. */
export const OWNERS = `owner IN ($1, $2, '${HOST_OWNER}')`;
export const NEARNESS = (owner: string): string => `CASE ${owner} WHEN $1 THEN 0 WHEN $2 THEN 1 ELSE 2 END`;

/** Of several owners who have one of that name, the nearest counts. `isThere` says which of their rows do. */
export function notShadowed(table: string, id: string, isThere = 'TRUE'): string {
  return `NOT EXISTS (SELECT 1 FROM ${table} nearer WHERE nearer.${id} = ${table}.${id} AND ${isThere}
    AND nearer.${OWNERS} AND ${NEARNESS('nearer.owner')} < ${NEARNESS(`${table}.owner`)})`;
}

/** The version that a new run gets: of the nearest owner that has the workflow. */
export function findWorkflow(from: Visibility, workflowId: string): Statement {
  return sql(
    `SELECT definitions.*, workflows.updated_at FROM workflows JOIN definitions USING (owner, workflow_id, version)
     WHERE workflow_id = $3 AND ${OWNERS} ORDER BY ${NEARNESS('owner')} LIMIT 1`,
    ownerOf(from),
    from.tenant,
    workflowId,
  );
}

/** Which version that is, without the definition itself. */
export function findWorkflowVersion(from: Visibility, workflowId: string): Statement {
  return sql(
    `SELECT owner, version FROM workflows WHERE workflow_id = $3 AND ${OWNERS} ORDER BY ${NEARNESS('owner')} LIMIT 1`,
    ownerOf(from),
    from.tenant,
    workflowId,
  );
}

export function findDefinition(owner: string, workflowId: string, version: number): Statement {
  return sql(
    'SELECT * FROM definitions WHERE owner = $1 AND workflow_id = $2 AND version = $3',
    owner,
    workflowId,
    version,
  );
}

export interface LatestVersion {
  readonly version: number;
  readonly digest: string;
  /** The version that new runs get; null once the workflow was removed. */
  readonly current: number | null;
  readonly updated_at: number | null;
}

export function latestVersion(owner: string, workflowId: string): Statement {
  return sql(
    `SELECT definitions.version, digest, workflows.version AS current, workflows.updated_at
     FROM definitions LEFT JOIN workflows USING (owner, workflow_id)
     WHERE owner = $1 AND workflow_id = $2 ORDER BY definitions.version DESC LIMIT 1`,
    owner,
    workflowId,
  );
}

/** Where a page of workflows ended. */
export interface WorkflowPlace {
  readonly updatedAt: number;
  readonly workflowId: string;
}

/** Workflows that may be run from here, what was changed last first. */
export function listWorkflows(from: Visibility, after: WorkflowPlace, limit: number): Statement {
  return sql(
    `SELECT definitions.*, workflows.updated_at FROM workflows JOIN definitions USING (owner, workflow_id, version)
     WHERE ${OWNERS} AND (updated_at < $3 OR (updated_at = $3 AND workflow_id > $4))
       AND ${notShadowed('workflows', 'workflow_id')}
     ORDER BY updated_at DESC, workflow_id LIMIT $5`,
    ownerOf(from),
    from.tenant,
    after.updatedAt,
    after.workflowId,
    limit,
  );
}

/** Refused when another version took that number in between. */
export function insertDefinition(row: DefinitionRow): Write {
  return {
    sql: `INSERT INTO definitions (owner, workflow_id, version, digest, body, created_at)
          VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (owner, workflow_id, version) DO NOTHING`,
    params: [row.owner, row.workflow_id, row.version, row.digest, row.body, row.created_at],
    expect: 1,
    keeps: 'version',
  };
}

/** Says which version new runs get. Refused when that has changed since it was read: null where there was none. */
export function pointWorkflow(
  owner: string,
  workflowId: string,
  version: number,
  now: number,
  current: number | null,
): Write {
  const params = [owner, workflowId, version, now];
  const guard = { expect: 1, keeps: 'version' } as const;
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

/** Refused when it is another version by now, or gone. */
export function removeWorkflow(owner: string, workflowId: string, current: number): Write {
  return {
    sql: 'DELETE FROM workflows WHERE owner = $1 AND workflow_id = $2 AND version = $3',
    params: [owner, workflowId, current],
    expect: 1,
    keeps: 'version',
  };
}
