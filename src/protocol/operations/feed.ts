import { type Static, Type } from 'typebox';
import { Timestamp } from '../format/schema.ts';

/** What the feed of a tenant tells of. */
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
] as const;
export type FeedEvent = (typeof FEED_EVENTS)[number];

/** When it happened, ids to read more with, and small facts. */
export const FeedData = Type.Object(
  {
    at: Timestamp,
    runId: Type.Optional(Type.String()),
    workflowId: Type.Optional(Type.String()),
    status: Type.Optional(Type.String()),
  },
  { $id: 'FeedData' },
);
export type FeedData = Static<typeof FeedData>;
