import type { Visibility } from '../../../store/log.ts';
import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

/** The table of previews. */
export const PREVIEW_TABLES: readonly Migration[] = [
  {
    id: 'previews/0001',
    statements: [
      // The artifact is a copy: the proposal may be revised while its preview runs.
      `CREATE TABLE proposal_previews (
        preview_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        workspace TEXT,
        proposal_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        artifact TEXT NOT NULL,
        state TEXT NOT NULL,
        body TEXT NOT NULL,
        version BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        deadline_at BIGINT NOT NULL,
        ended_at BIGINT
      ) $clustered`,
      'CREATE INDEX proposal_previews_by_proposal ON proposal_previews (tenant, proposal_id, preview_id)',
      `CREATE INDEX proposal_previews_running ON proposal_previews (tenant) WHERE state = 'running'`,
    ],
  },
];

/** A preview as it is stored. */
export interface PreviewRow {
  readonly preview_id: string;
  readonly tenant: string;
  readonly workspace: string | null;
  readonly proposal_id: string;
  readonly kind: string;
  readonly sha256: string;
  readonly artifact: string;
  readonly state: 'running' | 'done';
  readonly body: string;
  readonly version: number;
  readonly created_at: number;
  readonly deadline_at: number;
  readonly ended_at: number | null;
}

const VISIBLE = 'tenant = $1 AND (CAST($2 AS TEXT) IS NULL OR workspace = $2)';

/** A preview that a caller may see. */
export function findPreview({ tenant, workspace }: Visibility, previewId: string): Statement {
  return sql(
    `SELECT * FROM proposal_previews WHERE ${VISIBLE} AND preview_id = $3`,
    tenant,
    workspace ?? null,
    previewId,
  );
}

/** The previews of a proposal, newest first. */
export function listPreviews({ tenant, workspace }: Visibility, proposalId: string, limit: number): Statement {
  return sql(
    `SELECT * FROM proposal_previews WHERE ${VISIBLE} AND proposal_id = $3 ORDER BY preview_id DESC LIMIT $4`,
    tenant,
    workspace ?? null,
    proposalId,
    limit,
  );
}

/** Expects, as `running`, that the tenant has fewer previews under way than it may have. */
export function insertPreview(row: PreviewRow, runningMax: number): Write {
  return {
    sql: `INSERT INTO proposal_previews (preview_id, tenant, workspace, proposal_id, kind, sha256, artifact, state, body,
            version, created_at, deadline_at, ended_at)
          SELECT $1, $2, CAST($3 AS TEXT), $4, $5, $6, $7, $8, $9, CAST($10 AS BIGINT), CAST($11 AS BIGINT),
            CAST($12 AS BIGINT), CAST($13 AS BIGINT)
          WHERE (SELECT COUNT(*) FROM proposal_previews WHERE tenant = $2 AND state = 'running') < $14`,
    params: [
      row.preview_id,
      row.tenant,
      row.workspace,
      row.proposal_id,
      row.kind,
      row.sha256,
      row.artifact,
      row.state,
      row.body,
      row.version,
      row.created_at,
      row.deadline_at,
      row.ended_at,
      runningMax,
    ],
    expect: 1,
    expectation: 'running',
  };
}

/** Writes what has changed. Expects, as `preview`, that nothing has changed in between. */
export function updatePreview({ preview_id, tenant, state, body, version, ended_at }: PreviewRow): Write {
  return {
    sql: `UPDATE proposal_previews SET state = $3, body = $4, ended_at = $5, version = $6
          WHERE preview_id = $1 AND tenant = $2 AND version = $6 - 1`,
    params: [preview_id, tenant, state, body, ended_at, version],
    expect: 1,
    expectation: 'preview',
  };
}

/** Deletes the oldest previews of a proposal that have ended, but for the newest `kept`. */
export function pruneOldPreviews(tenant: string, proposalId: string, kept: number): Write {
  return {
    sql: `DELETE FROM proposal_previews WHERE tenant = $1 AND proposal_id = $2 AND state = 'done' AND preview_id NOT IN (
            SELECT preview_id FROM proposal_previews WHERE tenant = $1 AND proposal_id = $2
            ORDER BY preview_id DESC LIMIT $3)`,
    params: [tenant, proposalId, kept],
  };
}
