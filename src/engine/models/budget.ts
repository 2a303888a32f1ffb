import type { BudgetPolicy } from '../../protocol/ai/models.ts';
import { defined } from '../../protocol/format/json.ts';
import type { EventPayload, NewEvent } from '../../protocol/running/events.ts';
import type { Run } from '../run/run.ts';

/** What is counted of a run's spending. */
export const BUDGET_DIMENSIONS = ['tokens', 'cost', 'toolCalls', 'retries'] as const;
export type BudgetDimension = (typeof BUDGET_DIMENSIONS)[number];

const LIMITS = {
  tokens: 'maxTokens',
  cost: 'maxCostUsd',
  toolCalls: 'maxToolCalls',
  retries: 'maxRetries',
} as const;
const KINDS = {
  tokens: 'budget-tokens',
  cost: 'budget-cost',
  toolCalls: 'budget-tool-calls',
  retries: 'budget-retries',
} as const;

/** Sums of small prices must not drift: a billionth of a dollar is the least that counts. */
const COST_PRECISION = 1e9;

/** What a run has spent by its log, and what the log says of that already. */
export interface BudgetState {
  isReserved: boolean;
  readonly spent: Record<BudgetDimension, number>;
  readonly told: Record<BudgetDimension, number>;
  readonly crossed: Set<string>;
  readonly exhausted: Set<string>;
  /** Runs below it whose spending is part of this, and what one of them could not pay for. */
  readonly counted: Set<string>;
  readonly exhaustedBelow: Set<string>;
}

export function emptyBudget(): BudgetState {
  return {
    isReserved: false,
    spent: { tokens: 0, cost: 0, toolCalls: 0, retries: 0 },
    told: { tokens: 0, cost: 0, toolCalls: 0, retries: 0 },
    crossed: new Set(),
    exhausted: new Set(),
    counted: new Set(),
    exhaustedBelow: new Set(),
  };
}

export function spend({ spent }: BudgetState, dimension: BudgetDimension, amount: number): void {
  spent[dimension] = addUsd(spent[dimension], amount);
}

/** Also right for what is counted in whole numbers. */
export function addUsd(sum: number, amount: number): number {
  const exact = Math.round((sum + amount) * COST_PRECISION) / COST_PRECISION;
  return Number.isFinite(exact) ? exact : sum + amount;
}

/** What a run that is over has spent, with all that ran below it. */
export type Bill = Pick<EventPayload<'capstan.child.changed'>, 'spent' | 'exhausted'>;

export function billOf({ budget: { spent, exhausted, exhaustedBelow } }: Run): Bill {
  return { spent: { ...spent }, exhausted: [...new Set([...exhausted, ...exhaustedBelow])] };
}

/** A run below is over: what it spent was spent by the run that sent for it, too. */
export function payFor(budget: BudgetState, childRunId: string, { spent = {}, exhausted = [] }: Bill): void {
  budget.counted.add(childRunId);
  for (const dimension of BUDGET_DIMENSIONS) spend(budget, dimension, spent[dimension] ?? 0);
  for (const dimension of exhausted) budget.exhaustedBelow.add(dimension);
}

/** What a run below may spend: all that is left. Nothing for a run without a budget. */
export function budgetBelow({ facts, budget }: Run): BudgetPolicy | undefined {
  const policy = facts.configurable.budget;
  if (!policy) return undefined;
  const { modelAllow, modelDeny } = policy;
  const left = BUDGET_DIMENSIONS.flatMap((dimension) => {
    const limit = policy[LIMITS[dimension]];
    return limit === undefined ? [] : [[LIMITS[dimension], Math.max(0, addUsd(limit, -budget.spent[dimension]))]];
  });
  return { ...Object.fromEntries(left), ...defined({ modelAllow, modelDeny }) };
}

/** What a model call may take at most, and of which models. */
export interface Allowance {
  readonly tokens?: number;
  readonly costUsd?: number;
  readonly modelAllow?: readonly string[];
  readonly modelDeny?: readonly string[];
}

/** Nothing for a run without a budget. */
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

/** What the log has yet to say of the budget: that it is there, what is gone of it, and that it is used up. */
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

/** Each of these is told once, whichever of them the log has already: a fork may begin between two of them. */
function account({ facts, budget }: Run, dimension: BudgetDimension, limit: number): NewEvent[] {
  const { spent, told, crossed, exhausted } = budget;
  const consumed = spent[dimension];
  if (consumed === 0) return [];
  const percent = facts.configurable.budget?.thresholdPercent ?? Number.POSITIVE_INFINITY;
  const payload = { dimension, consumed, limit };
  const events: NewEvent[] = [];
  if (consumed !== told[dimension]) {
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

/** A call of a tool is in the log before it is made: one too many can be told by then. */
export function mayCallTools({ facts, budget }: Run): boolean {
  return budget.spent.toolCalls <= (facts.configurable.budget?.maxToolCalls ?? Number.POSITIVE_INFINITY);
}

/** A model call is not made because it would take at least `need`, which is more than is left. */
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
