import type { Static } from 'typebox';
import type { ProviderUsage } from '../../../protocol/ai/models.ts';
import type { RunCost } from '../../../protocol/running/runs.ts';
import type { Change } from '../../../runtime/change.ts';
import type { Visibility } from '../../../store/log.ts';
import { door } from '../../capability.ts';

/** What model calls cost, by run. */
export interface Costs {
  /** The cost of each of these runs of a tenant, children not included; a run that called no model has none. */
  of(tenant: string, runIds: readonly string[]): Promise<ReadonlyMap<string, Static<typeof RunCost>>>;
  /** Counts a model call that no run made, as if a run of this workflow had made it now. */
  countOutside(by: Visibility, workflowId: string, usage: ProviderUsage): Change;
}

/** The door to costs. */
export const Costs = door<Costs>()('costs');

/** Dollars of each run whose cost is known: one that asked no model cost nothing, one with a call without a price is left out. */
export async function knownCosts(
  costs: Pick<Costs, 'of'>,
  tenant: string,
  runIds: readonly string[],
): Promise<number[]> {
  const counted = await costs.of(tenant, runIds);
  return runIds.flatMap((runId) => {
    const cost = counted.get(runId);
    return cost ? (cost.usd ?? []) : 0;
  });
}
