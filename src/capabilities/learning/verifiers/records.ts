import { notShadowed, ownerOf, ownerPrecedence, VISIBLE_OWNERS } from '../../../store/definitions.ts';
import type { RunRef, Visibility } from '../../../store/log.ts';
import { wakeEach } from '../../../store/queue.ts';
import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';
import type { VerifierPlace } from './door.ts';

/** The tables of verifiers and of runs that judge. */
export const VERIFIER_TABLES: readonly Migration[] = [
  {
    id: 'verifiers/0001',
    statements: [
      // The version that is used where none is named; no row once the verifier was removed.
      `CREATE TABLE verifiers (
        owner TEXT NOT NULL,
        verifier_id TEXT NOT NULL,
        version BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        PRIMARY KEY (owner, verifier_id)
      ) $clustered`,
      // Versions stay: verdicts name them, and a number is never given to anything else.
      `CREATE TABLE verifier_versions (
        owner TEXT NOT NULL,
        verifier_id TEXT NOT NULL,
        version BIGINT NOT NULL,
        body TEXT NOT NULL,
        created_by TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        PRIMARY KEY (owner, verifier_id, version)
      ) $clustered`,
      // Runs that are to give a verdict, and the work item that waits for it.
      `CREATE TABLE judging_runs (
        run_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        work_id TEXT NOT NULL
      ) $clustered`,
    ],
  },
];

/** A version of a verifier as it is stored. */
export interface VerifierRow {
  readonly owner: string;
  readonly verifier_id: string;
  readonly version: number;
  readonly body: string;
  readonly created_by: string;
  readonly created_at: number;
}

/** The current version of a verifier in a list, and since when it is the current one. */
export interface ListedVerifierRow extends VerifierRow {
  readonly updated_at: number;
}

/** The current version of a verifier, that of the nearest owner first. */
export function findVerifier(from: Visibility, verifierId: string): Statement {
  return sql(
    `SELECT verifier_versions.* FROM verifiers JOIN verifier_versions USING (owner, verifier_id, version)
     WHERE verifier_id = $3 AND ${VISIBLE_OWNERS} ORDER BY ${ownerPrecedence('owner')} LIMIT 1`,
    ownerOf(from),
    from.tenant,
    verifierId,
  );
}

/** A version of a verifier that was not removed, whether or not it is the current one. */
export function findVerifierVersion(from: Visibility, verifierId: string, version: number): Statement {
  return sql(
    `SELECT verifier_versions.* FROM verifiers JOIN verifier_versions USING (owner, verifier_id)
     WHERE verifier_id = $3 AND verifier_versions.version = $4 AND ${VISIBLE_OWNERS} ORDER BY ${ownerPrecedence('owner')} LIMIT 1`,
    ownerOf(from),
    from.tenant,
    verifierId,
    version,
  );
}

/** Verifiers that are visible from a workspace, the most recently changed first. */
export function listVerifiers(from: Visibility, after: VerifierPlace, limit: number): Statement {
  return sql(
    `SELECT verifier_versions.*, verifiers.updated_at
     FROM verifiers JOIN verifier_versions USING (owner, verifier_id, version)
     WHERE ${VISIBLE_OWNERS} AND (updated_at < $3 OR (updated_at = $3 AND verifier_id > $4))
       AND ${notShadowed('verifiers', 'verifier_id')}
     ORDER BY updated_at DESC, verifier_id LIMIT $5`,
    ownerOf(from),
    from.tenant,
    after.updatedAt,
    after.verifierId,
    limit,
  );
}

/** The highest version number that an owner ever gave to a verifier. */
export function latestVersion(owner: string, verifierId: string): Statement {
  return sql(
    'SELECT MAX(version) AS version FROM verifier_versions WHERE owner = $1 AND verifier_id = $2',
    owner,
    verifierId,
  );
}

/** How many verifiers an owner has. */
export function countVerifiers(owner: string): Statement {
  return sql('SELECT COUNT(*) AS count FROM verifiers WHERE owner = $1', owner);
}

/** Expects, as `version`, that no other version has taken the number in between. */
export function insertVersion(row: VerifierRow): Write {
  return {
    sql: `INSERT INTO verifier_versions (owner, verifier_id, version, body, created_by, created_at)
          VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (owner, verifier_id, version) DO NOTHING`,
    params: [row.owner, row.verifier_id, row.version, row.body, row.created_by, row.created_at],
    expect: 1,
    expectation: 'version',
  };
}

/** Makes a version the current one. */
export function pointVerifier({ owner, verifier_id, version, created_at }: VerifierRow): Write {
  return {
    sql: `INSERT INTO verifiers (owner, verifier_id, version, updated_at) VALUES ($1, $2, $3, $4)
          ON CONFLICT (owner, verifier_id) DO UPDATE SET version = excluded.version, updated_at = excluded.updated_at`,
    params: [owner, verifier_id, version, created_at],
  };
}

/** Takes a version out of use, for another one or for none. Expects, as `version`, that it is the current one. */
export function withdrawVersion(
  { owner, verifier_id, version }: VerifierRow,
  replaced: number | undefined,
  at: number,
): Write {
  const current = [owner, verifier_id, version];
  const where = 'WHERE owner = $1 AND verifier_id = $2 AND version = $3';
  return {
    ...(replaced === undefined
      ? { sql: `DELETE FROM verifiers ${where}`, params: current }
      : { sql: `UPDATE verifiers SET version = $4, updated_at = $5 ${where}`, params: [...current, replaced, at] }),
    expect: 1,
    expectation: 'version',
  };
}

/** Expects, as `existence`, that the verifier exists. Its versions stay. */
export function removeVerifier(owner: string, verifierId: string): Write {
  return {
    sql: 'DELETE FROM verifiers WHERE owner = $1 AND verifier_id = $2',
    params: [owner, verifierId],
    expect: 1,
    expectation: 'existence',
  };
}

/** Notes which work item waits for a judging run. */
export function awaitJudgingRun({ tenant, runId }: RunRef, workId: string): Write {
  return {
    sql: 'INSERT INTO judging_runs (run_id, tenant, work_id) VALUES ($1, $2, $3)',
    params: [runId, tenant, workId],
  };
}

/** Wakes the work item that waits for a judging run. */
export function wakeWaiting({ tenant, runId }: RunRef): Write {
  return wakeEach({
    workId: 'work_id',
    from: 'judging_runs WHERE run_id = $1 AND tenant = $2',
    params: [runId, tenant],
  });
}

/** Deletes the note about a judging run. */
export function deleteJudgingRun({ tenant, runId }: RunRef): Write {
  return { sql: 'DELETE FROM judging_runs WHERE run_id = $1 AND tenant = $2', params: [runId, tenant] };
}
