import { statusOf } from '../../../engine/run/run.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { ForkMode } from '../../../protocol/running/forks.ts';
import { isManagement } from '../../../protocol/running/management.ts';
import type { RunStatus } from '../../../protocol/running/runs.ts';
import { createFork, type Overlay } from '../../../runtime/fork/create.ts';
import type { PinnedPlan } from '../../../runtime/plans.ts';
import { factsOf } from '../../../runtime/run-row.ts';
import type { RunRow } from '../../../store/log.ts';
import type { Unit } from '../../../store/sql.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Retention } from '../../operations/retention/door.ts';
import type { Caller } from '../../request.ts';
import type { AuditService } from '../../trust/audit/service.ts';
import type { Runs } from '../runs/door.ts';

export interface Forking {
  readonly mode: ForkMode;
  readonly fromSeq: number;
  readonly overlay: Overlay & { readonly workflowVersion?: number };
}

export interface Forked {
  readonly runId: string;
  readonly status: RunStatus;
}

export type ReplayService = ReturnType<typeof replayService>;

interface Uses {
  readonly runs: Pick<Runs, 'check'>;
  readonly retention: Pick<Retention, 'expiry'>;
  readonly audit: Pick<AuditService, 'record'>;
}

export function replayService({ runtime, executor }: Host, { audit, runs, retention }: Uses) {
  return {
    /** Commits the fork with its history and its work item, then drives it. */
    async fork(
      caller: Caller,
      sourceRunId: string,
      { mode, fromSeq, overlay }: Forking,
      also: (forked: Forked) => Unit,
    ): Promise<Forked | Refusal> {
      const source = await runtime.reader.row(caller.subject, sourceRunId);
      if (!source) return gone(caller, sourceRunId, fromSeq);
      if (isManagement(source.workflow_id)) return refuse('conflict', 'What the host runs for itself has no forks.');
      if (fromSeq > source.sequence + 1) return beyondTheEnd(source);
      const workflow = await workflowOf(source, overlay.workflowVersion);
      if (isRefusal(workflow)) return workflow;
      const refusal = mode === 'branch' ? checkOverlay(caller, source, workflow, overlay) : undefined;
      if (refusal) return refusal;
      const created = await createFork(runtime, { source, workflow, fromSeq, mode, overlay });
      if ('unknownNode' in created) return unknownNode(created.unknownNode);
      const { run } = created.held;
      const forked: Forked = { runId: run.facts.runId, status: statusOf(run) };
      await executor.launch(created, [...recordFork(caller, source, forked, { mode, fromSeq }), ...also(forked)]);
      return forked;
    },
  };

  /** A run that is not kept any more can be told from one that never was. */
  async function gone({ subject }: Caller, sourceRunId: string, fromSeq: number): Promise<Refusal> {
    const expired = await retention.expiry(subject, sourceRunId);
    return expired ? { ...expired, details: { ...expired.details, sourceRunId, fromSeq } } : NOT_FOUND;
  }

  function recordFork(
    { subject: { tenant, workspace, principal } }: Caller,
    { run_id: target }: RunRow,
    { runId }: Forked,
    { mode, fromSeq }: Pick<Forking, 'mode' | 'fromSeq'>,
  ): Unit {
    const details = { runId, mode, fromSeq };
    return audit.record({ tenant, workspace, actor: principal, action: 'run.fork', target, details });
  }

  async function workflowOf(
    { workflow_owner: owner, workflow_id, workflow_version }: RunRow,
    version: number | undefined,
  ): Promise<PinnedPlan | Refusal> {
    const plan = await runtime.plans.find(owner, workflow_id, version ?? workflow_version);
    if (plan) return { owner, plan };
    const field = 'runOptionsOverlay.workflowVersion';
    return { ...refuse('validation_error', 'The workflow has no such version.', { field }), status: 422 };
  }

  /** What is given otherwise must be something that the run could have been created with. */
  function checkOverlay(
    caller: Caller,
    source: RunRow,
    { plan }: PinnedPlan,
    overlay: Forking['overlay'],
  ): Refusal | undefined {
    const facts = factsOf(source);
    return runs.check(
      caller,
      {
        inputs: overlay.inputs ?? facts.inputs,
        configurable: overlay.configurable ?? facts.configurable,
        metadata: overlay.metadata,
      },
      plan,
    );
  }
}

function beyondTheEnd({ sequence }: RunRow): Refusal {
  const details = { field: 'fromSeq', lastSequence: sequence };
  return { ...refuse('validation_error', 'The log of the run does not go that far.', details), status: 422 };
}

function unknownNode(nodeId: string): Refusal {
  const message = `The history speaks of the node ${JSON.stringify(nodeId)}, which that version does not have. Branch off earlier.`;
  const field = 'runOptionsOverlay.workflowVersion';
  return { ...refuse('validation_error', message, { field, nodeId }), status: 422 };
}
