/** Values of the wire format that clients choose from. Kept apart from the schemas, which take long to load. */

/** Bounds of a rating in feedback. */
export const RATING = { minimum: 1, maximum: 5 };

/** Time buckets for statistics, in UTC; weeks begin on Monday. */
export const BUCKETS = ['hour', 'day', 'week', 'month'] as const;
/** One of BUCKETS. */
export type Bucket = (typeof BUCKETS)[number];

/** States of a webhook delivery; `dead` is a dead letter, to be redelivered manually. */
export const DELIVERY_STATES = ['pending', 'delivered', 'dead'] as const;
/** One of DELIVERY_STATES. */
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/**
 * What came of a request to a webhook trigger. `ignored`: the filter did not let it pass; `invalid`: it gave no inputs
 * that the workflow takes; `failed`: the host would start no run; `refused`: its sender was not the expected one;
 * `limited`: there were too many; `challenge`: a sender wanted to know whether the address works.
 */
export const TRIGGER_OUTCOMES = [
  'started',
  'duplicate',
  'ignored',
  'invalid',
  'failed',
  'refused',
  'limited',
  'challenge',
] as const;
/** One of TRIGGER_OUTCOMES. */
export type TriggerOutcome = (typeof TRIGGER_OUTCOMES)[number];

/** Where tools come from. */
export const TOOL_SOURCES = ['node-pack', 'workflow', 'mcp', 'connector', 'host-extension'] as const;
/** One of TOOL_SOURCES. */
export type ToolSourceKind = (typeof TOOL_SOURCES)[number];
