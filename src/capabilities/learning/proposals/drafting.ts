import type { Refusal } from '../../../protocol/errors.ts';
import type { Proposal } from '../../../protocol/learning/proposals.ts';
import { and, type Change, changeOf } from '../../../runtime/change.ts';
import { openManagementRun } from '../../../runtime/management.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { StartedRun } from '../../../runtime/start-run.ts';
import { ownerOf } from '../../../store/definitions.ts';
import { visibleRuns } from '../../../store/log.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import { proposalOf } from './document.ts';
import type { Draft } from './door.ts';
import type { ProposalFacts } from './facts.ts';
import type { Installers } from './installers/index.ts';
import type { ProposalNotifications } from './notifications.ts';
import { insertEvidence, insertProposal, insertRevision, type PendingLimits, type ProposalRow } from './records.ts';
import { KNOWN_EVIDENCE, malformed, TOO_MANY_PENDING } from './rules.ts';

/** What drafting works with. */
interface DraftingParts {
  readonly installers: Installers;
  readonly notifications: ProposalNotifications;
  readonly pending: PendingLimits;
}

/** Decides to store a draft with its management run. Secrets are redacted here; later the host changes nothing. */
export async function draftProposal(
  runtime: Runtime,
  { installers, notifications, pending }: DraftingParts,
  owner: Subject,
  proposed: Draft,
): Promise<Change<Proposal> | Refusal> {
  const proposalId = runtime.ids.next('prop-');
  const draft = await withVisibleRuns(runtime, owner, proposed);
  const text = JSON.stringify(redactValue(draft.artifact));
  const artifact = { proposalId, author: { subject: owner }, text };
  const installer = installers[draft.kind];
  const problems = await installer.check(artifact);
  if (problems.length > 0) return malformed(problems);
  const run = await openRun(runtime, owner, proposalId, draft);
  const now = runtime.clock.now();
  const row: ProposalRow = {
    proposal_id: proposalId,
    tenant: owner.tenant,
    workspace: owner.workspace ?? null,
    run_id: run.result.runId,
    kind: draft.kind,
    state: 'draft',
    version: 1,
    revision: 1,
    base: await installer.current(artifact),
    facts: JSON.stringify(factsFor(owner, draft)),
    approval_id: null,
    installed_ref: null,
    created_at: now,
    updated_at: now,
    text,
    sha256: sha256Hex(text),
    author: null,
    uninstalled_at: null,
  };
  const writes = [
    insertEvidence(ownerOf(owner), draft.evidence.key, proposalId),
    insertProposal(row, pending),
    insertRevision({ ...row, author_principal: null, note: null, at: now }),
  ];
  const refusals = { evidence: KNOWN_EVIDENCE, pending: TOO_MANY_PENDING };
  return and(changeOf(proposalOf(row), writes, { refusals }), run, notifications.created(owner, row));
}

function openRun(runtime: Runtime, subject: Subject, proposalId: string, draft: Draft): Promise<Change<StartedRun>> {
  const { kind, sourceRunIds, duplicateOf } = draft;
  return openManagementRun(runtime, { workflowId: 'capstan-proposal', subject, inputs: { proposalId } }, [
    {
      type: 'proposal.created',
      payload: { proposalId, kind, sourceRunIds: [...sourceRunIds], duplicateOf: duplicateOf ?? null },
    },
  ]);
}

/** The draft without the runs that its owner may not see. */
async function withVisibleRuns({ store }: Runtime, owner: Subject, draft: Draft): Promise<Draft> {
  const { sourceRunIds, evidence } = draft;
  const named = [...new Set([...sourceRunIds, ...evidence.sources.map(({ runId }) => runId)])];
  if (named.length === 0) return draft;
  const rows = await store.read<{ run_id: string }>(visibleRuns(owner, named));
  const visible = new Set(rows.map(({ run_id }) => run_id));
  return {
    ...draft,
    sourceRunIds: sourceRunIds.filter((runId) => visible.has(runId)),
    evidence: { ...evidence, sources: evidence.sources.filter(({ runId }) => visible.has(runId)) },
  };
}

function factsFor({ tenantName, principal }: Subject, draft: Draft): ProposalFacts {
  const { title, rationale, sourceRunIds, synthesizerModel, duplicateOf, evidence } = draft;
  const { sources, nearest, preview, earlier, outcomes } = redactValue(evidence);
  return {
    tenantName,
    principal,
    title: title && redactText(title),
    rationale: rationale && redactText(rationale),
    sourceRunIds,
    synthesizerModel,
    duplicateOf,
    sources,
    nearest,
    preview,
    earlier,
    outcomes,
  };
}
