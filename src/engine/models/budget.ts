import type { BudgetPolicy } from '../../protocol/ai/models.ts';
import { defined } from '../../protocol/format/json.ts';
import type { EventPayload, NewEvent } from '../../protocol/running/events.ts';
import type { Run } from '../run/run.ts';
import { BUDGET_DIMENSIONS, type BudgetDimension, type BudgetState } from './budget-state.ts';

/** The policy's limit for each dimension. */
const LIMITS = {
  tokens: 'maxTokens',
  cost: 'maxCostUsd',
  toolCalls: 'maxToolCalls',
  retries: 'maxRetries',
} as const;
/** The kind of `cap.breached` for each dimension. */
const KINDS = {
  tokens: 'budget-tokens',
  cost: 'budget-cost',
  toolCalls: 'budget-tool-calls',
  retries: 'budget-retries',
} as const;

/** Costs are rounded to a billionth of a dollar, so that sums of small prices do not drift. */
const COST_PRECISION = 1e9;

/** Adds to what a run has spent. */
export function spend({ spent }: BudgetState, dimension: BudgetDimension, amount: number): void {
  spent[dimension] = addUsd(spent[dimension], amount);
}

/** Adds amounts without accumulating rounding errors; also exact for whole numbers. */
export function addUsd(sum: number, amount: number): number {
  const exact = Math.round((sum + amount) * COST_PRECISION) / COST_PRECISION;
  return Number.isFinite(exact) ? exact : sum + amount;
}

/** What a finished run has spent, including its descendants. */
export type SpendingReport = Pick<EventPayload<'capstan.child.changed'>, 'spent' | 'exhausted'>;

/** The spending of a run, to be reported to its parent. */
export function spendingReportOf({ budget: { spent, exhausted, exhaustedByChildren } }: Run): SpendingReport {
  return { spent: { ...spent }, exhausted: [...new Set([...exhausted, ...exhaustedByChildren])] };
}

/** Adds the spending of a finished child run to that of its parent. */
export function addChildSpending(
  budget: BudgetState,
  childRunId: string,
  { spent = {}, exhausted = [] }: SpendingReport,
): void {
  budget.counted.add(childRunId);
  for (const dimension of BUDGET_DIMENSIONS) spend(budget, dimension, spent[dimension] ?? 0);
  for (const dimension of exhausted) budget.exhaustedByChildren.add(dimension);
}

/** The budget of a new child run: everything its parent has left. Undefined if the parent has no budget. */
export function childBudget({ facts, budget }: Run): BudgetPolicy | undefined {
  const policy = facts.configurable.budget;
  if (!policy) return undefined;
  const { modelAllow, modelDeny } = policy;
  const left = BUDGET_DIMENSIONS.flatMap((dimension) => {
    const limit = policy[LIMITS[dimension]];
    return limit === undefined ? [] : [[LIMITS[dimension], Math.max(0, addUsd(limit, -budget.spent[dimension]))]];
  });
  return { ...Object.fromEntries(left), ...defined({ modelAllow, modelDeny }) };
}

/** Limits for one model call. */
export interface Allowance {
  readonly tokens?: number;
  readonly costUsd?: number;
  readonly modelAllow?: readonly string[];
  readonly modelDeny?: readonly string[];
}

/** What a run may still spend on a model call; undefined if it has no budget. */
export function allowanceOf({ facts, budget }: Run): Allowance | undefined {
  const policy = facts.configurable.budget;
  if (!policy) return undefined;
  const { maxTokens, maxCostUsd, modelAllow, modelDeny } = policy;
  return {
    ...(maxTokens === undefined ? {} : { tokens: maxTokens - budget.spent.tokens }),
    ...(maxCostUsd === undefined ? {} : { costUsd: maxCostUsd - budget.spent.cost }),
    ...(modelAllow ? { modelAllow } : {}),
    ...(modelDeny ? { modelDeny } : {}),
  };
}

/**
 * The budget events that are due but not yet in the log. They derive from the log alone, so a replay produces the same
 * ones.
 */
export function budgetEvents(run: Run): NewEvent[] {
  const policy = run.facts.configurable.budget;
  if (!policy || run.failure?.abort) return [];
  if (!run.budget.isReserved) return [reserve(policy)];
  return BUDGET_DIMENSIONS.flatMap((dimension) => {
    const limit = policy[LIMITS[dimension]];
    return limit === undefined ? [] : account(run, dimension, limit);
  });
}

function reserve({ maxTokens, maxCostUsd, maxToolCalls, maxRetries }: BudgetPolicy): NewEvent {
  const effectiveBudget = {
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(maxCostUsd === undefined ? {} : { maxCostUsd }),
    ...(maxToolCalls === undefined ? {} : { maxToolCalls }),
    ...(maxRetries === undefined ? {} : { maxRetries }),
  };
  return { type: 'budget.reserved', payload: { effectiveBudget, scope: 'run' } };
}

/** Each event is emitted once, and checked individually: a fork may begin between two of them. */
function account({ facts, budget }: Run, dimension: BudgetDimension, limit: number): NewEvent[] {
  const { spent, reported, crossed, exhausted } = budget;
  const consumed = spent[dimension];
  if (consumed === 0) return [];
  const percent = facts.configurable.budget?.thresholdPercent ?? Number.POSITIVE_INFINITY;
  const payload = { dimension, consumed, limit };
  const events: NewEvent[] = [];
  if (consumed !== reported[dimension]) {
    events.push({ type: 'budget.consumed', payload: { ...payload, remaining: Math.max(0, limit - consumed) } });
  }
  if (consumed >= (limit * percent) / 100 && !crossed.has(dimension)) {
    events.push({ type: 'budget.threshold.crossed', payload: { ...payload, percent } });
  }
  if (consumed >= limit && !exhausted.has(dimension)) events.push({ type: 'budget.exhausted', payload });
  if (consumed > limit) {
    events.push({ type: 'cap.breached', payload: { kind: KINDS[dimension], limit, observed: consumed } });
  }
  return events;
}

/**
 * Whether the budget covers the tool call just recorded. A call is in the log before it is made, so an excessive one is
 * already counted here.
 */
export function mayCallTools({ facts, budget }: Run): boolean {
  return budget.spent.toolCalls <= (facts.configurable.budget?.maxToolCalls ?? Number.POSITIVE_INFINITY);
}

/** The events for a model call that is not made because it needs at least `need`, more than is left. */
export function refuseCall(run: Run, nodeId: string, dimension: 'tokens' | 'cost', need: number): NewEvent[] {
  const limit = run.facts.configurable.budget![LIMITS[dimension]]!;
  const consumed = run.budget.spent[dimension];
  const exhausted: EventPayload<'budget.exhausted'> = { dimension, consumed, limit };
  return [
    ...(run.budget.exhausted.has(dimension) ? [] : [{ type: 'budget.exhausted', nodeId, payload: exhausted } as const]),
    {
      type: 'cap.breached',
      nodeId,
      payload: { kind: KINDS[dimension], limit, observed: consumed + need, nodeId },
    },
  ];
}
