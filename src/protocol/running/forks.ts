import { type Static, Type } from 'typebox';
import { AnyObject, Closed, NonEmpty, OneOf } from '../format/schema.ts';
import { Configurable, FORK_MODES, RUN_STATUSES, Tags } from './runs.ts';

export { FORK_MODES } from './runs.ts';

/** One of FORK_MODES. */
export type ForkMode = (typeof FORK_MODES)[number];

const RunOptionsOverlay = Closed({
  inputs: Type.Optional(AnyObject),
  configurable: Type.Optional(Configurable),
  tags: Type.Optional(Tags),
  metadata: Type.Optional(AnyObject),
  workflowVersion: Type.Optional(Type.Integer({ minimum: 1, description: 'Registered version of the workflow' })),
});

/** Creates a run from the history of another. */
export const ForkRequest = Closed({
  mode: OneOf(FORK_MODES),
  fromSeq: Type.Optional(
    Type.Integer({ minimum: 0, description: 'Sequence of the first event that is not copied; a replay defaults to 0' }),
  ),
  runOptionsOverlay: Type.Optional(RunOptionsOverlay),
});
/** A well-formed fork request; the overlay replaces options of the source run. */
export type ForkRequest = Static<typeof ForkRequest>;

/** The run that was created. */
export const ForkReply = Type.Object(
  {
    runId: NonEmpty,
    sourceRunId: NonEmpty,
    fromSeq: Type.Integer({ minimum: 0 }),
    mode: OneOf(FORK_MODES),
    status: OneOf(RUN_STATUSES),
    eventsUrl: NonEmpty,
  },
  { $id: 'ForkReply' },
);
/** The new run with its source; its log starts with a copy of the events before `fromSeq`. */
export type ForkReply = Static<typeof ForkReply>;
