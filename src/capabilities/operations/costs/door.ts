import type { Static } from 'typebox';
import type { RunCost } from '../../../protocol/running/runs.ts';
import { door } from '../../capability.ts';

/** What model calls cost, by run. */
export interface Costs {
  /** The cost of each of these runs of a tenant, children not included; a run that called no model has none. */
  of(tenant: string, runIds: readonly string[]): Promise<ReadonlyMap<string, Static<typeof RunCost>>>;
}

/** The door to costs. */
export const Costs = door<Costs>()('costs');
