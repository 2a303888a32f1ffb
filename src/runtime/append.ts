import type { Digest } from '../engine/masking/mask.ts';
import { withCausationId } from '../engine/run/causation.ts';
import { apply } from '../engine/run/fold.ts';
import { isOver, isTerminal, type Run, statusOf } from '../engine/run/run.ts';
import type { NewEvent, RunEvent } from '../protocol/running/events.ts';
import type { RunStatus } from '../protocol/running/runs.ts';
import { advanceRun, insertEvents, releaseScope } from '../store/log.ts';
import { ensureWork, wake } from '../store/queue.ts';
import type { Unit, Write } from '../store/sql.ts';
import type { Append } from './reaction.ts';
import { countStored, type Recorded, recordEvent } from './recording.ts';
import { type HeldRun, moveOf } from './run-row.ts';
import type { Runtime } from './runtime.ts';

/** Records an event and applies it to the run in memory, which is ahead of the store until the event is committed. */
export function recordAndApply(held: HeldRun, event: NewEvent, time: number, digest: Digest): Recorded {
  const recorded = recordEvent(
    held.run,
    withCausationId(held.run, event),
    { sequence: held.run.sequence + 1, time },
    digest,
  );
  // As the timestamp has it: in whole milliseconds.
  apply(held.run, recorded.event, Math.trunc(time));
  countStored(held.run, recorded.stored);
  return recorded;
}

/** How far a run had come before an append: the append expects this sequence in the store. */
export interface RunPosition {
  readonly sequence: number;
  readonly status: RunStatus;
}

/** The current position of a run; taken before events are applied to it. */
export function positionOf(run: Run): RunPosition {
  return { sequence: run.sequence, status: statusOf(run) };
}

/** The writes of one append: the run's row, its events, wake-ups of other runs and the reactions of capabilities. */
export function appendWrites(
  runtime: Runtime,
  held: HeldRun,
  recorded: readonly Recorded[],
  before: RunPosition,
  isInherited = false,
): Unit {
  const { run } = held;
  return [
    advanceRun(moveOf(run, before.sequence)),
    ...insertEvents(
      run.facts.runId,
      recorded.map(({ stored }) => stored),
    ),
    runtime.storage.count(
      held.identity.subject.tenant,
      recorded.map(({ stored }) => stored),
    ),
    ...(concernsParent(run, before) ? [wake(run.facts.parent!.runId)] : []),
    ...(isTerminal(run) ? endWrites(held) : []),
    ...cancelledChildren(held, recorded).map((childRunId) => cancelChild(held, childRunId)),
    ...reactionsTo(runtime, held, recorded, { isInherited, before }),
  ];
}

/** A parent is woken when its child ends, and when the child starts or stops waiting, which changes its own status. */
function concernsParent(run: Run, before: RunPosition): boolean {
  const status = statusOf(run);
  if (!run.facts.parent || status === before.status) return false;
  return isTerminal(run) || [status, before.status].some((either) => either.startsWith('waiting-'));
}

/** A run that has ended releases its scope, so that an exclusive run can take it. */
function endWrites({ run: { facts }, identity }: HeldRun): Write[] {
  return identity.scopeKey ? releaseScope(identity.scopeKey, facts.runId) : [];
}

/** Children to cancel because their node failed or was cancelled, unless it has `propagateCancellation: false`. */
function cancelledChildren({ run }: HeldRun, recorded: readonly Recorded[]): string[] {
  return recorded.flatMap(({ event }) => {
    if (event.type === 'core.workflowChain.event') return lateWorker(run, event);
    if (event.type !== 'node.cancelled' && event.type !== 'node.failed') return [];
    const planned = run.plan.node(event.payload.nodeId);
    if (!planned || planned.node.config.propagateCancellation === false) return [];
    const { children = [] } = run.nodes[planned.index]!;
    // A node with one child fails after that child has ended, so there is nothing to cancel.
    if (event.type === 'node.failed' && children.length === 1) return [];
    return children.filter((child) => !isOver(child)).map(({ runId }) => runId);
  });
}

/** A worker that lost a join. In a replay, the worker is that of the source. */
function lateWorker({ facts, isDetached, plan, nodes }: Run, event: RunEvent<'core.workflowChain.event'>): string[] {
  const { phase, childRunId } = event.payload;
  if (phase !== 'child.cancelled' || (facts.fork?.mode === 'replay' && !isDetached)) return [];
  const { children = [] } = nodes[plan.node(event.nodeId ?? '')?.index ?? -1] ?? {};
  return children.filter((child) => child.runId === childRunId && !isOver(child)).map(({ runId }) => runId);
}

/** Kind of the work item that cancels a child run, and prefix of its id. */
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

/** Collects the writes of all mounted capabilities for one append. */
export function reactionsTo(
  { reactions }: Runtime,
  held: HeldRun,
  recorded: readonly Recorded[],
  { isInherited, before }: { readonly isInherited: boolean; readonly before?: RunPosition },
): Write[] {
  if (recorded.length === 0) return [];
  const append = appendOf(held, recorded, isInherited, before);
  const writes: Write[] = [];
  for (const reaction of reactions) {
    for (const write of reaction(append)) writes.push(write);
  }
  return writes;
}

function appendOf(held: HeldRun, recorded: readonly Recorded[], isInherited: boolean, before?: RunPosition): Append {
  return { ...held, events: recorded.map(({ event }) => event), before: before?.status, isInherited };
}

/** Notifies subscribers and workers, on this host and on others, of an append that was committed. */
export function announce(
  { hub, store }: Runtime,
  held: HeldRun,
  recorded: readonly Recorded[],
  before?: RunPosition,
): void {
  const { run } = held;
  const { runId, parent } = run.facts;
  hub.publish(
    runId,
    recorded.map(({ stored }) => stored),
  );
  hub.publishAppend(appendOf(held, recorded, false, before));
  const wokenParent = before && concernsParent(run, before) ? parent?.runId : undefined;
  if (wokenParent) hub.wakeWorkers(wokenParent);
  for (const childRunId of cancelledChildren(held, recorded)) hub.wakeWorkers(`${CANCEL_CHILD}:${childRunId}`);
  store.hint([`run:${runId}`, ...(wokenParent ? [`work:${wokenParent}`] : [])]);
}
