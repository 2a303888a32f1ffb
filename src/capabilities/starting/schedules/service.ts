import type { Plan } from '../../../engine/definition/plan.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import type { Schedule, ScheduleRequest } from '../../../protocol/starting/schedules.ts';
import { and, type Change, unchanged } from '../../../runtime/change.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Runs } from '../../running/runs/door.ts';
import { subjectOf } from '../../subject-columns.ts';
import { type Author, ownerText, type StarterOwner } from '../starter/door.ts';
import type { InputColumns } from '../starter/records.ts';
import { RunCreation } from '../starter/run-creation.ts';
import type { StarterRows } from '../starter/service.ts';
import { scheduleFrom } from './document.ts';
import type { Schedules } from './door.ts';
import { hasTiming, requestColumns } from './family.ts';
import { type ScheduleRow, schedulesOf } from './records.ts';
import { DEFAULT_MISSED, timingOf } from './rules.ts';

/** A workflow that is about to be registered, or removed (then it has no plan). */
interface PlannedWorkflow {
  readonly workflowId: string;
  readonly plan: Plan | undefined;
}

/** The mechanism of starters, as schedules use it. */
type ScheduleStarters = StarterRows<ScheduleRow, ScheduleRequest, Schedule> & Pick<Schedules, 'removeOwned'>;

/** What schedules can do that other starters cannot: be replaced, and belong to the triggers of workflows. */
export class ScheduleService {
  readonly #runtime: Runtime;
  readonly #creation: RunCreation;
  readonly #starters: ScheduleStarters;

  constructor(
    { runtime }: { readonly runtime: Runtime },
    { runs }: { readonly runs: Pick<Runs, 'check'> },
    starters: ScheduleStarters,
  ) {
    this.#runtime = runtime;
    this.#creation = new RunCreation(runtime, runs);
    this.#starters = starters;
  }

  /** Takes effect at once. Later runs are started on behalf of whoever replaced the schedule. */
  async replace({ subject }: Author, id: string, request: ScheduleRequest): Promise<Change<Schedule> | Refusal> {
    const known = await this.#starters.readFree(subject, id);
    if (isRefusal(known)) return known;
    const inputs = await this.#creation.inputColumns(subjectOf(known), request, known);
    return isRefusal(inputs) ? inputs : this.#replace(subject, known, request, inputs);
  }

  /**
   * Makes exactly these schedules, by trigger id, belong to a workflow: creates, changes and removes what differs. The
   * change is part of the one that registers or removes the workflow.
   */
  async synchronize(
    subject: Subject,
    { plan, workflowId }: PlannedWorkflow,
    wanted: ReadonlyMap<string, ScheduleRequest>,
  ): Promise<Change | Refusal> {
    const ownerOf = (trigger: string): StarterOwner => ({ kind: 'workflow', id: `${workflowId}/${trigger}` });
    const statement = schedulesOf(subject, workflowId, ownerText(ownerOf('')));
    const known = await this.#runtime.store.read<ScheduleRow>(statement);
    const obsolete = new Map(known.map((row) => [row.belongs_to, row]));
    const changes: Change<unknown>[] = [];
    for (const [trigger, request] of wanted) {
      const owner = ownerOf(trigger);
      const row = obsolete.get(ownerText(owner));
      obsolete.delete(ownerText(owner));
      const change = await this.#synchronizeOne(subject, plan!, request, owner, row);
      if (isRefusal(change)) return { ...change, details: { ...change.details, trigger } };
      changes.push(change);
    }
    const removals = [...obsolete.values()].map(({ schedule_id }) => this.#starters.removeOwned(subject, schedule_id));
    return and(unchanged(undefined), ...removals, ...changes);
  }

  async #synchronizeOne(
    subject: Subject,
    plan: Plan,
    request: ScheduleRequest,
    owner: StarterOwner,
    known: ScheduleRow | undefined,
  ): Promise<Change<Schedule> | Refusal> {
    const timing = timingOf(request);
    if (isRefusal(timing)) return timing;
    const inputs = await this.#creation.columnsFor(plan, request.inputs);
    if (isRefusal(inputs)) return inputs;
    if (!known) return this.#starters.add(subject, request, inputs, owner);
    const isSame = known.inputs === inputs.inputs && known.missed === (request.missed ?? DEFAULT_MISSED);
    if (isSame && hasTiming(known, timing)) return unchanged(scheduleFrom(known));
    return this.#replace(subject, known, { ...request, enabled: true }, inputs);
  }

  #replace(
    subject: Subject,
    known: ScheduleRow,
    request: ScheduleRequest,
    inputs: InputColumns,
  ): Change<Schedule> | Refusal {
    const columns = requestColumns(request, known, this.#runtime.clock.now());
    if (isRefusal(columns)) return columns;
    const { principal, issuer, lane } = subject;
    const row: ScheduleRow = { ...known, ...inputs, ...columns, principal, issuer, lane };
    return this.#starters.rewrite(subject, 'schedule.replace', request, row);
  }
}
