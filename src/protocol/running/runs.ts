import { type Static, Type } from 'typebox';
import { BudgetPolicy } from '../ai/models.ts';
import { AnyObject, Closed, MapOf, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { IssuedWebhook } from '../operations/webhooks.ts';
import { DRAIN_POLICIES, Owner, RunEventDoc } from './events.ts';
import { RUN_STATUSES } from './run-status.ts';
import { AgentRef } from './workflows.ts';

const Optional = Type.Optional;

export { isTerminalStatus, RUN_STATUSES, type RunStatus } from './run-status.ts';

/** `eventLogSchemaVersion` of a log that uses the event types of protocol v1. */
export const EVENT_LOG_SCHEMA_VERSION = 2;
/** `schemaVersion` of each event. */
export const EVENT_SCHEMA_VERSION = 1;
/** The version of the protocol that this host serves. */
export const PROTOCOL_VERSION = '1.0';
/** Incremented when runs started by an older engine would fold differently. */
export const ENGINE_VERSION = 1;

/** The id of a run. */
export const RunId = Type.String({ minLength: 1, maxLength: 128 });
/** Path parameters of operations on a run. */
export const RunParams = Closed({ runId: RunId });

const MockProvider = Closed({ id: Type.String({ minLength: 1, maxLength: 128 }), config: Optional(AnyObject) });

/** The members of `configurable` that the protocol reserves; others are passed on to the nodes. */
export const Configurable = Type.Object({
  recursionLimit: Optional(Type.Integer({ minimum: 1, description: 'Maximum number of node executions' })),
  runTimeoutMs: Optional(Type.Integer({ minimum: 1, description: 'Maximum duration of the run' })),
  maxLoopIterations: Optional(Type.Integer({ minimum: 1 })),
  model: Optional(NonEmpty),
  temperature: Optional(Type.Number({ minimum: 0, maximum: 2 })),
  maxTokens: Optional(Type.Integer({ minimum: 1 })),
  escalationThreshold: Optional(Type.Number({ minimum: 0, maximum: 1 })),
  reasoningVerbosity: Optional(OneOf(['summary', 'full', 'off'])),
  promptOverrides: Optional(MapOf(Type.String())),
  mockProvider: Optional(MockProvider),
  budget: Optional(BudgetPolicy),
  ai: Optional(
    Type.Object({
      provider: Optional(NonEmpty),
      model: Optional(NonEmpty),
      credentialRef: Optional(NonEmpty),
    }),
  ),
});
/** Valid options of a run, with any further members that its nodes understand. */
export type Configurable = Static<typeof Configurable> & Record<string, unknown>;

/** Maximum number of tags on a run. */
export const TAGS_MAX = 100;
/** Labels by which runs can be listed. */
export const Tags = Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
  maxItems: TAGS_MAX,
  description: 'Labels by which runs can be listed',
});

/** Starts a run. */
export const CreateRunRequest = Closed(
  {
    workflowId: Optional(Type.String({ minLength: 1, description: 'Id of the workflow to run' })),
    inputs: Optional(
      MapOf(Type.Unknown(), { description: "Values of the workflow's variables; other keys are accepted too" }),
    ),
    tenantId: Optional(Type.String({ description: "Must match the credential's tenant" })),
    scopeId: Optional(
      Type.String({ description: 'Concurrency scope: with `X-Dedup: enforce`, at most one live run may have it' }),
    ),
    callbackUrl: Optional(
      Type.String({
        format: 'uri',
        description: 'https URL that gets the interrupts and the end of the run, signed and retried like webhooks',
      }),
    ),
    configurable: Optional(Configurable),
    tags: Optional(Tags),
    metadata: Optional(
      MapOf(Type.Unknown(), { description: 'Free-form data of the caller, not interpreted by the engine' }),
    ),
    residency: Optional(AnyObject),
    mode: Optional(Type.Literal('eval')),
    evalSuiteRef: Optional(Type.Unknown()),
    agentId: Optional(Type.String()),
  },
  { $id: 'CreateRunRequest' },
);
/** A well-formed request; `mode` and `residency` are refused, because this host lacks them. */
export type CreateRunRequest = Static<typeof CreateRunRequest>;

