import type { ArtifactKind } from '../../../protocol/learning/proposals.ts';
import type { Visibility } from '../../../store/log.ts';
import { type Param, placeholders, type Statement, sql, type Write } from '../../../store/sql.ts';

/** An artifact that a proposal installed. */
export interface InstalledRow {
  readonly ref: string;
  readonly tenant: string;
  readonly workspace: string | null;
  readonly kind: ArtifactKind;
  readonly proposal_id: string;
  readonly text: string;
  readonly sha256: string;
  readonly replaces: string | null;
  readonly undo: string;
  readonly installed_by: string;
  readonly installed_at: number;
}

const INSTALLED = [
  'ref',
  'tenant',
  'workspace',
  'kind',
  'proposal_id',
  'text',
  'sha256',
  'replaces',
  'undo',
  'installed_by',
  'installed_at',
] as const satisfies readonly (keyof InstalledRow)[];

/** Records an installed artifact. */
export function insertInstalled(row: InstalledRow): Write {
  return {
    sql: `INSERT INTO installed_artifacts (${INSTALLED.join(', ')}) VALUES ${placeholders(1, INSTALLED.length)}`,
    params: INSTALLED.map((column) => row[column]),
  };
}

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

/** Marks an artifact as uninstalled. Expects (`artifact`) that it was not before. */
export function markUninstalled({ ref, tenant }: InstalledRow, at: number): Write {
  return {
    sql: `UPDATE installed_artifacts SET uninstalled_at = $1
          WHERE ref = $2 AND tenant = $3 AND uninstalled_at IS NULL`,
    params: [at, ref, tenant],
    expect: 1,
    expectation: 'artifact',
  };
}

/** An installed artifact without its text. */
export type InstalledSummaryRow = Omit<InstalledRow, 'text' | 'undo'>;

const SUMMARY = INSTALLED.filter((column) => column !== 'text' && column !== 'undo');

/** Installed artifacts without their texts, newest first. */
export function summarizeInstalled(from: Visibility, before: string | undefined, limit: number): Statement {
  return selectInstalled(SUMMARY, from, { before }, limit);
}

/** Installed artifacts, newest first. */
export function listInstalled(
  from: Visibility,
  filter: { readonly ref?: string; readonly before?: string | undefined },
  limit: number,
): Statement {
  return selectInstalled(INSTALLED, from, filter, limit);
}

function selectInstalled(
  columns: readonly (keyof InstalledRow)[],
  { tenant, workspace }: Visibility,
  { ref, before }: { readonly ref?: string; readonly before?: string | undefined },
  limit: number,
): Statement {
  const params: Param[] = [tenant];
  const where = ['tenant = $1', 'uninstalled_at IS NULL'];
  if (workspace !== undefined) where.push(`workspace = $${params.push(workspace)}`);
  if (ref !== undefined) where.push(`ref = $${params.push(ref)}`);
  if (before !== undefined) where.push(`ref < $${params.push(before)}`);
  return {
    sql: `SELECT ${columns.join(', ')} FROM installed_artifacts WHERE ${where.join(' AND ')}
          ORDER BY ref DESC LIMIT $${params.push(limit)}`,
    params,
  };
}
