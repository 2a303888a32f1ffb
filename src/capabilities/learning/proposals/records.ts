import type { ArtifactKind, ProposalState } from '../../../protocol/learning/proposals.ts';
import type { Visibility } from '../../../store/log.ts';
import { type Param, placeholders, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

/** The tables of proposals. */
export const PROPOSAL_TABLES: readonly Migration[] = [
  {
    id: 'proposals/0001',
    statements: [
      // Proposals in every state. `version` increments with every change, `revision` with changes of the artifact. `base`
      // names what the artifact would replace, as it was when the revision was written.
      `CREATE TABLE proposals (
        proposal_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        workspace TEXT,
        run_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        state TEXT NOT NULL,
        version BIGINT NOT NULL,
        revision BIGINT NOT NULL,
        base TEXT NOT NULL,
        facts TEXT NOT NULL,
        approval_id TEXT,
        installed_ref TEXT,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL
      ) $clustered`,
      'CREATE INDEX proposals_by_tenant ON proposals (tenant, proposal_id)',
      'CREATE INDEX proposals_by_run ON proposals (run_id)',
      `CREATE INDEX proposals_pending ON proposals (tenant, updated_at, proposal_id)
       WHERE state IN ('draft', 'revised')`,
      // The exact text of every artifact that was ever proposed.
      `CREATE TABLE proposal_revisions (
        proposal_id TEXT NOT NULL,
        revision BIGINT NOT NULL,
        text TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        author TEXT,
        note TEXT,
        at BIGINT NOT NULL,
        PRIMARY KEY (proposal_id, revision)
      ) $clustered`,
      // The evidence that was proposed before, whatever became of the proposal.
      `CREATE TABLE proposal_evidence (
        owner TEXT NOT NULL,
        evidence_key TEXT NOT NULL,
        proposal_id TEXT NOT NULL,
        PRIMARY KEY (owner, evidence_key)
      ) $clustered`,
      // Artifacts that applied proposals installed. `undo` is what their installers need to uninstall them.
      `CREATE TABLE installed_artifacts (
        ref TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        workspace TEXT,
        kind TEXT NOT NULL,
        proposal_id TEXT NOT NULL,
        text TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        replaces TEXT,
        undo TEXT NOT NULL,
        installed_by TEXT NOT NULL,
        installed_at BIGINT NOT NULL,
        uninstalled_at BIGINT
      ) $clustered`,
      'CREATE INDEX installed_artifacts_by_tenant ON installed_artifacts (tenant, ref)',
    ],
  },
  {
    id: 'proposals/0002',
    statements: [
      // Counts the automations installed for a workflow, so that of two at the same time one is decided again.
      `CREATE TABLE automation_turns (
        tenant TEXT NOT NULL,
        workflow_id TEXT NOT NULL,
        turn BIGINT NOT NULL,
        PRIMARY KEY (tenant, workflow_id)
      ) $clustered`,
    ],
  },
  {
    id: 'proposals/0003',
    statements: [
      // Which artifact a proposal showed to whom last, so that nobody applies another one by accident.
      `CREATE TABLE proposal_views (
        proposal_id TEXT NOT NULL,
        viewer TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        at BIGINT NOT NULL,
        PRIMARY KEY (proposal_id, viewer)
      ) $clustered`,
      // The principal beside the person in `author`: a key may lose the person that it named.
      'ALTER TABLE proposal_revisions ADD COLUMN author_principal TEXT',
    ],
  },
];

interface ProposalColumns {
  readonly proposal_id: string;
  readonly tenant: string;
  readonly workspace: string | null;
  readonly run_id: string;
  readonly kind: ArtifactKind;
  readonly state: ProposalState;
  readonly version: number;
  readonly revision: number;
  readonly base: string;
  readonly facts: string;
  readonly approval_id: string | null;
  readonly installed_ref: string | null;
  readonly created_at: number;
  readonly updated_at: number;
}

/** A proposal with its latest revision, and when the artifact that it installed was uninstalled. */
export interface ProposalRow extends ProposalColumns {
  readonly text: string;
  readonly sha256: string;
  readonly author: string | null;
  readonly uninstalled_at: number | null;
}

const COLUMNS = [
  'proposal_id',
  'tenant',
  'workspace',
  'run_id',
  'kind',
  'state',
  'version',
  'revision',
  'base',
  'facts',
  'approval_id',
  'installed_ref',
  'created_at',
  'updated_at',
] as const satisfies readonly (keyof ProposalColumns)[];

/** How many proposals may wait for review: in a tenant, and in each of its workspaces. */
export interface PendingLimits {
  readonly tenant: number;
  readonly workspace: number;
}

/** Inserts a proposal. Expects (`pending`) that the tenant has fewer than so many to review. */
export function insertProposal(row: ProposalRow, { tenant, workspace }: PendingLimits): Write {
  const params: Param[] = COLUMNS.map((column) => row[column]);
  const places = params.map((_, index) => `$${index + 1}`).join(', ');
  const pending = `SELECT COUNT(*) FROM proposals WHERE tenant = $2 AND state IN ('draft', 'revised')`;
  const limits = [`(${pending}) < $${params.push(tenant)}`];
  if (row.workspace !== null) {
    limits.push(`(${pending} AND workspace = $${params.push(row.workspace)}) < $${params.push(workspace)}`);
  }
  return {
    sql: `INSERT INTO proposals (${COLUMNS.join(', ')}) SELECT ${places} WHERE ${limits.join(' AND ')}`,
    params,
    expect: 1,
    expectation: 'pending',
  };
}

/** Records evidence. Expects (`evidence`) that it was not proposed before. */
export function insertEvidence(owner: string, key: string, proposalId: string): Write {
  return {
    sql: `INSERT INTO proposal_evidence (owner, evidence_key, proposal_id) VALUES ($1, $2, $3)
          ON CONFLICT (owner, evidence_key) DO NOTHING`,
    params: [owner, key, proposalId],
    expect: 1,
    expectation: 'evidence',
  };
}

/** Somebody who wrote a part of an artifact: a person, or the principal of a key that names none. */
export interface AuthorRow {
  readonly author: string;
  readonly author_principal: string | null;
}

/**
 * Everybody whose revision changed the artifact of a proposal. The draft, which the host wrote, has no author, and a
 * revision of the title or with a note alone makes nobody one.
 */
export function listAuthors(tenant: string, proposalId: string): Statement {
  return sql(
    `SELECT DISTINCT written.author, written.author_principal FROM proposal_revisions written
     JOIN proposals ON proposals.proposal_id = written.proposal_id
     JOIN proposal_revisions before ON before.proposal_id = written.proposal_id
       AND before.revision = written.revision - 1 AND before.sha256 <> written.sha256
     WHERE written.proposal_id = $1 AND proposals.tenant = $2 AND written.author IS NOT NULL`,
    proposalId,
    tenant,
  );
}

/** Which artifact somebody has seen. */
export interface ViewRow {
  readonly proposal_id: string;
  readonly sha256: string;
}

/** What a viewer has seen of some proposals. */
export function findViews(viewer: string, proposalIds: readonly string[]): Statement {
  return sql(
    `SELECT proposal_id, sha256 FROM proposal_views
     WHERE viewer = $1 AND proposal_id IN ${placeholders(1, proposalIds.length, 2)}`,
    viewer,
    ...proposalIds,
  );
}

/** Stores what a viewer sees of a proposal now. */
export function noteView(viewer: string, { proposal_id, sha256 }: ViewRow, at: number): Write {
  return {
    sql: `INSERT INTO proposal_views (proposal_id, viewer, sha256, at) VALUES ($1, $2, $3, $4)
          ON CONFLICT (proposal_id, viewer) DO UPDATE SET sha256 = $3, at = $4`,
    params: [proposal_id, viewer, sha256, at],
  };
}

/** A revision of the artifact of a proposal. */
export interface RevisionRow {
  readonly proposal_id: string;
  readonly revision: number;
  readonly text: string;
  readonly sha256: string;
  /** Null for the draft, which the host wrote. */
  readonly author: string | null;
  readonly author_principal: string | null;
  readonly note: string | null;
  readonly at: number;
}

/** Stores a revision. */
export function insertRevision(row: RevisionRow): Write {
  return {
    sql: `INSERT INTO proposal_revisions (proposal_id, revision, text, sha256, author, author_principal, note, at)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
    params: [row.proposal_id, row.revision, row.text, row.sha256, row.author, row.author_principal, row.note, row.at],
  };
}

const UPDATED = ['state', 'revision', 'base', 'facts', 'approval_id', 'installed_ref', 'updated_at'] as const;

/** Updates a proposal. Expects (`proposal`) that nobody else changed it since it was read. */
export function updateProposal(row: ProposalRow): Write {
  const params: Param[] = UPDATED.map((column) => row[column]);
  const changes = UPDATED.map((column, index) => `${column} = $${index + 1}`).join(', ');
  const param = (value: Param): string => `$${params.push(value)}`;
  return {
    sql: `UPDATE proposals SET ${changes}, version = version + 1 WHERE proposal_id = ${param(row.proposal_id)}
          AND tenant = ${param(row.tenant)} AND version = ${param(row.version)}`,
    params,
    expect: 1,
    expectation: 'proposal',
  };
}

const WHOLE = `SELECT proposals.*, proposal_revisions.text, proposal_revisions.sha256, proposal_revisions.author,
    installed_artifacts.uninstalled_at
  FROM proposals JOIN proposal_revisions USING (proposal_id, revision)
  LEFT JOIN installed_artifacts ON installed_artifacts.ref = proposals.installed_ref`;

/** One proposal. */
export function findProposal({ tenant, workspace }: Visibility, proposalId: string): Statement {
  const found = `${WHOLE} WHERE proposals.proposal_id = $1 AND proposals.tenant = $2`;
  if (workspace === undefined) return sql(found, proposalId, tenant);
  return sql(`${found} AND proposals.workspace = $3`, proposalId, tenant, workspace);
}

/** The proposal that a management run belongs to. */
export function findProposalOfRun(tenant: string, runId: string): Statement {
  return sql(`${WHOLE} WHERE proposals.run_id = $1 AND proposals.tenant = $2`, runId, tenant);
}

/** Which proposals a list has. */
export interface ProposalFilter {
  readonly state?: string | undefined;
  readonly kind?: string | undefined;
  /** The last proposal of the previous page. */
  readonly before?: string | undefined;
}

/** Proposals, newest first: ids sort by time of creation. */
export function listProposals(
  { tenant, workspace }: Visibility,
  { state, kind, before }: ProposalFilter,
  limit: number,
): Statement {
  const params: Param[] = [tenant];
  const where = ['proposals.tenant = $1'];
  if (workspace !== undefined) where.push(`proposals.workspace = $${params.push(workspace)}`);
  if (state !== undefined) where.push(`proposals.state = $${params.push(state)}`);
  if (kind !== undefined) where.push(`proposals.kind = $${params.push(kind)}`);
  if (before !== undefined) where.push(`proposals.proposal_id < $${params.push(before)}`);
  return {
    sql: `${WHOLE} WHERE ${where.join(' AND ')} ORDER BY proposals.proposal_id DESC LIMIT $${params.push(limit)}`,
    params,
  };
}

/** A pending proposal without its artifact. */
export type PendingRow = Pick<ProposalRow, (typeof PENDING)[number]>;

const PENDING = [
  'proposal_id',
  'run_id',
  'workspace',
  'kind',
  'facts',
  'updated_at',
  'sha256',
] as const satisfies readonly (keyof ProposalRow)[];

/** Pending proposals without their artifacts, most recently changed first, from a position on. */
export function listPending(
  { tenant, workspace }: Visibility,
  before: { readonly at: number; readonly id: string } | undefined,
  limit: number,
): Statement {
  const params: Param[] = [tenant];
  const where = ['proposals.tenant = $1', `proposals.state IN ('draft', 'revised')`];
  if (workspace !== undefined) where.push(`proposals.workspace = $${params.push(workspace)}`);
  if (before) {
    const place = [before.at, before.id].map((part) => `$${params.push(part)}`).join(', ');
    where.push(`(proposals.updated_at, proposals.proposal_id) < (${place})`);
  }
  return {
    sql: `SELECT ${PENDING.join(', ')} FROM proposals JOIN proposal_revisions USING (proposal_id, revision)
          WHERE ${where.join(' AND ')}
          ORDER BY proposals.updated_at DESC, proposals.proposal_id DESC LIMIT $${params.push(limit)}`,
    params,
  };
}

/** The proposals that some management runs belong to. */
export function proposalsOfRuns(tenant: string, runIds: readonly string[]): Statement {
  return sql(
    `SELECT run_id, proposal_id FROM proposals WHERE tenant = $1 AND run_id IN ${placeholders(1, runIds.length, 2)}`,
    tenant,
    ...runIds,
  );
}

/** The workflow whose automations are installed one after the other. */
interface AutomationTarget {
  readonly tenant: string;
  readonly workflowId: string;
}

/** How many automations were installed for a workflow. */
export function countInstallations({ tenant, workflowId }: AutomationTarget): Statement {
  return sql('SELECT turn FROM automation_turns WHERE tenant = $1 AND workflow_id = $2', tenant, workflowId);
}

/** Counts another automation of a workflow. Expects (`revision`) that the count has not changed since it was read. */
export function countInstallation({ tenant, workflowId }: AutomationTarget, known: number): Write {
  return {
    sql: `INSERT INTO automation_turns (tenant, workflow_id, turn) VALUES ($1, $2, 1)
          ON CONFLICT (tenant, workflow_id) DO UPDATE SET turn = automation_turns.turn + 1
          WHERE automation_turns.turn = $3`,
    params: [tenant, workflowId, known],
    expect: 1,
    expectation: 'revision',
  };
}

/** The number of revisions of a proposal, and their total length. */
export function measureRevisions(tenant: string, proposalId: string): Statement {
  return sql(
    `SELECT COUNT(*) AS revisions, SUM(LENGTH(text)) AS chars FROM proposal_revisions JOIN proposals USING (proposal_id)
     WHERE proposal_id = $1 AND tenant = $2`,
    proposalId,
    tenant,
  );
}

/** The revisions of a proposal, oldest first. */
export function listRevisions(tenant: string, proposalId: string): Statement {
  return sql(
    `SELECT proposal_revisions.* FROM proposal_revisions JOIN proposals USING (proposal_id)
     WHERE proposal_id = $1 AND tenant = $2 ORDER BY proposal_revisions.revision`,
    proposalId,
    tenant,
  );
}
