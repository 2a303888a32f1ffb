import { Optional, type Static, Type } from 'typebox';
import { AnyObject, Closed, MapOf, NonEmpty, OneOf } from '../format/schema.ts';
import { CreateRunRequest, RUN_STATUSES, RunId } from './runs.ts';

/** How long a call waits for the run if the caller does not say. */
export const CALL_DEFAULT_S = 30;
/** How long a call waits at most. */
const CALL_MAX_S = 60;

const { inputs, configurable, tags, metadata } = CreateRunRequest.properties;

/** Runs a workflow and waits for its result. */
export const CallRequest = Closed(
  {
    workflowId: Type.String({ minLength: 1, description: 'Id of the workflow to run' }),
    inputs,
    configurable,
    tags,
    metadata,
    waitSeconds: Optional(
      Type.Integer({
        minimum: 1,
        maximum: CALL_MAX_S,
        description: `How long to wait for the end of the run; ${CALL_DEFAULT_S} if omitted`,
      }),
    ),
  },
  { $id: 'CallRequest' },
);
/** A well-formed call. */
export type CallRequest = Static<typeof CallRequest>;

const called = { runId: RunId, status: OneOf(RUN_STATUSES), statusUrl: Type.String({ format: 'uri' }) };

/** A call whose run goes on: it takes longer, or waits for a person. */
export const CallPending = Type.Object(called, { $id: 'CallPending' });
/** The run of a call that goes on. */
export type CallPending = Static<typeof CallPending>;

/** A call whose run has ended. */
export const CallResult = Type.Object(
  {
    ...called,
    outputs: MapOf(AnyObject, { description: 'Outputs of the last nodes of the run, by node id' }),
    error: Optional(Type.Object({ code: NonEmpty, message: Type.String() })),
  },
  { $id: 'CallResult' },
);
/** What came of a call. */
export type CallResult = Static<typeof CallResult>;
