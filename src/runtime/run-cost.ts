import { addUsd } from '../engine/models/budget.ts';
import { childRuns, type RunRef, type RunRow } from '../store/log.ts';
import type { Runtime } from './runtime.ts';

export interface RunCost {
  readonly costUsd: number;
  /** It was stopped by what was left for it to spend. */
  readonly ranOutOfMoney: boolean;
}

/** More runs below one are not looked at. */
const DESCENDANTS_MAX = 1_000;

/** What a run, and those it sent for, have spent on models. */
export async function costOfRun({ reader, store }: Runtime, { tenant, runId }: RunRef): Promise<RunCost> {
  let costUsd = 0;
  let ranOutOfMoney = false;
  const left = [runId];
  for (let seen = 0; left.length > 0 && seen < DESCENDANTS_MAX; seen++) {
    const next = left.pop()!;
    const budget = await reader.view({ tenant }, next, ({ run }) => ({
      spent: run.budget.spent.cost,
      isOut: run.budget.exhausted.has('cost') || run.budget.exhaustedBelow.has('cost'),
      counted: new Set(run.budget.counted),
    }));
    costUsd = addUsd(costUsd, budget?.spent ?? 0);
    ranOutOfMoney ||= budget?.isOut ?? false;
    const children = await store.read<RunRow>(childRuns({ tenant, runId: next }));
    left.push(...children.flatMap(({ run_id }) => (budget?.counted.has(run_id) ? [] : [run_id])));
  }
  return { costUsd, ranOutOfMoney };
}
