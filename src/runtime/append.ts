import type { Digest } from '../engine/masking/mask.ts';
import { withCause } from '../engine/run/agent-steps.ts';
import { apply } from '../engine/run/fold.ts';
import { isOver, isTerminal, type Run, statusOf } from '../engine/run/run.ts';
import type { NewEvent, RunEvent } from '../protocol/running/events.ts';
import type { RunStatus } from '../protocol/running/runs.ts';
import { freeScope, insertEvents, moveRun as updateRun } from '../store/log.ts';
import { ensureWork, wake } from '../store/queue.ts';
import type { Unit, Write } from '../store/sql.ts';
import { type Recorded, recordEvent } from './recording.ts';
import { type HeldRun, moveOf } from './run-row.ts';
import type { Runtime } from './runtime.ts';

/** Events that are about to be committed, with the run as it is after them. */
export interface Append extends HeldRun {
  readonly events: readonly RunEvent[];
  /** The status that they found; a run that begins had none. */
  readonly before?: RunStatus | undefined;
  /** They happened to another run, which this one copies or repeats: nobody did or is told anything by them. */
  readonly isInherited: boolean;
}

/** What else a capability writes whenever a run moves: deliveries, projections, audit entries. */
export type Reaction = (append: Append) => readonly Write[];

/** Records an event and moves the run on by it: from now on, memory is ahead of the store. */
export function recordNow(held: HeldRun, event: NewEvent, time: number, digest: Digest): Recorded {
  const recorded = recordEvent(held.run, withCause(held.run, event), { sequence: held.run.sequence + 1, time }, digest);
  apply(held.run, recorded.event);
  return recorded;
}

/** Where a run was before it moved. */
export interface Before {
  readonly sequence: number;
  readonly status: RunStatus;
}

export function whereIs(run: Run): Before {
  return { sequence: run.sequence, status: statusOf(run) };
}

/** Everything that is written when a run moves on. */
export function appendWrites(
  runtime: Runtime,
  held: HeldRun,
  recorded: readonly Recorded[],
  before: Before,
  isInherited = false,
): Unit {
  const { run } = held;
  return [
    updateRun(moveOf(run, before.sequence)),
    ...insertEvents(
      run.facts.runId,
      recorded.map(({ stored }) => stored),
    ),
    ...(concernsParent(run, before) ? [wake(run.facts.parent!.runId)] : []),
    ...(isTerminal(run) ? endWrites(held) : []),
    ...cancelledChildren(held, recorded).map((childRunId) => cancelChild(held, childRunId)),
    ...reactionsTo(runtime, held, recorded, { isInherited, before }),
  ];
}

/** A parent wants to know when its child ends, and when it begins or stops to wait for somebody. */
function concernsParent(run: Run, before: Before): boolean {
  const status = statusOf(run);
  if (!run.facts.parent || status === before.status) return false;
  return isTerminal(run) || [status, before.status].some((either) => either.startsWith('waiting-'));
}

/** A run that ended frees the scope it held. */
function endWrites({ run: { facts }, identity }: HeldRun): Write[] {
  return identity.scopeKey ? freeScope(identity.scopeKey, facts.runId) : [];
}

/** Child runs that lose the node which waits for them, unless the definition lets them go on alone. */
function cancelledChildren({ run }: HeldRun, recorded: readonly Recorded[]): string[] {
  return recorded.flatMap(({ event }) => {
    if (event.type !== 'node.cancelled' && event.type !== 'node.failed') return [];
    const planned = run.plan.node(event.payload.nodeId);
    if (!planned || planned.node.config.propagateCancellation === false) return [];
    const { children = [] } = run.nodes[planned.index]!;
    // A node that fails because of its only child fails because that child is over.
    if (event.type === 'node.failed' && children.length === 1) return [];
    return children.filter((child) => !isOver(child)).map(({ runId }) => runId);
  });
}

export const CANCEL_CHILD = 'cancel-child';

function cancelChild({ run, identity }: HeldRun, childRunId: string): Write {
  return ensureWork({
    workId: `${CANCEL_CHILD}:${childRunId}`,
    kind: CANCEL_CHILD,
    tenant: identity.subject.tenant,
    payload: JSON.stringify({ childRunId, parentRunId: run.facts.runId }),
    dueAt: 0,
  });
}

/** What the mounted capabilities write together with these events. */
export function reactionsTo(
  { reactions }: Runtime,
  held: HeldRun,
  recorded: readonly Recorded[],
  { isInherited, before }: { readonly isInherited: boolean; readonly before?: Before },
): Write[] {
  if (recorded.length === 0) return [];
  const append = appendOf(held, recorded, isInherited, before);
  return reactions.flatMap((reaction) => reaction(append));
}

function appendOf(held: HeldRun, recorded: readonly Recorded[], isInherited: boolean, before?: Before): Append {
  return { ...held, events: recorded.map(({ event }) => event), before: before?.status, isInherited };
}

/** Says, here and to other hosts, that a run has moved. */
export function announce({ hub, store }: Runtime, held: HeldRun, recorded: readonly Recorded[], before?: Before): void {
  const { run } = held;
  const { runId, parent } = run.facts;
  hub.tell(
    runId,
    recorded.map(({ stored }) => stored),
  );
  hub.appended(appendOf(held, recorded, false, before));
  const wokenParent = before && concernsParent(run, before) ? parent?.runId : undefined;
  if (wokenParent) hub.callToWork(wokenParent);
  for (const childRunId of cancelledChildren(held, recorded)) hub.callToWork(`${CANCEL_CHILD}:${childRunId}`);
  store.hint([`run:${runId}`, ...(wokenParent ? [`work:${wokenParent}`] : [])]);
}
