import type { OutputLimits } from '../engine/limits/output-limits.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { Egress } from '../system/egress.ts';
import type { Ids } from '../system/ids.ts';
import type { Log } from '../system/log.ts';
import type { Meter } from '../system/meter.ts';
import type { Watchdog } from '../system/watchdog.ts';
import type { Catalog } from './catalog.ts';
import type { PredictResponse } from './effects/model.ts';
import type { SeamDrivers } from './effects/seams.ts';
import type { FollowedRuns } from './followed-runs.ts';
import type { Hub } from './hub.ts';
import type { KeyedMutex } from './keyed-mutex.ts';
import type { NodeType } from './node-type.ts';
import type { Plans } from './plans.ts';
import type { Reaction } from './reaction.ts';
import type { RunReader } from './reader.ts';
import type { StorageShares } from './storage-shares.ts';
import type { ToolSource } from './tools.ts';
import type { Tracing } from './tracing.ts';
import type { Turns } from './turns.ts';
import type { SchemaValidator } from './validation/schema-validator.ts';

/** The services that executing and changing runs is built on; there is one per host. */
export interface Runtime {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  /** Where operators are told what happens. */
  readonly meter: Meter;
  /** Whatever may take long on the main thread notes its name here. */
  readonly watchdog: Watchdog;
  readonly hub: Hub;
  readonly followedRuns: FollowedRuns;
  readonly plans: Plans;
  readonly reader: RunReader;
  /** Changes of the same resource wait for each other here instead of conflicting in the store. */
  readonly mutex: KeyedMutex;
  /** Whatever a tenant wants done waits for its turn here. */
  readonly turns: Turns;
  /** How much each tenant has stored, and whether it may store more. */
  readonly storage: StorageShares;
  readonly catalog: Catalog;
  /** Types whose nodes ended without waiting for anything when they were called last. */
  readonly synchronousTypes: WeakSet<NodeType>;
  /** Validates with the JSON Schemas of callers. */
  readonly schemas: SchemaValidator;
  readonly seams: SeamDrivers;
  /** The seams of preview runs: models are asked, everything else is only read. Undefined where nothing is previewed. */
  readonly previewSeams: SeamDrivers | undefined;
  /** A replay asks no model; it compares what the host knows of one with what the source recorded. */
  readonly predictResponse: PredictResponse;
  /** Sources of the tools that agents may call. */
  readonly tools: readonly ToolSource[];
  /** The only way to the network: it enforces the host's egress rules. */
  readonly egress: Egress;
  /** Records traces; undefined on a host without telemetry. */
  readonly tracing: Tracing | undefined;
  /** Writes that capabilities add to every append. */
  readonly reactions: readonly Reaction[];
  /** Upper bounds of the limits of every run. */
  readonly limits: { readonly maxNodeExecutions: number; readonly maxRunDurationMs: number };
  /** How much each run may hold. */
  readonly outputLimits: OutputLimits;
}
