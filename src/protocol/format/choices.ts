/** Words and bounds of the wire that clients choose from. They stand apart from the schemas, which take long to load. */

export const RATING = { minimum: 1, maximum: 5 };

/** Parts of a stretch of time, in UTC. Weeks begin on Mondays. */
export const BUCKETS = ['hour', 'day', 'week', 'month'] as const;
export type Bucket = (typeof BUCKETS)[number];

export const DELIVERY_STATES = ['pending', 'delivered', 'dead'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** Where tools come from. */
export const TOOL_SOURCES = ['node-pack', 'workflow', 'mcp', 'connector', 'host-extension'] as const;
export type ToolSourceKind = (typeof TOOL_SOURCES)[number];
