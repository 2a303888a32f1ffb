import type { Visibility } from '../../../store/log.ts';
import { type Statement, sql } from '../../../store/sql.ts';
import type { InstalledRow } from './records.ts';

/** An installed artifact, and when it was uninstalled. */
export interface Installation extends InstalledRow {
  readonly uninstalled_at: number | null;
}

/** The latest installation of a proposal. */
export function findInstallation({ tenant, workspace }: Visibility, proposalId: string): Statement {
  return sql(
    `SELECT * FROM installed_artifacts WHERE tenant = $1 AND proposal_id = $2
       AND (CAST($3 AS TEXT) IS NULL OR workspace = $3) ORDER BY ref DESC LIMIT 1`,
    tenant,
    proposalId,
    workspace ?? null,
  );
}

/** What was installed since a time and is still there, by reference: references sort by time. */
export function listInstalledSince(at: number, after: string, limit: number): Statement {
  return sql(
    `SELECT * FROM installed_artifacts WHERE ref > $1 AND installed_at >= $2 AND uninstalled_at IS NULL
     ORDER BY ref LIMIT $3`,
    after,
    at,
    limit,
  );
}
