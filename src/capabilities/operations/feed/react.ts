import { statusOf } from '../../../engine/run/run.ts';
import { isManagement } from '../../../protocol/running/management.ts';
import type { Append } from '../../../runtime/append.ts';
import type { FeedFact } from './service.ts';

/** What of a run's moves a dashboard wants to know. */
export function factsOf(append: Append): FeedFact[] {
  const isOurs = isManagement(append.run.facts.workflowId);
  return [...(isOurs ? [] : runFacts(append)), ...(movesInbox(append) ? [INBOX_CHANGED] : [])];
}

export const INBOX_CHANGED: FeedFact = { event: 'inbox.changed', data: {} };

function runFacts({ run, before }: Append): FeedFact[] {
  const { runId, workflowId, parent } = run.facts;
  const status = statusOf(run);
  if (status === before) return [];
  const data = { runId, workflowId, status };
  if (before !== undefined) {
    return [{ event: 'run.status', data: { ...data, ...(run.error ? { errorCode: run.error.code } : {}) } }];
  }
  return [{ event: 'run.created', data: { ...data, ...(parent ? { parentRunId: parent.runId } : {}) } }];
}

/** Questions are asked, answered, or end with what asked them. */
function movesInbox({ run, before, events }: Append): boolean {
  if (events.some(({ type }) => type === 'interrupt.requested' || type === 'interrupt.resolved')) return true;
  return statusOf(run) !== before && before?.startsWith('waiting-') === true;
}
