import { isRefusal } from '../../../protocol/errors.ts';
import type { CommitmentFired } from '../../../protocol/starting/commitment-events.ts';
import type { Commitment, CommitmentRequest, CommitmentState } from '../../../protocol/starting/commitments.ts';
import { recordAndApply } from '../../../runtime/append.ts';
import type { CreatedRun } from '../../../runtime/creation.ts';
import type { Clock } from '../../../system/clock.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactText } from '../../../system/redaction.ts';
import { subjectOf } from '../../subject-columns.ts';
import { refuseSecrets } from '../../trust/secrets.ts';
import type { Evaluation, Settlement, StarterFamily, StartOutcome } from '../starter/family.ts';
import type { Observer } from '../starter/observing.ts';
import type { StarterState } from '../starter/rules.ts';
import { inputsOf, type PlannedRun } from '../starter/run-creation.ts';
import { commitmentFrom, conditionOf, specOf } from './document.ts';
import type { CommitmentFilter } from './door.ts';
import { COMMITMENTS, type CommitmentRow } from './records.ts';
import { checkCommitment, holds, nextCheck, retryAt } from './rules.ts';

/** The kind of the work item that a commitment has as long as it is armed. */
export const COMMITMENT_WORK = 'commitment';
const COMMITMENTS_MAX = 10_000;

/** How the column `state` and documents name the states of starters. */
const STATE_NAMES: Readonly<Record<StarterState, CommitmentState>> = {
  armed: 'armed',
  disabled: 'off',
  finished: 'fired',
  failed: 'failed',
};
const STATES = new Map(Object.entries(STATE_NAMES).map(([state, name]) => [name, state as StarterState]));

/** Starters whose condition is a promise: a time, or a predicate that becomes true. */
export function commitmentFamily(
  clock: Clock,
  observer: Observer,
): StarterFamily<CommitmentRow, CommitmentRequest, Commitment, CommitmentFilter> {
  return {
    kind: COMMITMENT_WORK,
    idPrefix: 'cmt-',
    limit: COMMITMENTS_MAX,
    table: COMMITMENTS,
    stateNames: STATE_NAMES,
    auditActions: {
      create: 'commitment.create',
      remove: 'commitment.remove',
      enable: 'commitment.resume',
      disable: 'commitment.pause',
    },
    lentColumns: { holds: 0 },

    check: (request, { now }) => {
      const { inputs: _inputs, intention: _intention, ...spec } = request;
      return checkCommitment(request, now) ?? refuseSecrets(spec);
    },
    newRow: ({ inputs: _inputs, intention, ...spec }, { id, now, columns }) => ({
      ...columns,
      commitment_id: id,
      spec: JSON.stringify({ ...spec, ...(intention === undefined ? {} : { intention: redactText(intention) }) }),
      state: 'armed',
      next_check_at: spec.at === undefined ? now : Date.parse(spec.at),
      met_at: null,
      holds: 0,
      last_error: null,
      fired_at: null,
      run_id: null,
    }),
    document: commitmentFrom,
    listColumns: ({ state, before }) => ({ state, before }),
    auditDetails: (request) => ({ condition: conditionOf(request), workflowId: request.workflowId }),

    idOf: ({ commitment_id }) => commitment_id,
    status: ({ state, next_check_at: dueAt }) => ({ state: STATES.get(state)!, dueAt }),
    statusColumns: ({ state, dueAt }) => ({ state: STATE_NAMES[state], next_check_at: dueAt }),
    firstDue,

    evaluate: async (row) => {
      const isMet = await isConditionMet(observer, row);
      const now = clock.now();
      if (isMet === true && row.holds === 0) return fulfil(row, now);
      return { settle: () => keepWaiting(row, isMet, now) };
    },
    plannedRun: async (row) => plannedRun(row),
    recordStart,
  };
}

/** A condition that was met stays so until its run could be started. A text says why it cannot be evaluated. */
async function isConditionMet(observer: Observer, row: CommitmentRow): Promise<boolean | string> {
  const { predicate } = specOf(row);
  if (!predicate || row.met_at !== null) return true;
  const result = await observer.observe(subjectOf(row), predicate.observe);
  return 'observed' in result ? holds(predicate.when, result.observed) : result.error;
}

function keepWaiting(row: CommitmentRow, isMet: boolean | string, now: number): Settlement<CommitmentRow> {
  const columns = typeof isMet === 'string' ? { last_error: isMet } : { last_error: null, holds: Number(isMet) };
  return { columns, next: now + specOf(row).predicate!.everySec * 1_000 };
}

function fulfil(row: CommitmentRow, now: number): Evaluation<CommitmentRow> {
  return { occasion: { at: now }, settle: (outcome) => settle(row, outcome, now) };
}

function settle(row: CommitmentRow, outcome: StartOutcome, now: number): Settlement<CommitmentRow> {
  if (isRefusal(outcome)) {
    const met_at = row.met_at ?? now;
    // A starter with an owner is given up by its owner alone.
    const next = retryAt(row.belongs_to === null ? met_at : now, now) ?? 'fail';
    return { columns: { met_at, last_error: outcome.message }, next };
  }
  const spec = specOf(row);
  const columns = {
    fired_at: now,
    run_id: outcome!.runId,
    met_at: null,
    holds: spec.predicate ? 1 : 0,
    last_error: null,
  };
  return { columns, next: nextCheck(spec, now) ?? 'finish' };
}

/** A time that has had its run is not due again: a commitment that repeats waits for the next one. */
function firstDue(row: CommitmentRow, now: number): number {
  const spec = specOf(row);
  const first = Math.max(now, Date.parse(spec.at ?? '') || now);
  const hasFired = row.fired_at !== null && row.met_at === null;
  return hasFired && spec.everySec !== undefined ? (nextCheck(spec, now) ?? first) : first;
}

function plannedRun(row: CommitmentRow): PlannedRun {
  const { memoryRef, memoryId = null, intention = null, workflowId } = specOf(row);
  const { commitment_id: commitmentId } = row;
  return {
    workflowId,
    inputs: { ...inputsOf(row), commitment: { id: commitmentId, memoryRef, memoryId, intention } },
    tags: [`commitment:${commitmentId}`],
    metadata: { commitmentId },
  };
}

/** The log of the run names the commitment that it fulfils. */
function recordStart(row: CommitmentRow, { held, recorded, ...rest }: CreatedRun): CreatedRun {
  const { runId, createdAt } = held.run.facts;
  const spec = specOf(row);
  const { memoryRef, memoryId } = spec;
  const payload: CommitmentFired = {
    commitmentId: row.commitment_id,
    memoryRef,
    condition: conditionOf(spec),
    ...(memoryId === undefined ? {} : { memoryId }),
    enqueuedRunId: runId,
  };
  const fired = recordAndApply(held, { type: 'commitment.fired', payload }, createdAt, sha256Hex);
  return { held, recorded: [...recorded, fired], ...rest };
}
