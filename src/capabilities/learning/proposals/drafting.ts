import type { Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { ArtifactKind, Proposal } from '../../../protocol/learning/proposals.ts';
import { commitAll, UnitRefused } from '../../../runtime/command.ts';
import { openManagementRun } from '../../../runtime/management.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import { ownerOf } from '../../../store/definitions.ts';
import { visibleRuns } from '../../../store/log.ts';
import type { Unit } from '../../../store/sql.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import { proposalOf } from './document.ts';
import type { Installers } from './installers/index.ts';
import { insertEvidence, insertProposal, insertRevision, type ProposalFacts, type ProposalRow } from './records.ts';
import { malformed } from './rules.ts';
import type { Telling } from './telling.ts';

/** What somebody who looked at runs would have people consider. */
export interface Draft {
  readonly kind: ArtifactKind;
  readonly artifact: JsonObject;
  readonly title?: string | undefined;
  readonly rationale?: string | undefined;
  /** Runs of the owner alone. */
  readonly sourceRunIds: readonly string[];
  readonly synthesizerModel?: string | undefined;
  readonly evidence: Evidence;
  readonly duplicateOf?: string | undefined;
}

/** Why it is proposed. */
export interface Evidence extends Pick<ProposalFacts, 'sources' | 'nearest' | 'preview'> {
  /** The same for the same evidence. Of what was proposed once nothing is proposed again. */
  readonly key: string;
}

export type Drafted = Proposal | 'known-evidence' | 'too-many-pending' | Refusal;

/** Keeps drafts. Whatever they hold is cleaned of secrets first, and then never changed by the host again. */
export function drafting({ runtime, settings }: Host, installers: Installers, telling: Telling) {
  const { clock, ids, store } = runtime;

  return async (owner: Subject, proposed: Draft, also: Unit = []): Promise<Drafted> => {
    const proposalId = ids.next('prop-');
    const draft = await withinSight(owner, proposed);
    const { kind, evidence, sourceRunIds, duplicateOf } = draft;
    const text = JSON.stringify(redactValue(draft.artifact));
    const candidate = { proposalId, author: { subject: owner }, text };
    const problems = await installers[kind].check(candidate);
    if (problems.length > 0) return malformed(problems);
    const run = await openManagementRun(
      runtime,
      { workflowId: 'capstan-proposal', subject: owner, inputs: { proposalId } },
      [
        {
          type: 'proposal.created',
          payload: { proposalId, kind, sourceRunIds: [...sourceRunIds], duplicateOf: duplicateOf ?? null },
        },
      ],
    );
    const now = clock.now();
    const row: ProposalRow = {
      proposal_id: proposalId,
      tenant: owner.tenant,
      workspace: owner.workspace ?? null,
      run_id: run.result.runId,
      kind,
      state: 'draft',
      version: 1,
      revision: 1,
      base: await installers[kind].current(candidate),
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
    try {
      await commitAll(store, [
        insertEvidence(ownerOf(owner), evidence.key, proposalId),
        insertProposal(row, settings.proposals.pendingMax),
        insertRevision({ ...row, note: null, at: now }),
        ...run.writes,
        ...telling.created(owner, row),
        ...also,
      ]);
    } catch (error) {
      const broke = error instanceof UnitRefused ? error.broke : '';
      if (broke === 'evidence') return 'known-evidence';
      if (broke === 'pending') return 'too-many-pending';
      throw error;
    }
    for (const tell of run.announce) tell();
    return proposalOf(row);
  };

  /** A proposal names no run that its owner may not see, whoever drafted it. */
  async function withinSight(owner: Subject, draft: Draft): Promise<Draft> {
    const { sourceRunIds, evidence } = draft;
    const named = [...new Set([...sourceRunIds, ...evidence.sources.map(({ runId }) => runId)])];
    if (named.length === 0) return draft;
    const rows = await store.read<{ run_id: string }>(visibleRuns(owner, named));
    const seen = new Set(rows.map(({ run_id }) => run_id));
    return {
      ...draft,
      sourceRunIds: sourceRunIds.filter((runId) => seen.has(runId)),
      evidence: { ...evidence, sources: evidence.sources.filter(({ runId }) => seen.has(runId)) },
    };
  }
}

function factsFor({ tenantName, principal }: Subject, draft: Draft): ProposalFacts {
  const { title, rationale, sourceRunIds, synthesizerModel, duplicateOf, evidence } = draft;
  const { sources, nearest, preview } = redactValue(evidence);
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
  };
}
