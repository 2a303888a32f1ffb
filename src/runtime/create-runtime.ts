import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { Egress } from '../system/egress.ts';
import type { Ids } from '../system/ids.ts';
import type { Log } from '../system/log.ts';
import type { Reaction } from './append.ts';
import { catalogOf } from './catalog.ts';
import { type SeamDrivers, unprovidedSeam } from './effects/seams.ts';
import { toolSeam } from './effects/tool-seam.ts';
import { Hub } from './hub.ts';
import type { NodeType } from './node-type.ts';
import { Plans } from './plans.ts';
import { RunReader } from './reader.ts';
import type { Runtime } from './runtime.ts';
import type { ToolSource } from './tools.ts';
import { Turns } from './turns.ts';

/** What a runtime is made of. */
export interface RuntimeParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly egress: Egress;
  readonly nodes: readonly NodeType[];
  readonly limits: Runtime['limits'];
  /** What capabilities add; complete before the first run moves. */
  readonly contributed: RuntimeContributions;
}

/** What capabilities add to the runtime. */
export interface RuntimeContributions {
  readonly reactions: readonly Reaction[];
  readonly seams: Partial<SeamDrivers>;
  readonly tools: readonly ToolSource[];
}

/** Builds the runtime. Seams that no capability serves fail the nodes that use them. */
export function createRuntime({ contributed, nodes, ...parts }: RuntimeParts): Runtime {
  const { store, clock } = parts;
  const plans = new Plans(store);
  const unserved: SeamDrivers = {
    model: unprovidedSeam('aiProviders'),
    annotate: unprovidedSeam('feedback'),
    prompts: unprovidedSeam('prompts'),
    http: unprovidedSeam('httpClient'),
    mail: unprovidedSeam('email'),
    kv: unprovidedSeam('kvStorage'),
    memory: unprovidedSeam('memory'),
    agent: unprovidedSeam('agents'),
    tool: (...call) => toolSeam(contributed.tools, clock)(...call),
    verifiers: unprovidedSeam('verifiers'),
  };
  let seams: SeamDrivers | undefined;
  return {
    ...parts,
    hub: new Hub(),
    plans,
    reader: new RunReader(store, plans, clock),
    turns: new Turns(),
    catalog: catalogOf(nodes),
    get seams() {
      seams ??= { ...unserved, ...contributed.seams };
      return seams;
    },
    get tools() {
      return contributed.tools;
    },
    get reactions() {
      return contributed.reactions;
    },
    provided: new Set(),
  };
}
