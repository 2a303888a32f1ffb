/** Ids of events of a run that later events name as their cause. */
export interface RunCauses {
  started?: string;
  /** The last event that settled a node. */
  settled?: string;
  pauseRequested?: string;
  /** The last answer to an interrupt. */
  answered?: string;
  /** The last event that spent from the budget, and the last that reported it. */
  spent?: string;
  consumed?: string;
  exhausted?: string;
  /** The supervisor's last decision, and what happened since that the next one is about. */
  decided?: string | undefined;
  turn?: string;
  /** The last handoff that began: its child has no id yet. */
  began?: string;
  /** The last verdict on a result, and the last evaluation of a goal. */
  verified?: string;
  evaluated?: string;
  /** Child run id to the event that records its start, and to the last transition of its handoff. */
  readonly children: Map<string, string>;
  readonly handoffs: Map<string, string>;
}

/** Ids of events about one node that later events name as their cause. */
export interface NodeCauses {
  /** What made the node ready, or excluded it. */
  ready?: string;
  /** What the node acts on: its start, an answer, the end of a child. */
  acting?: string;
  suspended?: string;
  asked?: string;
  answered?: string;
  /** The invocation of an agent, and its decision. */
  invoked?: string | undefined;
  decided?: string | undefined;
  settled?: string;
}
