/** How many envelopes a model may send. Discovery announces these numbers, and the mailbox enforces them. */
export const LIMITS = {
  /** Clarifications in one visit of a node. */
  clarificationRounds: 3,
  /** Requests for a schema in one visit of a node, and corrections of one answer. */
  schemaRounds: 2,
  /** Envelopes between two questions of the host or answers of a person. */
  envelopesPerTurn: 5,
} as const;
