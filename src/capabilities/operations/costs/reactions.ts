import { isFromRecord } from '../../../engine/run/run.ts';
import type { Reaction } from '../../../runtime/reaction.ts';
import { countCall } from './records.ts';

/** Counts what model calls used, in the unit that records them. What a fork or a replay takes over was paid for by its source. */
export const countCosts: Reaction = ({ run: { facts }, identity: { subject }, events, isInherited }) => {
  // All events of a replay are inherited, those of a preview too, although it asks models itself.
  if (isFromRecord(facts.fork) || (isInherited && facts.fork?.preview === undefined)) return [];
  const { runId, workflowId } = facts;
  const { tenant, workspace } = subject;
  return events.flatMap((event) =>
    event.type === 'provider.usage' ? countCall({ tenant, workspace, runId, workflowId }, event.payload) : [],
  );
};
