import type { Refusal } from '../../../protocol/errors.ts';
import { defined } from '../../../protocol/format/json.ts';
import type { Proposal } from '../../../protocol/learning/proposals.ts';
import { REVIEW } from '../../../runtime/management-workflows.ts';
import type { ProposalOutcome } from './door.ts';
import { factsOf } from './facts.ts';
import type { InstalledSummaryRow } from './installation-records.ts';
import type { ProposalRow, RevisionRow } from './records.ts';
import { diffOfTexts } from './text-diff.ts';

/** The author of drafts. */
const HOST_AUTHOR = 'host';

/** The members of a proposal other than the artifact. */
function frameOf(row: ProposalRow): Omit<Proposal, 'artifact'> {
  const { tenantName, principal, title, rationale, sourceRunIds, synthesizerModel, duplicateOf } = factsOf(row);
  const { approval_id: approvalId, installed_ref: installedArtifactRef } = row;
  const isApplied = row.state === 'applied' && installedArtifactRef !== null;
  return {
    id: row.proposal_id,
    kind: row.kind,
    state: row.state,
    ...(title === undefined ? {} : { title }),
    ...(rationale === undefined ? {} : { rationale }),
    provenance: { sourceRunIds: [...sourceRunIds], ...(synthesizerModel === undefined ? {} : { synthesizerModel }) },
    duplicateOf: duplicateOf ?? null,
    owner: { tenant: tenantName, ...(row.workspace === null ? {} : { workspace: row.workspace }), principal },
    activation: isApplied ? { approvalId, installedArtifactRef } : null,
    createdAt: new Date(row.created_at).toISOString(),
    updatedAt: new Date(row.updated_at).toISOString(),
  };
}

/** A stored proposal as callers see it. */
export function proposalOf(row: ProposalRow): Proposal {
  return { ...frameOf(row), artifact: JSON.parse(row.text) };
}

/** The same as JSON text, with the artifact exactly as it is stored: `1.0` stays `1.0`. */
export function proposalText(row: ProposalRow): string {
  return `${JSON.stringify(frameOf(row)).slice(0, -1)},"artifact":${row.text}}`;
}

/** What helps a person to decide about a proposal. */
export interface ProposalDetails {
  readonly row: ProposalRow;
  readonly revisions: readonly RevisionRow[];
  readonly gate: OpenGate | undefined;
  /** Why it could not be applied now. */
  readonly obstacle: Refusal | undefined;
  /** The effect that the artifact would have now. */
  readonly preview: unknown;
  /** The text of what it would replace, while it may be applied. */
  readonly replaced: string | undefined;
}

/** The open gate of a proposal, with the votes so far. */
export interface OpenGate {
  readonly approvalId: string;
  readonly requestedAt: number;
  readonly expiresAt: number | undefined;
  readonly data: Readonly<Record<string, unknown>>;
  readonly grantedBy: readonly string[];
}

/** The evidence document of a proposal: revisions with diffs, the open gate, sources and neighbours. */
export function evidenceOf({ row, revisions, gate, obstacle, preview, replaced }: ProposalDetails): object {
  const { sources, nearest, rejectReason, isNeverAgain, earlier, outcomes } = factsOf(row);
  return defined({
    proposalId: row.proposal_id,
    artifactHash: row.sha256,
    runId: row.run_id,
    revisions: revisions.map(({ at, author, sha256, text, note }, index) =>
      defined({
        at: timestamp(at),
        by: author ?? HOST_AUTHOR,
        hash: sha256,
        diff: diffOfTexts(revisions[index - 1]?.text, text),
        note: note ?? undefined,
      }),
    ),
    change: replaced === undefined ? undefined : diffOfTexts(replaced, row.text),
    gate: gate && gateDocument(gate),
    obstacle: obstacle && { message: obstacle.message, ...obstacle.details },
    rejectReason,
    neverAgain: isNeverAgain ? true : undefined,
    earlier: earlier?.map(({ at, ...rest }) => ({ ...rest, at: timestamp(at) })),
    outcomes,
    sources,
    nearest,
    preview,
    uninstalledAt: row.uninstalled_at === null ? undefined : timestamp(row.uninstalled_at),
  });
}

/** What became of a proposal. */
export function outcomeOf(row: ProposalRow): ProposalOutcome {
  const { rejectReason: reason, rejectedAt, isNeverAgain = false, earlier = [] } = factsOf(row);
  const own = rejectedAt === undefined ? [] : [{ proposalId: row.proposal_id, at: rejectedAt, ...defined({ reason }) }];
  return { state: row.state, rejections: [...earlier, ...own], rejectedAt, isNeverAgain };
}

function gateDocument({ approvalId, requestedAt, expiresAt, data, grantedBy }: OpenGate): object {
  const { artifactHash, requiredScope, requiredRole, quorum } = data;
  return defined({
    approvalId,
    nodeId: REVIEW,
    artifactHash,
    requiredScope,
    requiredRole,
    quorum,
    grantedBy,
    requestedAt: timestamp(requestedAt),
    expiresAt: expiresAt === undefined ? undefined : timestamp(expiresAt),
  });
}

/** An installed artifact without its text. */
export function installedSummary(row: InstalledSummaryRow): object {
  return defined({
    ref: row.ref,
    kind: row.kind,
    proposalId: row.proposal_id,
    sha256: row.sha256,
    installedAt: timestamp(row.installed_at),
    installedBy: row.installed_by,
    replaces: row.replaces ?? undefined,
  });
}

function timestamp(at: number): string {
  return new Date(at).toISOString();
}
