import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import type { WorkHandler } from '../../../runtime/executor.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import { type RunStarter, type Start, starterOf, subjectOf, timeText } from '../starter/self-starting.ts';
import { scheduleFrom, timingOfRow } from './document.ts';
import { findSchedule, moveSchedule, type ScheduleRow } from './records.ts';
import { settle } from './rules.ts';
import type { Starter } from './service.ts';

/**
 * Deals with a schedule whose time has come. Its run, its next slot and the work item that waits for it are committed
 * together, and only if nobody else has moved the schedule: a slot gets one run or none, whoever dies when.
 */
export class Firing {
  readonly #host: Host;
  readonly #runs: RunStarter;
  readonly #starters: ReadonlyMap<string, Starter>;

  constructor(host: Host, runs: RunStarter, starters: ReadonlyMap<string, Starter>) {
    this.#host = host;
    this.#runs = runs;
    this.#starters = starters;
  }

  readonly handle: WorkHandler = async ({ work_id: scheduleId, tenant }) => {
    const { runtime, executor } = this.#host;
    const [row] = await runtime.store.read<ScheduleRow>(findSchedule({ tenant }, scheduleId));
    if (!row || row.next_run_at === null) return { writes: [] };
    const now = runtime.clock.now();
    if (now < row.next_run_at) return { writes: [], dueAgainAt: row.next_run_at };
    const { slot, isDue, next } = settle(timingOfRow(row), row.missed, row.next_run_at, now);
    const moved = { ...row, next_run_at: next ?? null, last_slot: slot };
    if (!isDue) return { writes: [moveSchedule({ ...moved, last_missed_at: slot })], dueAgainAt: next };

    const start = await this.#start(row, slot);
    if (isRefusal(start)) {
      const last_error = JSON.stringify({ code: start.refused, message: start.message, at: timeText(now) });
      return { writes: [moveSchedule({ ...moved, last_error })], dueAgainAt: next };
    }
    const { runId, createdAt } = start.created.held.run.facts;
    const started = { ...moved, last_run_at: createdAt, last_run_id: runId, last_error: null };
    const { writes, committed } = executor.birth(start.created);
    return { writes: [moveSchedule(started), ...(start.also ?? []), ...writes], dueAgainAt: next, committed };
  };

  #start(row: ScheduleRow, slot: number): Promise<Start | Refusal> {
    const starter = starterOf(this.#starters, row);
    return starter ? starter(scheduleFrom(row), slot, subjectOf(row)) : this.#startPlain(row, slot);
  }

  #startPlain(row: ScheduleRow, slot: number): Promise<Start | Refusal> {
    return this.#runs.start({
      subject: subjectOf(row),
      workflowId: row.workflow_id,
      inputs: row.inputs,
      tags: [`schedule:${row.schedule_id}`],
      metadata: { scheduleId: row.schedule_id, scheduledFor: timeText(slot) },
    });
  }
}
