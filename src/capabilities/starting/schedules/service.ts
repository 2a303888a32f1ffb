import type { Plan } from '../../../engine/definition/plan.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { canonicalJson, type JsonObject } from '../../../protocol/format/json.ts';
import type { Schedule, ScheduleRequest } from '../../../protocol/starting/schedules.ts';
import { commitAll, commitUnless } from '../../../runtime/command.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import { addWork, dropWork, ensureWork, wake } from '../../../store/queue.ts';
import type { Unit, Write } from '../../../store/sql.ts';
import type { Also, LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import type { Runs } from '../../running/runs/door.ts';
import { type AuditService, recordBy } from '../../trust/audit/service.ts';
import {
  type Author,
  type BelongsTo,
  changeOf,
  type InputColumns,
  ownerText,
  RunStarter,
  readFree,
  type Start,
  subjectColumns,
  subjectOf,
  timeText,
} from '../starter/self-starting.ts';
import { scheduleFrom, timingOfRow } from './document.ts';
import { Firing } from './fire.ts';
import {
  deleteSchedule,
  findSchedule,
  insertSchedule,
  lendSchedule,
  listSchedules,
  rewriteSchedule,
  type ScheduleFilter,
  type ScheduleRow,
  schedulesOf,
  takeBackSchedule,
  type WrittenColumns,
} from './records.ts';
import { DEFAULT_MISSED, DEFAULT_TIMEZONE, firstSlot, settle, timingOf } from './rules.ts';
import type { Timing } from './slots.ts';

export type { Author, BelongsTo, Start } from '../starter/self-starting.ts';
export { triggersOf } from './rules.ts';
export { isTimeZone, nextSlot, offsetAt } from './slots.ts';

/** The kind of work item that a schedule's next slot is. */
export const SCHEDULE = 'schedule';
const SCHEDULES_MAX = 10_000;
export const TOO_MANY = refuse('conflict', `A tenant may have ${SCHEDULES_MAX} schedules.`, { limit: SCHEDULES_MAX });

/** Starts the runs of schedules that belong to something, in the place of who would start them otherwise. */
export type Starter = (schedule: Schedule, slot: number, subject: Subject) => Promise<Start | Refusal>;

/** A schedule that is not there yet: it is once its writes are committed. */
export interface MadeSchedule {
  readonly schedule: Schedule;
  readonly writes: Unit;
}

/** What the schedules of a workflow will be. */
export interface Accord {
  readonly schedules: readonly Schedule[];
  readonly writes: Unit;
}

export type ScheduleService = ReturnType<typeof scheduleService>;

export function scheduleService(
  host: Host,
  { audit, runs }: { readonly audit: Pick<AuditService, 'record'>; readonly runs: Pick<Runs, 'check'> },
) {
  const { store, clock, ids, hub } = host.runtime;
  const starters = new Map<string, Starter>();
  const starter = new RunStarter(host.runtime, runs);

  return {
    settle,
    firing: new Firing(host, starter, starters),

    /** Who starts the runs of schedules that belong to a thing of this kind. */
    startWith(kind: string, starter: Starter): void {
      starters.set(kind, starter);
    },

    async create(caller: Caller, request: ScheduleRequest, also: Also<Schedule>): Promise<Schedule | Refusal> {
      const made = await make(caller, request);
      if (isRefusal(made)) return made;
      const { schedule, writes } = made;
      if (!(await commitUnless('schedules', store, [...writes, ...also(schedule)]))) return TOO_MANY;
      announce(schedule);
      return schedule;
    },

    make,
    announce,

    async find({ subject }: Caller, scheduleId: string): Promise<Schedule | Refusal> {
      const [row] = await store.read<ScheduleRow>(findSchedule(subject, scheduleId));
      return row ? scheduleFrom(row) : NOT_FOUND;
    },

    async list({ subject }: Author, filter: ScheduleFilter, limit: number): Promise<Schedule[]> {
      return (await store.read<ScheduleRow>(listSchedules(subject, filter, limit))).map(scheduleFrom);
    },

    /** Takes effect at once. From now on its runs are those of whoever replaced it. */
    async replace(
      { subject }: Caller,
      scheduleId: string,
      request: ScheduleRequest,
      also: Also<Schedule>,
    ): Promise<Schedule | Refusal> {
      return changeOf(
        'schedule',
        () => free(subject, scheduleId),
        (known) => tryReplace(subject, known, request, also),
      );
    },

    async remove({ subject }: Caller, scheduleId: string, also: () => Unit): Promise<Refusal | undefined> {
      const known = await free(subject, scheduleId);
      if (isRefusal(known)) return known;
      await commitAll(store, [...disposal(subject, scheduleId), ...also()]);
      return undefined;
    },

    disposal,
    accord,

    /** Has a schedule that is there start the runs of something else, until it is taken back. */
    async lend({ subject }: Author, scheduleId: string, to: BelongsTo): Promise<MadeSchedule | Refusal> {
      const known = await free(subject, scheduleId, refuse('not_found', 'There is no such schedule.'));
      if (isRefusal(known)) return known;
      const next = known.next_run_at ?? firstSlot(timingOfRow(known), clock.now(), known.last_slot);
      if (isRefusal(next)) return next;
      const row = { ...known, belongs_to: ownerText(to), next_run_at: next };
      return { schedule: scheduleFrom(row), writes: [lendSchedule(row), ensureWork(workOf(row)), wake(scheduleId)] };
    },

    /** Switches off what was lent: whoever lent it says when it runs again. */
    takeBack: ({ tenant }: Subject, scheduleId: string): Unit => [
      dropWork(scheduleId),
      takeBackSchedule(tenant, scheduleId),
    ],
  };

  function free(subject: Subject, scheduleId: string, missing?: Refusal): Promise<ScheduleRow | Refusal> {
    return readFree<ScheduleRow>(store, 'schedule', findSchedule(subject, scheduleId), missing);
  }

  /** What puts a schedule into the world, for whoever commits it; `belongsTo` names what changes it, and starts its runs. */
  async function make(
    { subject }: Author,
    request: ScheduleRequest,
    belongsTo?: BelongsTo,
  ): Promise<MadeSchedule | Refusal> {
    const inputs = await starter.inputsFor(subject, request);
    return isRefusal(inputs) ? inputs : madeOf(subject, request, inputs, belongsTo);
  }

  function madeOf(
    subject: Subject,
    request: ScheduleRequest,
    inputs: InputColumns,
    belongsTo: BelongsTo | undefined,
  ): MadeSchedule | Refusal {
    const now = clock.now();
    const written = writtenBy(subject, request, inputs, undefined, now);
    if (isRefusal(written)) return written;
    const row: ScheduleRow = {
      ...written,
      schedule_id: ids.next('sch-'),
      ...subjectColumns(subject),
      belongs_to: belongsTo ? ownerText(belongsTo) : null,
      revision: 1,
      last_slot: null,
      last_run_at: null,
      last_run_id: null,
      last_missed_at: null,
      last_error: null,
      created_at: now,
    };
    return {
      schedule: scheduleFrom(row),
      writes: [
        insertSchedule(row, SCHEDULES_MAX),
        ...(row.next_run_at === null ? [] : [addWork(workOf(row))]),
        ...recordBy(audit, subject, 'schedule.create', row.schedule_id, detailsOf(row)),
      ],
    };
  }

  /** Shortens the wait for a schedule that has just been committed. */
  function announce({ id, nextRunAt }: Schedule): void {
    if (nextRunAt !== undefined) hub.callToWork(id, Date.parse(nextRunAt));
  }

  /** What takes a schedule out of the world: it starts nothing more. */
  function disposal(subject: Subject, scheduleId: string): Unit {
    return [
      dropWork(scheduleId),
      deleteSchedule(subject, scheduleId),
      ...recordBy(audit, subject, 'schedule.remove', scheduleId),
    ];
  }

  /** Undefined when it was changed, or started a run, in between. */
  async function tryReplace(
    subject: Subject,
    known: ScheduleRow,
    request: ScheduleRequest,
    also: Also<Schedule>,
  ): Promise<Schedule | Refusal | undefined> {
    const inputs = await starter.inputsFor(subjectOf(known), request, known);
    if (isRefusal(inputs)) return inputs;
    const written = writtenBy(subject, request, inputs, known, clock.now());
    if (isRefusal(written)) return written;
    const row = { ...known, ...written };
    const schedule = scheduleFrom(row);
    const isDone = await commitUnless('revision', store, [...rewriting(subject, row), ...also(schedule)]);
    if (!isDone) return undefined;
    hub.callToWork(row.schedule_id);
    return schedule;
  }

  /** What changes a schedule that is there. Refused when it was changed, or started a run, in between. */
  function rewriting(subject: Subject, row: ScheduleRow): Unit {
    return [
      rewriteSchedule(row),
      ...(row.next_run_at === null ? [] : [ensureWork(workOf(row))]),
      wake(row.schedule_id),
      ...recordBy(audit, subject, 'schedule.replace', row.schedule_id, detailsOf(row)),
    ];
  }

  /**
   * Has exactly these schedules belong to a workflow that is about to be what the plan says: made, changed or removed
   * as it takes, in whatever transaction brings the workflow about. Those that are so already are left alone.
   */
  async function accord(
    subject: Subject,
    { plan, workflowId }: { readonly plan: Plan | undefined; readonly workflowId: string },
    wanted: ReadonlyMap<string, ScheduleRequest>,
  ): Promise<Accord | Refusal> {
    const owner = (name: string): BelongsTo => ({ kind: 'workflow', id: `${workflowId}/${name}` });
    const known = await store.read<ScheduleRow>(schedulesOf(subject, workflowId, ownerText(owner(''))));
    const left = new Map(known.map((row) => [row.belongs_to, row]));
    const [writes, schedules]: [Write[], Schedule[]] = [[], []];
    for (const [name, request] of wanted) {
      const row = left.get(ownerText(owner(name)));
      left.delete(ownerText(owner(name)));
      const agreed = agree(subject, plan!, request, owner(name), row);
      if (isRefusal(agreed)) return { ...agreed, details: { ...agreed.details, trigger: name } };
      writes.push(...agreed.writes);
      schedules.push(agreed.schedule);
    }
    const removals = [...left.values()].flatMap(({ schedule_id }) => disposal(subject, schedule_id));
    return { writes: [...removals, ...writes], schedules };
  }

  function agree(
    subject: Subject,
    plan: Plan,
    request: ScheduleRequest,
    owner: BelongsTo,
    row: ScheduleRow | undefined,
  ): MadeSchedule | Refusal {
    const timing = timingOf(request);
    if (isRefusal(timing)) return timing;
    const inputs = starter.inputsOf(plan, request.inputs);
    if (isRefusal(inputs)) return inputs;
    if (!row) return madeOf(subject, request, inputs, owner);
    const isTimed = canonicalJson(timing) === canonicalJson(timingOfRow(row));
    if (isTimed && row.inputs === inputs.inputs && row.missed === (request.missed ?? DEFAULT_MISSED)) {
      return { schedule: scheduleFrom(row), writes: [] };
    }
    const written = writtenBy(subject, { ...request, enabled: true }, inputs, row, clock.now());
    if (isRefusal(written)) return written;
    const rewritten = { ...row, ...written };
    return { schedule: scheduleFrom(rewritten), writes: rewriting(subject, rewritten) };
  }

  /** The columns that come from what somebody writes down, or why it cannot be taken. */
  function writtenBy(
    subject: Subject,
    request: ScheduleRequest,
    inputs: InputColumns,
    known: ScheduleRow | undefined,
    now: number,
  ): WrittenColumns | Refusal {
    const { workflowId, timezone = DEFAULT_TIMEZONE, missed = DEFAULT_MISSED, enabled } = request;
    const timing = timingOf(request);
    if (isRefusal(timing)) return timing;
    const isOn = enabled ?? (known === undefined || known.next_run_at !== null);
    const next = isOn ? nextFor(timing, known, now) : null;
    if (isRefusal(next)) return next;
    return {
      principal: subject.principal,
      issuer: subject.issuer,
      lane: subject.lane,
      workflow_id: workflowId,
      ...inputs,
      cron: 'cron' in timing ? timing.cron : null,
      run_at: 'runAt' in timing ? timing.runAt : null,
      timezone,
      missed,
      next_run_at: next,
      updated_at: now,
    };
  }
}

/** A slot that is awaited stays so unless the timing changes. */
function nextFor(timing: Timing, known: ScheduleRow | undefined, now: number): number | Refusal {
  if (known?.next_run_at != null && canonicalJson(timing) === canonicalJson(timingOfRow(known))) {
    return known.next_run_at;
  }
  return firstSlot(timing, now, known?.last_slot);
}

function workOf({ schedule_id: workId, tenant, next_run_at: dueAt }: ScheduleRow) {
  return { workId, kind: SCHEDULE, tenant, dueAt };
}

function detailsOf({ workflow_id: workflowId, cron, run_at, timezone, next_run_at }: ScheduleRow): JsonObject {
  return {
    workflowId,
    timezone,
    ...(cron === null ? { runAt: timeText(run_at!) } : { cron }),
    enabled: next_run_at !== null,
  };
}
