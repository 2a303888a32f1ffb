import { isTerminal, statusOf } from '../../../engine/run/run.ts';
import { isManagement } from '../../../protocol/running/management.ts';
import type { Append } from '../../../runtime/reaction.ts';
import type { FeedFact } from './door.ts';

/** The facts that an append publishes. The status of management runs is internal to the host. */
export function factsOf(append: Append): FeedFact[] {
  const isInternal = isManagement(append.run.facts.workflowId);
  return [...(isInternal ? [] : runFacts(append)), ...(changesInbox(append) ? [INBOX_CHANGED] : [])];
}

const INBOX_CHANGED: FeedFact = { event: 'inbox.changed', data: {} };

function runFacts({ run, before }: Append): FeedFact[] {
  const { runId, workflowId, parent } = run.facts;
  const status = statusOf(run);
  if (status === before) return [];
  const statusData = { runId, workflowId, status, ...(run.error ? { errorCode: run.error.code } : {}) };
  const statusChanged: FeedFact[] = [{ event: 'run.status', data: statusData }];
  if (before !== undefined) return statusChanged;
  // A run that ended in its first steps is stored once. Subscribers still get its creation, then its end.
  const created = { runId, workflowId, status: isTerminal(run) ? 'running' : status };
  const data = { ...created, ...(parent ? { parentRunId: parent.runId } : {}) };
  return [{ event: 'run.created', data }, ...(isTerminal(run) ? statusChanged : [])];
}

/** Whether an interrupt was requested or resolved, or ended because its run did. */
function changesInbox({ run, before, events }: Append): boolean {
  if (events.some(({ type }) => type === 'interrupt.requested' || type === 'interrupt.resolved')) return true;
  return statusOf(run) !== before && before?.startsWith('waiting-') === true;
}
