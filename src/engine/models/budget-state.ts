/** What a budget can limit. */
export const BUDGET_DIMENSIONS = ['tokens', 'cost', 'toolCalls', 'retries'] as const;
/** One of BUDGET_DIMENSIONS. */
export type BudgetDimension = (typeof BUDGET_DIMENSIONS)[number];

/** What a run has spent according to its log, and which budget events the log already has. */
export interface BudgetState {
  isReserved: boolean;
  readonly spent: Record<BudgetDimension, number>;
  /** Consumption as of the last `budget.consumed` event. */
  readonly reported: Record<BudgetDimension, number>;
  /** Dimensions with a `budget.threshold.crossed` event. */
  readonly crossed: Set<string>;
  /** Dimensions with a `budget.exhausted` event. */
  readonly exhausted: Set<string>;
  /** Child runs whose spending is already included. */
  readonly counted: Set<string>;
  /** Dimensions that a child run exhausted. */
  readonly exhaustedByChildren: Set<string>;
}

/** The state of a run that has spent nothing. */
export function emptyBudget(): BudgetState {
  return {
    isReserved: false,
    spent: { tokens: 0, cost: 0, toolCalls: 0, retries: 0 },
    reported: { tokens: 0, cost: 0, toolCalls: 0, retries: 0 },
    crossed: new Set(),
    exhausted: new Set(),
    counted: new Set(),
    exhaustedByChildren: new Set(),
  };
}
