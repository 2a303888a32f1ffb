import { isTerminal, statusOf } from '../engine/run/run.ts';
import type { RunStatus } from '../protocol/running/runs.ts';
import { insertEvents, insertFork, insertRun, insertTags } from '../store/log.ts';
import { addNewWork, FIRST_EPOCH, type Lease } from '../store/queue.ts';
import { announce, reactionsTo } from './append.ts';
import { type Change, changeOf } from './change.ts';
import type { CreatedRun } from './creation.ts';
import { forkRowOf, type HeldRun, rowOf } from './run-row.ts';
import type { Runtime } from './runtime.ts';

/** Kind of the work item that stands for executing a run. */
export const RUN_WORK = 'run';

/** A run that exists from the commit of its change on. */
export interface StartedRun {
  readonly runId: string;
  readonly status: RunStatus;
}

/**
 * Who executes a new run: the host that creates it (`owner`, and `adopt` is called after the commit), the next host
 * with room (`queued`), or nobody, because commands alone move it (`undriven`: management runs).
 */
export type Placement =
  | 'queued'
  | 'undriven'
  | { readonly owner: string; readonly adopt: (lease: Lease, held: HeldRun) => void };

/** The one way a run comes into being: its row, first events, tags, work item and what capabilities write with them. */
export function startRun(runtime: Runtime, created: CreatedRun, placement: Placement): Change<StartedRun> {
  const { held, recorded, isInherited = false } = created;
  const { run, identity } = held;
  const { runId, tags = [], fork } = run.facts;
  const { tenant } = identity.subject;
  const owner = typeof placement === 'object' ? placement.owner : undefined;
  const isDriven = placement !== 'undriven' && !isTerminal(run);
  const stored = recorded.map((event) => event.stored);
  const result = { runId, status: statusOf(run) };
  const row = rowOf(held);
  const writes = [
    insertRun(row),
    ...insertEvents(runId, stored),
    runtime.storage.count(tenant, stored, row.facts),
    ...insertTags({ tenant, runId }, tags),
    ...(fork ? [insertFork(tenant, forkRowOf(runId, fork))] : []),
    ...reactionsTo(runtime, held, recorded, { isInherited }),
    ...(isDriven
      ? [addNewWork({ workId: runId, kind: RUN_WORK, tenant, dueAt: owner ? null : runtime.clock.now(), owner })]
      : []),
  ];
  return changeOf(result, writes, {
    announce: [
      () => {
        if (isDriven && typeof placement === 'object') {
          placement.adopt({ workId: runId, owner: placement.owner, epoch: FIRST_EPOCH }, held);
        } else if (isDriven) runtime.hub.wakeWorkers(runId);
        if (isTerminal(run)) runtime.reader.release(held);
        announce(runtime, held, recorded);
      },
    ],
  });
}
