import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { CommitmentFired } from '../../../protocol/starting/commitment-events.ts';
import { MAX_RUNTIME_MS } from '../../../protocol/starting/heartbeats.ts';
import { recordNow } from '../../../runtime/append.ts';
import type { CreatedRun } from '../../../runtime/creation.ts';
import type { WorkHandler, WorkResult } from '../../../runtime/executor.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { HeartbeatService } from '../heartbeats/service.ts';
import { type RunStarter, type Start, starterOf, subjectOf } from '../starter/self-starting.ts';
import { commitmentFrom, conditionOf, specOf } from './document.ts';
import { type CommitmentRow, findCommitment, moveCommitment } from './records.ts';
import { holds, nextLook, retryAt } from './rules.ts';
import type { CommitmentStarter } from './service.ts';

/**
 * Keeps commitments whose condition is met. The run, what its log says of the commitment, and that it was kept are
 * committed together, and only if nobody else has moved it: it is kept once or not at all, whoever dies when.
 */
export class Keeping {
  readonly #host: Host;
  readonly #runs: RunStarter;
  readonly #heartbeat: Pick<HeartbeatService, 'observer'>;
  readonly #starters: ReadonlyMap<string, CommitmentStarter>;

  constructor(
    host: Host,
    parts: {
      runs: RunStarter;
      heartbeat: Pick<HeartbeatService, 'observer'>;
      starters: ReadonlyMap<string, CommitmentStarter>;
    },
  ) {
    this.#host = host;
    this.#runs = parts.runs;
    this.#heartbeat = parts.heartbeat;
    this.#starters = parts.starters;
  }

  readonly handle: WorkHandler = async ({ work_id: commitmentId, tenant }) => {
    const { store, clock } = this.#host.runtime;
    const [row] = await store.read<CommitmentRow>(findCommitment({ tenant }, commitmentId));
    if (row?.state !== 'armed') return { writes: [] };
    const { next_check_at: due } = row;
    if (due !== null && clock.now() < due) return { writes: [], dueAgainAt: due };
    const isMet = await this.#isMet(row);
    if (typeof isMet === 'string') return this.#wait(row, { last_error: isMet });
    const isNew = isMet && row.holds === 0;
    return isNew ? this.#keep(row) : this.#wait(row, { last_error: null, holds: Number(isMet) });
  };

  /** A condition that was met stays so until it could be kept. A text says why nobody can tell. */
  async #isMet(row: CommitmentRow): Promise<boolean | string> {
    const { predicate } = specOf(row);
    if (!predicate || row.met_at !== null) return true;
    const look = await this.#heartbeat.observer.look(subjectOf(row), predicate.observe, MAX_RUNTIME_MS);
    return 'observed' in look ? holds(predicate.when, look.observed) : look.error;
  }

  #wait(row: CommitmentRow, seen: Pick<CommitmentRow, 'last_error'> & { holds?: number }): WorkResult {
    const next_check_at = this.#host.runtime.clock.now() + specOf(row).predicate!.everySec * 1_000;
    return { writes: [moveCommitment({ ...row, ...seen, next_check_at })], dueAgainAt: next_check_at };
  }

  async #keep(row: CommitmentRow): Promise<WorkResult> {
    const { runtime, executor } = this.#host;
    const now = runtime.clock.now();
    const start = await this.#start(row);
    if (isRefusal(start)) return this.#tryAgain(row, start, now);
    const created = this.#told(row, start.created);
    const { runId } = created.held.run.facts;
    const { writes, committed } = executor.birth(created);
    const spec = specOf(row);
    const next = nextLook(spec, now);
    const kept: CommitmentRow = {
      ...row,
      state: next === undefined ? 'fired' : 'armed',
      fired_at: now,
      run_id: runId,
      next_check_at: next ?? null,
      met_at: null,
      holds: spec.predicate ? 1 : 0,
      last_error: null,
    };
    return { writes: [moveCommitment(kept), ...(start.also ?? []), ...writes], dueAgainAt: next, committed };
  }

  #tryAgain(row: CommitmentRow, { message: last_error }: Refusal, now: number): WorkResult {
    const met_at = row.met_at ?? now;
    // What belongs to something is given up by that alone.
    const next_check_at = retryAt(row.belongs_to === null ? met_at : now, now);
    const state = next_check_at === undefined ? 'failed' : 'armed';
    const moved = { ...row, state, met_at, next_check_at: next_check_at ?? null, last_error } as const;
    return { writes: [moveCommitment(moved)], dueAgainAt: next_check_at };
  }

  #start(row: CommitmentRow): Promise<Start | Refusal> {
    const starter = starterOf(this.#starters, row);
    if (starter) return starter(commitmentFrom(row), subjectOf(row));
    const spec = specOf(row);
    const { memoryRef, memoryId = null, intention = null, workflowId } = spec;
    const { commitment_id: commitmentId } = row;
    const commitment = { id: commitmentId, memoryRef, memoryId, intention };
    const inputs: JsonObject = { ...(row.inputs === null ? {} : JSON.parse(row.inputs)), commitment };
    return this.#runs.start({
      subject: subjectOf(row),
      workflowId,
      inputs: JSON.stringify(inputs),
      tags: [`commitment:${commitmentId}`],
      metadata: { commitmentId },
    });
  }

  /** The log of the run says from the start what it is for. */
  #told(row: CommitmentRow, { held, recorded, ...rest }: CreatedRun): CreatedRun {
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
    const fired = recordNow(held, { type: 'commitment.fired', payload }, createdAt, sha256Hex);
    return { held, recorded: [...recorded, fired], ...rest };
  }
}
