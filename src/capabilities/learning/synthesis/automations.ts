import { deepEqual, type JsonObject } from '../../../protocol/format/json.ts';
import { RUN_PREFIX } from '../../../runtime/creation.ts';
import { factsOf } from '../../../runtime/run-row.ts';
import { timeOf } from '../../../system/ids.ts';
import { REDACTED, redactValue } from '../../../system/redaction.ts';
import { slotCount } from '../../starting/schedules/door.ts';
import {
  BEGINNING_MIN,
  type Draft,
  EVIDENCE_MAX,
  type Found,
  HABITS_MAX,
  type HeldBackDraft,
  type MiningContext,
  needsMore,
} from './habit.ts';
import { type CountedStart, countStarts, runsOfStart } from './mining-records.ts';
import { isGood, isMostlyGood, type Outcome } from './outcomes.ts';
import { counted, named } from './phrases.ts';
import { type Rhythm, rhythmOf } from './rhythm.ts';

/** Finds workflows that people start with the same inputs at regular times, and drafts a schedule for them. */
export async function* findAutomations(mining: MiningContext): AsyncGenerator<Found> {
  const { runtime, selection, rules, outcomes } = mining;
  const starts = await runtime.store.read<CountedStart>(countStarts(selection, BEGINNING_MIN, HABITS_MAX));
  for (const start of starts) {
    const of = { kind: 'automation', what: `starting ${start.workflow_id} by hand with the same inputs` } as const;
    if (start.runs < rules.supportMin) {
      yield needsMore(of, start.runs, rules.supportMin, 'start');
      continue;
    }
    const all = await runtime.store.read<StartedRun>(runsOfStart(selection, start, EVIDENCE_MAX));
    const ended = await outcomes.of(all.map(({ run_id }) => run_id));
    const rows = all.filter(({ run_id }) => isGood(ended.get(run_id) ?? GONE));
    if (!isMostlyGood([...ended.values()])) {
      const bad = all.length - rows.length;
      yield {
        ...of,
        reason: 'ended-badly',
        message: `${bad} of ${all.length} runs failed or were not what people wanted`,
      };
      continue;
    }
    const rhythm = rhythmOf(rows.map(startedAt).reverse(), rules);
    if (!rhythm) {
      yield { ...of, reason: 'irregular', message: `${counted(rows.length, 'start')} at no regular time` };
      continue;
    }
    const kept = rows.slice(0, rhythm.kept);
    yield {
      ...of,
      key: JSON.stringify(['start', start.workflow_id, start.inputs]),
      support: kept.length,
      evidence: kept.map((row) => ({
        id: row.run_id,
        runId: row.run_id,
        why: `Started by hand at ${new Date(startedAt(row)).toISOString()}.`,
      })),
      draft: () => draftAutomation(mining, start, rhythm, kept),
    };
  }
}

/** A run that has expired since it was read. */
const GONE: Outcome = { status: 'expired' };

interface StartedRun {
  readonly run_id: string;
}

/** The start time, which run ids contain. */
function startedAt({ run_id }: StartedRun): number {
  return timeOf(run_id, RUN_PREFIX);
}

async function draftAutomation(
  mining: MiningContext,
  { workflow_id: workflowId }: CountedStart,
  { cron, timezone, words }: Rhythm,
  rows: readonly StartedRun[],
): Promise<Draft | HeldBackDraft> {
  const inputs = await inputsOf(mining, rows[0]!.run_id);
  if (!inputs) return { reason: 'personal-data', message: 'the inputs are sensitive, or were redacted' };
  const monthlyUsd = await monthlyCost(mining, { cron, timezone }, rows);
  const { monthlyUsdMax = Number.POSITIVE_INFINITY } = mining;
  if (monthlyUsd > monthlyUsdMax) {
    return { reason: 'costly', message: `would cost about $${inCents(monthlyUsd)} for models in a month` };
  }
  const artifact = { workflowId, ...(Object.keys(inputs).length === 0 ? {} : { inputs }), cron, timezone };
  return {
    artifact,
    title: `Run ${workflowId} ${words}`,
    rationale: [
      `Somebody started ${workflowId} by hand ${counted(rows.length, 'time')} with the same inputs, ${words}.`,
      `The nearest that a schedule can say is "${cron}" by the clock of ${timezone}.`,
      `Among them ${named(rows.map(({ run_id }) => run_id))}.`,
      ...(monthlyUsd > 0 ? [`It would cost about $${inCents(monthlyUsd)} for models in a month.`] : []),
    ].join(' '),
  };
}

/** What the models of a schedule would cost in the next thirty days, as the runs did so far. */
async function monthlyCost(
  { runtime, outcomes }: MiningContext,
  when: Pick<Rhythm, 'cron' | 'timezone'>,
  rows: readonly StartedRun[],
): Promise<number> {
  const costs = await outcomes.costs(rows.map(({ run_id }) => run_id));
  const total = costs.reduce((sum, cost) => sum + cost, 0);
  if (total === 0) return 0;
  const now = runtime.clock.now();
  const firings = slotCount(when, now, now + MONTH_MS);
  return (total / costs.length) * firings;
}

const MONTH_MS = 30 * 24 * 60 * 60_000;

function inCents(usd: number): string {
  return usd < 0.01 ? usd.toPrecision(1) : usd.toFixed(2);
}

/** The inputs; undefined if they are sensitive or were redacted. */
async function inputsOf({ runtime, subject }: MiningContext, runId: string): Promise<JsonObject | undefined> {
  const row = await runtime.reader.row(subject, runId);
  if (!row) return undefined;
  const { inputs } = factsOf(row);
  const current = await runtime.plans.current(subject, row.workflow_id);
  if (!current || Object.keys(inputs).some((name) => current.plan.sensitive.has(name))) return undefined;
  const isWhole = deepEqual(redactValue(inputs), inputs) && !JSON.stringify(inputs).includes(REDACTED.slice(0, -1));
  return isWhole ? inputs : undefined;
}
