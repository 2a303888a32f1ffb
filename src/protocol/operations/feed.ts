import { type Static, Type } from 'typebox';
import { Timestamp } from '../format/schema.ts';

/** Events of a tenant's feed. */
export const FEED_EVENTS = [
  'run.created',
  'run.status',
  'run.annotated',
  'proposal.created',
  'proposal.updated',
  'proposal.activated',
  'goal.updated',
  'goal.evaluated',
  'goal.closed',
  'inbox.changed',
  'inbox.viewers',
] as const;
/** One of FEED_EVENTS. */
export type FeedEvent = (typeof FEED_EVENTS)[number];

/** Data of a feed event: when it happened, and ids for reading the details. */
export const FeedData = Type.Object(
  {
    at: Timestamp,
    runId: Type.Optional(Type.String()),
    workflowId: Type.Optional(Type.String()),
    status: Type.Optional(Type.String()),
  },
  { $id: 'FeedData' },
);
/** The data of one feed event; ids that do not apply to the event are absent. */
export type FeedData = Static<typeof FeedData>;
