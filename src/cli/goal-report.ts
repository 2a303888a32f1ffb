import type { Client } from '../client/index.ts';
import { valueAt } from '../protocol/format/json.ts';
import type { Goal, GoalEvaluation, GoalEvaluations, GoalPlan, GoalStanding } from '../protocol/learning/goals.ts';
import type { RunSnapshot } from '../protocol/running/runs.ts';
import { orNone } from './or-none.ts';
import { counted, formatSpan, propertyLines, sanitize, shortText } from './text.ts';

/** What a report is made of, besides the goal. What the host or the caller does not have is missing. */
export interface GoalSources {
  readonly history?: Pick<GoalEvaluations, 'standing' | 'costUsd' | 'deadlineAt' | 'items'> | undefined;
  readonly plan?: Pick<GoalPlan, 'criteria'> | undefined;
  /** When what starts the runs does so next. */
  readonly nextAt?: string | undefined;
  /** The run that was judged last. */
  readonly lastRun?: RunSnapshot | undefined;
}

/** Reads how a goal stands and formats it. */
export async function goalReport(client: Client, goal: Goal): Promise<string[]> {
  const lastRunId = goal.completion.lastVerdict?.runId;
  const [history, plan, nextAt, lastRun] = await Promise.all([
    orNone(client.listGoalEvaluations(goal.id, { limit: 1 })),
    orNone(client.getGoalPlan(goal.id)),
    orNone(nextTime(client, goal)),
    lastRunId === undefined ? undefined : orNone(client.getRun(lastRunId)),
  ]);
  return goalLines(goal, { history, plan, nextAt, lastRun });
}

async function nextTime(client: Client, { state, continuation }: Goal): Promise<string | undefined> {
  const { mode, armRef } = continuation;
  if (state !== 'active' || !armRef) return undefined;
  if (mode === 'schedule') return (await client.getSchedule(armRef)).nextRunAt;
  if (mode === 'heartbeat') return (await client.getHeartbeat(armRef)).nextTickAt;
  return mode === 'commitment' ? (await client.getCommitment(armRef)).at : undefined;
}

/** Formats a goal: how it stands, what starts its runs, and what the last verdict was based on. */
export function goalLines(goal: Goal, { history, plan, nextAt, lastRun }: GoalSources): string[] {
  const { id, objective, state, completion, continuation, progress } = goal;
  const [last] = history?.items ?? [];
  return [
    ...propertyLines({
      goal: id,
      objective,
      state,
      standing: state === 'active' || state === 'escalated' ? standingText(history?.standing) : undefined,
      'next run': nextRunText(goal, plan, nextAt),
      judge: completion.verifierRef ?? completion.check,
      arm: continuation.armRef ? `${continuation.mode} ${continuation.armRef}` : continuation.mode,
      bounds: boundsText(goal),
      'runs so far': progress?.iterations,
      cost: history && history.costUsd > 0 ? `${history.costUsd} USD` : undefined,
      'last verdict': verdictText(goal),
    }),
    ...(last ? evidenceLines(last, plan, lastRun).map((line) => `  ${line}`) : []),
  ].map(sanitize);
}

const STANDINGS: Readonly<Record<GoalStanding['status'], string>> = {
  armed: 'waits for its next run',
  running: 'a run is in progress',
  judging: 'a run is being judged',
  'waiting-person': 'waits for a person',
  'cannot-start': 'nothing can start a run',
  'no-arm': 'its schedule, heartbeat or commitment has finished; no more runs start',
};

function standingText(standing: GoalStanding | undefined): string | undefined {
  if (!standing) return undefined;
  const { status, reason } = standing;
  return reason === undefined ? STANDINGS[status] : `${STANDINGS[status]} (${reason})`;
}

/** The command that makes the plan of a goal, with what it needs at least. */
export function planCommand(goalId: string): string {
  return `capstan goals plan ${goalId} --workflow <id> --criterion key=expression`;
}

function nextRunText(
  { id, state, continuation }: Goal,
  plan: GoalSources['plan'],
  nextAt: string | undefined,
): string | undefined {
  if (state !== 'active') return undefined;
  if (!plan) return `none without a plan: ${planCommand(id)}`;
  return continuation.mode === 'manual' ? `by hand: capstan goals run ${id}` : nextAt;
}

function boundsText({ bounds: { maxLoopIterations, maxCostUsd, runTimeoutMs } }: Goal): string {
  return [
    ...(maxLoopIterations === undefined ? [] : [counted(maxLoopIterations, 'run')]),
    ...(maxCostUsd === undefined ? [] : [`${maxCostUsd} USD`]),
    ...(runTimeoutMs === undefined ? [] : [formatSpan(runTimeoutMs)]),
  ].join(', ');
}

function verdictText({ completion: { lastVerdict } }: Goal): string | undefined {
  if (!lastVerdict) return undefined;
  const sure = lastVerdict.confidence === undefined ? '' : `, confidence ${lastVerdict.confidence}`;
  return `${lastVerdict.satisfied ? 'satisfied' : 'not satisfied'} by ${lastVerdict.runId}${sure}`;
}

/** The criteria of a verdict, one per line, with what the run had where its criterion looks. */
export function evidenceLines(
  { evidence, undecided }: Pick<GoalEvaluation, 'evidence' | 'undecided'>,
  plan: GoalSources['plan'],
  run: RunSnapshot | undefined,
): string[] {
  const lines = evidence.map(({ key, met, detail }) => {
    const expression = plan?.criteria.find((criterion) => criterion.key === key)?.expression;
    const values = expression === undefined || !run ? [] : valuesIn(expression, run);
    const parts = [detail, expression, values.length > 0 ? `where ${values.join(', ')}` : undefined];
    return [`${key}: ${met ? 'met' : 'not met'}`, ...parts.filter((part) => part !== undefined)].join('; ');
  });
  return undecided === undefined ? lines : [`undecided: ${undecided}`, ...lines];
}

/** The values of the paths that an expression reads of a run, such as `outputs.count.overdue`. */
function valuesIn(expression: string, { nodeStates = {}, variables, ...run }: RunSnapshot): string[] {
  const outputs = Object.fromEntries(Object.entries(nodeStates).map(([id, state]) => [id, state.outputs]));
  const scope = { run, outputs, variables };
  const paths =
    expression.replace(/"[^"]*"|'[^']*'/g, '').match(/\b(?:run|outputs|variables)(?:\.\w+)+(?![\w(])/g) ?? [];
  return [...new Set(paths)].map((path) => `${path} is ${shortText(valueAt(scope, path))}`);
}
