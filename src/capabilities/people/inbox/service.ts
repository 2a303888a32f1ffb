import type { Proposals } from '../../learning/proposals/door.ts';
import type { Caller } from '../../request.ts';
import type { FeedbackService } from '../feedback/service.ts';
import type { InterruptService } from '../interrupts/service.ts';
import type { InboxEntry, InboxPlace, InboxSource } from './door.ts';

export type { InboxEntry, InboxPlace, InboxSource } from './door.ts';

export function placeOf({ createdAt, id, runId = '' }: InboxEntry): InboxPlace {
  return { at: createdAt, id, runId };
}

export type InboxService = ReturnType<typeof inboxService>;

export function inboxService(sources: readonly InboxSource[]) {
  return {
    async list(caller: Caller, before: InboxPlace | undefined, limit: number): Promise<InboxEntry[]> {
      const parts = await Promise.all(sources.map((source) => source(caller, before, limit)));
      return parts.flat().sort(newestFirst).slice(0, limit);
    },
  };
}

function newestFirst(one: InboxEntry, other: InboxEntry): number {
  const [a, b] = [placeOf(one), placeOf(other)];
  return b.at - a.at || descending(a.id, b.id) || descending(a.runId, b.runId);
}

function descending(a: string, b: string): number {
  return Number(a < b) - Number(a > b);
}

/** Runs that somebody flagged, rated low or corrected. */
export function reviewSource(feedback: FeedbackService): InboxSource {
  return async ({ subject }, before, limit) => {
    const rows = await feedback.reviews(subject, before, limit);
    return rows.map((row) => ({
      kind: 'feedback',
      id: row.annotation_id,
      title: `${row.reason}: ${row.workflow_id}`,
      createdAt: row.created_at,
      link: `/console/runs/${row.run_id}`,
      runId: row.run_id,
      ...(row.node_id === null ? {} : { nodeId: row.node_id }),
      requiredScope: 'feedback:write',
    }));
  };
}

/** Open interrupts and gates; those of proposals are dealt with where the proposal is. */
export function interruptSource(
  interrupts: Pick<InterruptService, 'list'>,
  proposals: Pick<Proposals, 'ofRuns'>,
): InboxSource {
  return async ({ subject }, before, limit) => {
    const rows = await interrupts.list(subject, before, limit);
    const bound = rows.filter(({ artifact_hash }) => artifact_hash !== null).map(({ run_id }) => run_id);
    const proposalOf = await proposals.ofRuns(subject, bound);
    return rows.map((row) => ({
      kind: row.is_gate === 1 ? 'gate' : 'interrupt',
      id: row.interrupt_id,
      title: row.title,
      createdAt: row.requested_at,
      ...dealtWithAt(row.run_id, proposalOf.get(row.run_id)),
      runId: row.run_id,
      nodeId: row.node_id,
      ...(row.artifact_hash === null ? {} : { artifactHash: row.artifact_hash }),
      ...(row.required_scope === null ? {} : { requiredScope: row.required_scope }),
    }));
  };
}

function dealtWithAt(runId: string, proposalId: string | undefined): Pick<InboxEntry, 'link' | 'proposalId'> {
  if (proposalId === undefined) return { link: `/console/runs/${runId}` };
  return { link: `/console/proposals/${proposalId}`, proposalId };
}
