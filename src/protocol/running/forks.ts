import { type Static, Type } from 'typebox';
import { AnyObject, Closed, NonEmpty, OneOf } from '../format/schema.ts';
import { Configurable, RUN_STATUSES, Tags } from './runs.ts';

export const FORK_MODES = ['replay', 'branch'] as const;
export type ForkMode = (typeof FORK_MODES)[number];

const RunOptionsOverlay = Closed({
  inputs: Type.Optional(AnyObject),
  configurable: Type.Optional(Configurable),
  tags: Type.Optional(Tags),
  metadata: Type.Optional(AnyObject),
  workflowVersion: Type.Optional(Type.Integer({ minimum: 1, description: 'A registered version of the workflow' })),
});

export const ForkRequest = Closed({
  mode: OneOf(FORK_MODES),
  fromSeq: Type.Optional(
    Type.Integer({ minimum: 0, description: 'The first event that happens anew; a replay begins at 0 without it' }),
  ),
  runOptionsOverlay: Type.Optional(RunOptionsOverlay),
});
export type ForkRequest = Static<typeof ForkRequest>;

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
export type ForkReply = Static<typeof ForkReply>;
