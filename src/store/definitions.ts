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

/** The version that a new run of this tenant gets: its own before the host's. */
export function findWorkflow(tenant: string, workflowId: string): Statement {
  return sql(
    `SELECT definitions.* FROM workflows JOIN definitions USING (owner, workflow_id, version)
     WHERE workflow_id = $1 AND owner IN ($2, '${HOST_OWNER}') ORDER BY CASE owner WHEN $2 THEN 0 ELSE 1 END LIMIT 1`,
    workflowId,
    tenant,
  );
}

/** Which version that is, without the definition itself. */
export function findWorkflowVersion(tenant: string, workflowId: string): Statement {
  return sql(
    `SELECT owner, version FROM workflows
     WHERE workflow_id = $1 AND owner IN ($2, '${HOST_OWNER}') ORDER BY CASE owner WHEN $2 THEN 0 ELSE 1 END LIMIT 1`,
    workflowId,
    tenant,
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

export function latestVersion(owner: string, workflowId: string): Statement {
  return sql(
    `SELECT version, digest, (SELECT version FROM workflows WHERE owner = $1 AND workflow_id = $2) AS current
     FROM definitions WHERE owner = $1 AND workflow_id = $2 ORDER BY version DESC LIMIT 1`,
    owner,
    workflowId,
  );
}

/** Workflows of a tenant and of the host, by id. */
export function listWorkflows(tenant: string, after: string, limit: number): Statement {
  return sql(
    `SELECT definitions.* FROM workflows JOIN definitions USING (owner, workflow_id, version)
     WHERE workflow_id > $2 AND (owner = $1 OR (owner = '${HOST_OWNER}'
       AND NOT EXISTS (SELECT 1 FROM workflows own WHERE own.owner = $1 AND own.workflow_id = workflows.workflow_id)))
     ORDER BY workflow_id LIMIT $3`,
    tenant,
    after,
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

export function pointWorkflow(owner: string, workflowId: string, version: number, now: number): Write {
  return {
    sql: `INSERT INTO workflows (owner, workflow_id, version, updated_at) VALUES ($1, $2, $3, $4)
          ON CONFLICT (owner, workflow_id) DO UPDATE SET version = excluded.version, updated_at = excluded.updated_at`,
    params: [owner, workflowId, version, now],
  };
}

export function removeWorkflow(owner: string, workflowId: string): Write {
  return {
    sql: 'DELETE FROM workflows WHERE owner = $1 AND workflow_id = $2',
    params: [owner, workflowId],
    expect: 1,
    keeps: 'existence',
  };
}