/** The run that was created, and where to follow it. */
export const CreateRunReply = Type.Object(
  {
    runId: RunId,
    status: OneOf(RUN_STATUSES),
    eventsUrl: Type.String({ format: 'uri' }),
    statusUrl: Optional(Type.String({ format: 'uri' })),
    callback: Optional(IssuedWebhook),
  },
  { $id: 'CreateRunReply' },
);
/** A created run; a retry with the same idempotency key gets the same reply. */
export type CreateRunReply = Static<typeof CreateRunReply>;

/** The state of one node in a snapshot. */
export const NodeStateDoc = Type.Object({
  status: OneOf(['running', 'retrying', 'suspended', 'waiting', 'completed', 'failed', 'skipped', 'cancelled']),
  attempt: Optional(Type.Integer({ minimum: 0 })),
  startedAt: Optional(Timestamp),
  endedAt: Optional(Timestamp),
  outputs: Optional(AnyObject),
  error: Optional(AnyObject),
  reason: Optional(Type.String()),
  childRunId: Optional(NonEmpty),
});
/** The state of a node; nodes that were not reached yet have none. */
export type NodeStateDoc = Static<typeof NodeStateDoc>;

/** What the model calls of a run have used; what nobody reported is missing, not zero. */
export const RunCost = Closed({
  usd: Optional(Type.Number({ minimum: 0, description: 'Only if the price of every call is known' })),
  tokens: Optional(
    Closed({
      input: Optional(Type.Integer({ minimum: 0 })),
      output: Optional(Type.Integer({ minimum: 0 })),
    }),
  ),
  model: Optional(Type.String({ description: 'Of the last call' })),
  provider: Optional(Type.String({ description: 'Of the last call' })),
});

const RelatedRun = Type.Object({ runId: RunId, status: OneOf(RUN_STATUSES) });
/** Forks that a snapshot lists at most. */
export const FORKS_SHOWN_MAX = 100;

/** A `replay` repeats its source with recorded results; a `branch` continues from a point with real effects. */
export const FORK_MODES = ['replay', 'branch'] as const;

/** The current state of a run, with sensitive values masked. */
export const RunSnapshot = Type.Object(
  {
    runId: RunId,
    workflowId: NonEmpty,
    workflowVersion: Optional(
      Type.Integer({ minimum: 1, description: 'Registered version of the workflow that the run uses' }),
    ),
    status: OneOf(RUN_STATUSES),
    owner: Optional(Owner),
    currentNodeId: Optional(Type.String()),
    interrupt: Optional(
      Type.Object({
        interruptId: NonEmpty,
        kind: NonEmpty,
        key: NonEmpty,
        nodeId: NonEmpty,
        data: AnyObject,
        expiresAt: Optional(Timestamp),
        interruptToken: Optional(
          Type.String({ description: 'Token that authorizes an answer to this interrupt, without other credentials' }),
        ),
        callbackUrl: Optional(Type.String({ format: 'uri' })),
      }),
    ),
    createdAt: Optional(Timestamp),
    startedAt: Optional(Timestamp),
    completedAt: Optional(Timestamp),
    endedAt: Optional(Timestamp),
    nodeStates: Optional(MapOf(NodeStateDoc)),
    inputs: Optional(AnyObject),
    variables: Optional(AnyObject),
    channels: Optional(AnyObject),
    error: Optional(Closed({ code: NonEmpty, message: NonEmpty, details: Optional(AnyObject) })),
    engineVersion: Optional(Type.String()),
    eventLogSchemaVersion: Optional(Type.Integer({ minimum: 0 })),
    tags: Optional(Tags),
    metadata: Optional(AnyObject),
    configurable: Optional(AnyObject),
    metrics: Optional(Type.Object({ openwopCost: Optional(RunCost) })),
    agent: Optional(AgentRef),
    runOrchestrator: Optional(AgentRef),
    parentRunId: Optional(RunId),
    parentNodeId: Optional(Type.String()),
    childRuns: Optional(Type.Array(RelatedRun)),
    forkedFrom: Optional(Type.Object({ runId: RunId, fromSeq: Type.Integer({ minimum: 0 }), mode: OneOf(FORK_MODES) })),
    forks: Optional(Type.Array(RelatedRun, { description: `The newest ${FORKS_SHOWN_MAX} forks of the run` })),
  },
  { $id: 'RunSnapshot' },
);
/** A snapshot as returned to callers; `interrupt` is present while the run waits for a person. */
export type RunSnapshot = Static<typeof RunSnapshot>;

