import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { Egress } from '../system/egress.ts';
import type { Ids } from '../system/ids.ts';
import type { Log } from '../system/log.ts';
import type { Reaction } from './append.ts';
import type { Catalog } from './catalog.ts';
import type { SeamDrivers } from './effects/seams.ts';
import type { Hub } from './hub.ts';
import type { Plans } from './plans.ts';
import type { RunReader } from './reader.ts';
import type { ToolSource } from './tools.ts';
import type { Turns } from './turns.ts';

/** What everything that moves runs is built on. */
export interface Runtime {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly hub: Hub;
  readonly plans: Plans;
  readonly reader: RunReader;
  /** Changes of the same resource wait for each other here instead of conflicting in the store. */
  readonly turns: Turns;
  readonly catalog: Catalog;
  readonly seams: SeamDrivers;
  /** Where the tools of agents come from. */
  readonly tools: readonly ToolSource[];
  /** The one way out to the network. */
  readonly egress: Egress;
  readonly reactions: readonly Reaction[];
  /** Ids of what this host provides to nodes that `require` it. */
  readonly provided: ReadonlySet<string>;
  /** Ceilings of this host; a run gets these or less. */
  readonly limits: { readonly maxNodeExecutions: number; readonly maxRunDurationMs: number };
}
