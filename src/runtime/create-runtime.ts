import { OUTPUT_LIMITS, type OutputLimits } from '../engine/limits/output-limits.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { Egress } from '../system/egress.ts';
import type { WeightOf } from '../system/fair-queue.ts';
import type { Ids } from '../system/ids.ts';
import type { Log } from '../system/log.ts';
import { type Meter, NO_METER } from '../system/meter.ts';
import { Watchdog } from '../system/watchdog.ts';
import { catalogOf, type OtherTypes } from './catalog.ts';
import type { PredictResponse } from './effects/model.ts';
import { type SeamDrivers, unprovidedSeam } from './effects/seams.ts';
import { toolSeam } from './effects/tool-seam.ts';
import { FollowedRuns } from './followed-runs.ts';
import { Hub, type HubListeners } from './hub.ts';
import { KeyedMutex } from './keyed-mutex.ts';
import type { NodeType } from './node-type.ts';
import { Plans } from './plans.ts';
import type { Reaction } from './reaction.ts';
import { RunReader } from './reader.ts';
import type { Runtime } from './runtime.ts';
import { StorageShares } from './storage-shares.ts';
import type { ToolSource } from './tools.ts';
import type { Tracing } from './tracing.ts';
import { Turns } from './turns.ts';
import type { SchemaValidator } from './validation/schema-validator.ts';

/** What the host provides to build a runtime; the rest is created with it. */
interface RuntimeParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  /** Nothing is counted unless given. */
  readonly meter?: Meter;
  readonly egress: Egress;
  readonly schemas: SchemaValidator;
  readonly nodes: readonly NodeType[];
  readonly limits: Runtime['limits'];
  /** The tenants' shares; equal ones by default. */
  readonly weightOf?: WeightOf;
  /** What each tenant may store; no limit by default. */
  readonly storage?: ConstructorParameters<typeof StorageShares>[1];
  /** Those of a host whose operator sets none, unless given. */
  readonly outputLimits?: OutputLimits;
  /** Read on first use, because capabilities are mounted after the runtime is created and need it. */
  readonly contributed: RuntimeContributions;
}

/** The parts of a runtime that capabilities add. */
export interface RuntimeContributions extends HubListeners {
  readonly reactions: readonly Reaction[];
  readonly seams: Partial<SeamDrivers>;
  readonly previewSeams?: SeamDrivers | undefined;
  readonly tools: readonly ToolSource[];
  readonly predictResponse: PredictResponse;
  readonly otherTypes: OtherTypes;
  readonly tracing?: Tracing | undefined;
}

/** Builds a runtime. An effect seam that no capability implements fails the nodes that use it. */
export function createRuntime({ contributed, nodes, weightOf, storage, ...parts }: RuntimeParts): Runtime {
  const { store, clock, schemas, log } = parts;
  const plans = new Plans(store);
  const defaults: SeamDrivers = {
    model: unprovidedSeam('aiProviders'),
    annotate: unprovidedSeam('feedback'),
    prompts: unprovidedSeam('prompts'),
    http: unprovidedSeam('httpClient'),
    mail: unprovidedSeam('email'),
    kv: unprovidedSeam('kvStorage'),
    memory: unprovidedSeam('memory'),
    agent: unprovidedSeam('agents'),
    tool: (...call) => toolSeam(contributed.tools, { clock, schemas })(...call),
    verifiers: unprovidedSeam('verifiers'),
    envelopeKind: unprovidedSeam('supportedEnvelopes'),
    step: ({ perform }, { effectId, trace = {} }) => perform({ idempotencyKey: effectId, traceHeaders: { ...trace } }),
  };
  const watchdog = new Watchdog(clock);
  let seams: SeamDrivers | undefined;
  return {
    outputLimits: OUTPUT_LIMITS,
    meter: NO_METER,
    ...parts,
    hub: new Hub(contributed),
    followedRuns: new FollowedRuns(store, clock, log),
    plans,
    watchdog,
    reader: new RunReader(store, plans, clock, watchdog),
    mutex: new KeyedMutex(),
    turns: new Turns(clock, weightOf),
    synchronousTypes: new WeakSet(),
    storage: new StorageShares(store, storage),
    catalog: catalogOf(nodes, (typeId) => contributed.otherTypes(typeId)),
    get seams() {
      seams ??= { ...defaults, ...contributed.seams };
      return seams;
    },
    get previewSeams() {
      return contributed.previewSeams;
    },
    predictResponse: (at) => contributed.predictResponse(at),
    get tools() {
      return contributed.tools;
    },
    get tracing() {
      return contributed.tracing;
    },
    get reactions() {
      return contributed.reactions;
    },
  };
}