/** A run as listed. */
export const RunSummary = Type.Object(
  {
    runId: NonEmpty,
    workflowId: NonEmpty,
    workflowVersion: Type.Integer(),
    status: OneOf(RUN_STATUSES),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    endedAt: Optional(Timestamp),
    errorCode: Optional(Type.String()),
    outcome: Optional(
      Type.String({ description: 'The beginning of its result, of its error, or of why it was cancelled' }),
    ),
    parentRunId: Optional(NonEmpty),
    forkedFrom: Optional(Type.Object({ runId: RunId, mode: OneOf(FORK_MODES) })),
    preview: Optional(Type.Boolean({ description: 'Whether it repeats another run with the draft of a proposal' })),
    cost: Optional(RunCost),
  },
  { $id: 'RunSummary' },
);
/** A row of a list of runs, without inputs and with the beginning of its result. */
export type RunSummary = Static<typeof RunSummary>;

const Reason = Optional(Type.String({ maxLength: 2_000 }));

/** Cancels a run. */
export const CancelRequest = Closed({ reason: Reason }, { $id: 'CancelRequest' });
/** The status after the cancellation. */
export const CancelReply = Type.Object({ runId: RunId, status: OneOf(RUN_STATUSES) }, { $id: 'CancelReply' });

/** Maximum number of runs in one bulk cancellation. */
export const BULK_CANCEL_MAX = 100;
/** Cancels several runs. */
export const BulkCancelRequest = Closed({ runIds: Type.Array(NonEmpty), reason: Reason }, { $id: 'BulkCancelRequest' });
/** The result for one run of a bulk cancellation. */
export const BulkCancelResult = Type.Union([
  Closed({ runId: Type.String(), ok: Type.Literal(true), status: OneOf(['cancelling', 'cancelled']) }),
  Closed({
    runId: Type.String(),
    ok: Type.Literal(false),
    error: Closed({ code: NonEmpty, message: NonEmpty }),
  }),
]);
/** The result for one run, discriminated by `ok`; one failure does not affect the others. */
export type BulkCancelResult = Static<typeof BulkCancelResult>;
/** One result per requested run, in order. */
export const BulkCancelReply = Type.Object({ results: Type.Array(BulkCancelResult) }, { $id: 'BulkCancelReply' });

/** Pauses a run. */
export const PauseRequest = Closed(
  { reason: Reason, drainPolicy: Optional(OneOf(DRAIN_POLICIES)) },
  { $id: 'PauseRequest' },
);
/** The response to a pause. */
export const PauseReply = Type.Object(
  { runId: RunId, status: Type.Literal('paused'), pausedAt: Timestamp },
  { $id: 'PauseReply' },
);
/** Resumes a paused run. */
export const ResumeRequest = Closed({ reason: Reason }, { $id: 'ResumeRequest' });
/** The response to a resume. */
export const ResumeReply = Type.Object(
  { runId: RunId, status: Type.Literal('running'), resumedAt: Timestamp },
  { $id: 'ResumeReply' },
);

/** The whole log of a run. */
export const RunEvents = Type.Object({ events: Type.Array(RunEventDoc) }, { $id: 'RunEvents' });

/** A page of events, for clients that cannot use streams. */
export const PollReply = Type.Object(
  {
    runId: RunId,
    events: Type.Array(RunEventDoc),
    isComplete: Type.Boolean(),
    lastEventSeq: Type.Integer(),
    runStatus: OneOf(RUN_STATUSES),
    isTerminal: Type.Boolean(),
  },
  { $id: 'PollReply' },
);
