import type { RunEvent } from '../../../protocol/running/events.ts';
import type { Reaction } from '../../../runtime/reaction.ts';
import { markRun } from './records.ts';

/** Marks runs that needed a person: somebody answered one of their interrupts. */
export const noteInterventions: Reaction = ({ run: { facts }, identity: { subject }, events, isInherited }) => {
  if (isInherited || !events.some(isIntervention)) return [];
  const { tenant, workspace = null } = subject;
  const place = { tenant, workspace, run_id: facts.runId, workflow_id: facts.workflowId };
  return [markRun(place, { intervened: true })];
};

/** External events are delivered by programs, and a timeout is nobody's answer. */
function isIntervention(event: RunEvent): boolean {
  if (event.type !== 'interrupt.resolved') return false;
  return event.payload.resolvedBy !== undefined && event.payload.kind !== 'external-event';
}
