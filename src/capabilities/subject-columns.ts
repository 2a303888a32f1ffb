import type { Owner } from '../protocol/running/events.ts';
import type { Subject } from '../runtime/run-row.ts';

/** The columns that say on whose behalf runs are started. */
export interface SubjectColumns {
  readonly tenant: string;
  readonly tenant_name: string;
  readonly workspace: string | null;
  readonly principal: string;
  readonly issuer: string;
  readonly lane: string;
}

/** The names of the subject columns, for INSERT statements. */
export const SUBJECT_COLUMNS = [
  'tenant',
  'tenant_name',
  'workspace',
  'principal',
  'issuer',
  'lane',
] as const satisfies readonly (keyof SubjectColumns)[];

/** The subject that a row stores. */
export function subjectOf(row: SubjectColumns): Subject {
  const { tenant, tenant_name: tenantName, workspace, principal, issuer, lane } = row;
  return { tenant, tenantName, workspace: workspace ?? undefined, principal, issuer, lane };
}

/** The columns that store a subject. */
export function subjectColumns({ tenant, tenantName, workspace, principal, issuer, lane }: Subject): SubjectColumns {
  return { tenant, tenant_name: tenantName, workspace: workspace ?? null, principal, issuer, lane };
}

/** The `owner` member of documents: the subject without what only the host needs. */
export function ownerFrom({ tenant_name: tenant, workspace, principal }: SubjectColumns): Owner {
  return { tenant, ...(workspace === null ? {} : { workspace }), principal };
}
