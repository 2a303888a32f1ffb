import type { RunRef } from '../../../store/log.ts';
import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

/** Artifacts of runs. */
export const ARTIFACT_TABLES: readonly Migration[] = [
  {
    id: 'artifacts/0001',
    statements: [
      `CREATE TABLE artifacts (
        run_id TEXT NOT NULL,
        artifact_id TEXT NOT NULL,
        tenant TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (run_id, artifact_id)
      ) $clustered`,
    ],
  },
];

/** A row of the table of artifacts. */
interface ArtifactRow {
  readonly run_id: string;
  readonly artifact_id: string;
  readonly tenant: string;
  readonly body: string;
}

/** Stores an artifact. A node that a loop visits again replaces its earlier artifact. */
export function upsertArtifact({ run_id, artifact_id, tenant, body }: ArtifactRow): Write {
  return {
    sql: `INSERT INTO artifacts (run_id, artifact_id, tenant, body) VALUES ($1, $2, $3, $4)
          ON CONFLICT (run_id, artifact_id) DO UPDATE SET body = excluded.body`,
    params: [run_id, artifact_id, tenant, body],
  };
}

/** Deletes the artifacts of a run. */
export function forgetArtifacts({ tenant, runId }: RunRef): Write {
  return { sql: 'DELETE FROM artifacts WHERE run_id = $1 AND tenant = $2', params: [runId, tenant] };
}

/** The document of one artifact. */
export function findArtifact(tenant: string, runId: string, artifactId: string): Statement {
  return sql(
    'SELECT body FROM artifacts WHERE run_id = $1 AND artifact_id = $2 AND tenant = $3',
    runId,
    artifactId,
    tenant,
  );
}
