import type { Continuation, GoalPlan } from '../../src/protocol/learning/goals.ts';
import { readJsonObject } from '../parts/json-text.ts';
import { localTime, momentOf } from '../parts/time.ts';

/** What the form of a plan holds while it is filled in: everything is text. */
export interface PlanDraft {
  readonly workflowId: string;
  readonly inputs: string;
  readonly criteria: readonly { readonly key: string; readonly expression: string }[];
  readonly maxParallel: string;
  readonly cron: string;
  readonly timezone: string;
  readonly intervalSec: string;
  readonly observe: string;
  readonly state: string;
  readonly when: string;
  readonly intention: string;
  readonly at: string;
  readonly everySec: string;
  readonly predicate: string;
}

/** The fields of what starts the runs, as the host calls them. */
export const ARM_FIELDS: readonly string[] = [
  'schedule.cron',
  'schedule.timezone',
  'heartbeat.intervalSec',
  'heartbeat.observe',
  'heartbeat.state',
  'heartbeat.when',
  'commitment.intention',
  'commitment.at',
  'commitment.everySec',
  'commitment.predicate',
  'commitment',
];

const json = (value: unknown): string => (value === undefined ? '' : JSON.stringify(value, null, 2));

/** What the form begins with. */
export function planDraftOf(plan: GoalPlan | undefined): PlanDraft {
  const { schedule, heartbeat, commitment } = plan ?? {};
  return {
    workflowId: plan?.workflowId ?? '',
    inputs: json(plan?.inputs),
    criteria: plan?.criteria ?? [],
    maxParallel: plan?.maxParallel === undefined ? '' : String(plan.maxParallel),
    cron: schedule?.cron ?? '0 9 * * 1-5',
    timezone: schedule?.timezone ?? (schedule ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone),
    intervalSec: String(heartbeat?.intervalSec ?? 300),
    observe: json(heartbeat?.observe),
    state: heartbeat?.state ?? '',
    when: heartbeat?.when ?? '',
    intention: commitment?.intention ?? '',
    at: commitment?.at === undefined ? '' : localTime(commitment.at),
    everySec: commitment?.everySec === undefined ? '' : String(commitment.everySec),
    predicate: json(commitment?.predicate),
  };
}

/** The plan that was filled in, and what the browser finds wrong with it by field. */
interface ReadPlan {
  readonly plan: GoalPlan;
  readonly problems: Readonly<Record<string, string>>;
}

/** Reads the form. What starts runs in other ways than the goal's is kept as it was. */
export function readPlan(draft: PlanDraft, mode: Continuation, before: GoalPlan | undefined): ReadPlan {
  const problems: Record<string, string> = {};
  const object = (field: string, text: string): Record<string, unknown> | undefined => {
    const { value, problem } = readJsonObject(text);
    if (problem !== undefined) problems[field] = problem;
    return value;
  };
  const whole = (field: string, text: string): number | undefined => {
    if (text.trim() === '') return undefined;
    if (!Number.isInteger(Number(text))) problems[field] = 'This must be a whole number.';
    return Number(text);
  };
  const { schedule, heartbeat, commitment } = before ?? {};
  const plan = {
    workflowId: draft.workflowId,
    criteria: draft.criteria.map(({ key, expression }) => ({ key: key.trim(), expression: expression.trim() })),
    inputs: object('inputs', draft.inputs),
    maxParallel: whole('maxParallel', draft.maxParallel),
    schedule: mode === 'schedule' ? { cron: draft.cron.trim(), timezone: draft.timezone } : schedule,
    heartbeat:
      mode === 'heartbeat'
        ? given({
            intervalSec: whole('heartbeat.intervalSec', draft.intervalSec),
            observe: object('heartbeat.observe', draft.observe),
            state: draft.state.trim() || undefined,
            when: draft.when.trim() || undefined,
          })
        : heartbeat,
    commitment:
      mode === 'commitment'
        ? given({
            ...commitment,
            intention: draft.intention.trim() || undefined,
            at: draft.at === '' ? undefined : momentOf(draft.at),
            everySec: whole('commitment.everySec', draft.everySec),
            predicate: object('commitment.predicate', draft.predicate),
          })
        : commitment,
  };
  // The host checks the rest, and says what is wrong by field.
  return { plan: given(plan) as GoalPlan, problems };
}

/** Without what was left empty. */
function given<T extends object>(members: T): Partial<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Partial<T>;
}
