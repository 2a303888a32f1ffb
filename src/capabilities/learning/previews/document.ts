import { defined } from '../../../protocol/format/json.ts';
import type { PreviewPair, ProposalPreview } from '../../../protocol/learning/previews.ts';
import { timestamp, timestampIfSet } from '../../timestamps.ts';
import type { PreviewRow } from './records.ts';
import { bodyOf, type StoredPair } from './stored-preview.ts';
import { changeOfPair, summaryOf } from './summary.ts';

/** A preview as callers see it. */
export function previewOf(row: PreviewRow): ProposalPreview {
  const { options, pairs, calendar } = bodyOf(row);
  return {
    id: row.preview_id,
    proposalId: row.proposal_id,
    kind: row.kind,
    artifactHash: row.sha256,
    state: row.state,
    budgetUsd: options.budgetUsd,
    createdAt: timestamp(row.created_at),
    ...defined({ endedAt: timestampIfSet(row.ended_at) }),
    summary: summaryOf(row.kind, pairs, calendar),
    pairs: pairs.map(pairOf),
    ...defined({ calendar }),
  };
}

function pairOf(pair: StoredPair): PreviewPair {
  const { sourceRunId, runId, state, reason, before, after, costs } = pair;
  return {
    sourceRunId,
    state,
    ...defined({
      runId,
      reason,
      change: changeOfPair(pair),
      before: before && { ...before, ...defined({ costUsd: costs?.before }) },
      after: after && { ...after, ...defined({ costUsd: costs?.after }) },
      diff: runId === undefined ? undefined : `/v1/runs/${sourceRunId}:diff?against=${runId}`,
    }),
  };
}
