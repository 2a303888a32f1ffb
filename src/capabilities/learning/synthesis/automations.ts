import { deepEqual, type JsonObject } from '../../../protocol/format/json.ts';
import { RUN_PREFIX } from '../../../runtime/creation.ts';
import { factsOf } from '../../../runtime/run-row.ts';
import { timeOf } from '../../../system/ids.ts';
import { REDACTED, redactValue } from '../../../system/redaction.ts';
import { counted, type Draft, EVIDENCE_MAX, HABITS_MAX, type Habit, type MiningContext, named } from './habit.ts';
import { type CountedStart, countStarts, runsOfStart } from './mining-records.ts';
import { type Rhythm, rhythmOf } from './rhythm.ts';

/** Finds workflows that people start with the same inputs at regular times, and drafts a schedule for them. */
export async function* findAutomations(mining: MiningContext): AsyncGenerator<Habit> {
  const { runtime, selection, rules } = mining;
  const starts = await runtime.store.read<CountedStart>(countStarts(selection, rules.supportMin, HABITS_MAX));
  for (const start of starts) {
    const rows = await runtime.store.read<StartedRun>(runsOfStart(selection, start, EVIDENCE_MAX));
    const rhythm = rhythmOf(rows.map(startedAt).reverse(), rules);
    if (!rhythm) continue;
    const kept = rows.slice(0, rhythm.kept);
    yield {
      kind: 'automation',
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
): Promise<Draft | undefined> {
  const inputs = await inputsOf(mining, rows[0]!.run_id);
  if (!inputs) return undefined;
  const artifact = { workflowId, ...(Object.keys(inputs).length === 0 ? {} : { inputs }), cron, timezone };
  return {
    artifact,
    title: `Run ${workflowId} ${words}`,
    rationale: [
      `Somebody started ${workflowId} by hand ${counted(rows.length, 'time')} with the same inputs, ${words}.`,
      `The nearest that a schedule can say is "${cron}" by the clock of ${timezone}.`,
      `Among them ${named(rows.map(({ run_id }) => run_id))}.`,
    ].join(' '),
  };
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
