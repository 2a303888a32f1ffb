import { addUsd } from '../engine/models/budget.ts';
import { childRuns, type ListedRun, type RunRef } from '../store/log.ts';
import type { Runtime } from './runtime.ts';

/** What a run and its descendants have spent on models. */
export interface RunCost {
  readonly costUsd: number;
  /** One of these runs has used up its cost budget. */
  readonly isBudgetExhausted: boolean;
}

/** Runs that are added up at most; the cost of further descendants is left out. */
const DESCENDANTS_MAX = 1_000;

/** Adds up the model costs of a run and its descendants; a child that its parent's budget counts is not added again. */
export async function costOfRun({ reader, store }: Runtime, { tenant, runId }: RunRef): Promise<RunCost> {
  let costUsd = 0;
  let isBudgetExhausted = false;
  const pending = [runId];
  for (let count = 0; pending.length > 0 && count < DESCENDANTS_MAX; count++) {
    const next = pending.pop()!;
    const budget = await reader.view({ tenant }, next, ({ run }) => ({
      spent: run.budget.spent.cost,
      isExhausted: run.budget.exhausted.has('cost') || run.budget.exhaustedByChildren.has('cost'),
      counted: new Set(run.budget.counted),
    }));
    costUsd = addUsd(costUsd, budget?.spent ?? 0);
    isBudgetExhausted ||= budget?.isExhausted ?? false;
    const children = await store.read<ListedRun>(childRuns({ tenant, runId: next }));
    pending.push(...children.flatMap(({ run_id }) => (budget?.counted.has(run_id) ? [] : [run_id])));
  }
  return { costUsd, isBudgetExhausted };
}
