import { type Static, Type } from 'typebox';
import { RunError } from '../errors.ts';
import { AnyObject, Closed, MapOf, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { NAME } from '../trust/keys.ts';
import { RunId } from './runs.ts';

const Optional = Type.Optional;

/** The most seconds that a claim waits for work. */
export const CLAIM_WAIT_MAX_S = 30;
/** The most tasks that one claim gets. */
export const CLAIM_MAX = 100;
/** Seconds that a lease lasts unless the worker asks for others. */
export const LEASE_S = 30;
const LEASE_MAX_S = 3_600;
const TIMEOUT_MAX_MS = 366 * 86_400_000;
const LOGS_MAX = 1_000;

/** The pool of types and keys that name none. */
export const DEFAULT_POOL = 'default';
/** Names of pools. */
export const PoolName = Type.String({ pattern: NAME.source, description: 'Name of a pool of workers' });

/** A type id that workers may serve: `<yours>.<name>`. */
export const WORKER_TYPE_ID = /^[a-z][a-z0-9-]*(\.[A-Za-z][A-Za-z0-9-]*)+$/;
const TypeId = Type.String({ pattern: WORKER_TYPE_ID.source, maxLength: 128 });

const JsonSchema = MapOf(Type.Unknown(), { description: 'JSON Schema' });
const members = {
  description: Type.String({ minLength: 1, maxLength: 1_000, description: 'What the node does, in one sentence' }),
  config: Optional(JsonSchema),
  inputs: Optional(JsonSchema),
  outputs: Optional(JsonSchema),
  timeoutMs: Optional(
    Type.Integer({ minimum: 1, maximum: TIMEOUT_MAX_MS, description: 'Longest time of an attempt, waiting included' }),
  ),
  pool: Optional(PoolName),
  tool: Optional(
    OneOf(['pure', 'read', 'write'], {
      description: 'Lets agents call it as `openwop:<typeId>`; says what it does to the world',
    }),
  ),
};

/** Declares a node type whose attempts are made by workers. */
export const WorkerTypeRequest = Closed(members, { $id: 'WorkerTypeRequest' });
/** A declaration; schemas that are missing accept everything. */
export type WorkerTypeRequest = Static<typeof WorkerTypeRequest>;

/** A node type that workers serve. */
export const WorkerType = Type.Object(
  {
    typeId: NonEmpty,
    ...members,
    pool: PoolName,
    seenAt: Optional(Type.String({ format: 'date-time', description: 'When a worker last asked for its attempts' })),
    waiting: Optional(Type.Integer({ minimum: 0, description: 'Attempts that no worker has; in lists only' })),
    leased: Optional(Type.Integer({ minimum: 0, description: 'Attempts that a worker has; in lists only' })),
  },
  { $id: 'WorkerType' },
);
/** A declared type as it is shown. */
export type WorkerType = Static<typeof WorkerType>;

/** Names the type of a declaration. */
export const WorkerTypeParams = Closed({ typeId: TypeId });

/** Asks for attempts. */
export const ClaimTasksRequest = Closed(
  {
    types: Type.Array(TypeId, { minItems: 1, maxItems: 100, uniqueItems: true }),
    worker: Optional(Type.String({ minLength: 1, maxLength: 128, description: 'Name of the worker, for people' })),
    max: Optional(Type.Integer({ minimum: 1, maximum: CLAIM_MAX, description: 'Most tasks to get; 1 by default' })),
    waitSeconds: Optional(
      Type.Integer({ minimum: 0, maximum: CLAIM_WAIT_MAX_S, description: 'How long to wait for the first task' }),
    ),
    leaseSeconds: Optional(
      Type.Integer({ minimum: 1, maximum: LEASE_MAX_S, description: `Time between heartbeats; ${LEASE_S} by default` }),
    ),
  },
  { $id: 'ClaimTasksRequest' },
);
/** A well-formed claim. */
export type ClaimTasksRequest = Static<typeof ClaimTasksRequest>;

const epoch = Type.Integer({ minimum: 1, description: 'Of the lease, as the claim answered it' });

const outcomeOfChild = Type.Object(
  {
    runId: RunId,
    status: OneOf(['completed', 'failed', 'cancelled']),
    variables: AnyObject,
    outputs: MapOf(AnyObject, { description: 'Outputs of its last nodes, by node id' }),
    error: Optional(RunError),
  },
  { $id: 'WorkerChild' },
);
/** How a child run ended that a worker asked for. */
export type WorkerChild = Static<typeof outcomeOfChild>;

/** One attempt at a node, for the worker that has its lease. */
export const WorkerTask = Type.Object(
  {
    taskId: NonEmpty,
    epoch,
    leaseUntil: Timestamp,
    typeId: NonEmpty,
    runId: RunId,
    nodeId: NonEmpty,
    attempt: Type.Integer({ description: 'Number of the attempt, from 0' }),
    config: AnyObject,
    inputs: AnyObject,
    deadline: Optional(
      Type.String({ format: 'date-time', description: 'When the attempt fails for lack of a result' }),
    ),
    answers: Optional(
      Type.Array(Type.Unknown(), { description: 'What its interrupts were resumed with so far, in order' }),
    ),
    children: Optional(Type.Array(outcomeOfChild, { description: 'How its child runs ended so far, in order' })),
    waitedUntil: Optional(Type.String({ format: 'date-time', description: 'The time that it has waited for last' })),
    traceparent: Optional(
      Type.String({ description: 'W3C trace context of the attempt: requests that send it are part of the trace' }),
    ),
    tracestate: Optional(Type.String({ description: 'What belongs to `traceparent`, to be passed on unchanged' })),
  },
  { $id: 'WorkerTask' },
);
/** A claimed task. */
export type WorkerTask = Static<typeof WorkerTask>;

/** The tasks of a claim; none if there was nothing to do. */
export const ClaimedTasks = Type.Object({ tasks: Type.Array(WorkerTask) }, { $id: 'ClaimedTasks' });
/** What a claim got. */
export type ClaimedTasks = Static<typeof ClaimedTasks>;

/** Open attempts that a list has at most. */
export const OPEN_TASKS_MAX = 200;
/** An attempt that waits for a worker, or that one has. */
export const OpenTask = Type.Object(
  {
    taskId: NonEmpty,
    typeId: NonEmpty,
    pool: PoolName,
    runId: RunId,
    nodeId: NonEmpty,
    attempt: Type.Integer({ description: 'Number of the attempt, from 0' }),
    state: OneOf(['waiting', 'leased']),
    since: Type.String({ format: 'date-time', description: 'When it was put into the queue' }),
    worker: Optional(Type.String({ description: 'Name of the worker that has the lease, if it has one' })),
    leaseUntil: Optional(Timestamp),
    progress: Optional(Type.String({ description: 'What the worker says that it is doing' })),
  },
  { $id: 'OpenTask' },
);
/** An open attempt as people see it, without what the worker gets. */
export type OpenTask = Static<typeof OpenTask>;

/** Names a task. */
export const TaskParams = Closed({ taskId: Type.String({ minLength: 1, maxLength: 128 }) });

/** Keeps a lease. */
export const TaskHeartbeat = Closed({ epoch, progress: Optional(Type.String({ maxLength: 1_000 })) });
/** A sign of life, with what the worker is doing. */
export type TaskHeartbeat = Static<typeof TaskHeartbeat>;

/** The answer to a heartbeat. */
export const TaskLease = Type.Object(
  {
    leaseUntil: Timestamp,
    isCancelled: Type.Boolean({
      description: 'Whether the attempt was cancelled or its run has ended: stop, and report nothing',
    }),
  },
  { $id: 'TaskLease' },
);
/** How long a lease lasts now. */
export type TaskLease = Static<typeof TaskLease>;

const effectName = Type.String({ minLength: 1, maxLength: 200, description: 'Tells the effects of a node apart' });
/** Asks whether an effect may be performed. */
export const EffectClaim = Closed({ epoch, name: effectName });
/** The intention to perform an effect. */
export type EffectClaim = Static<typeof EffectClaim>;

/** Records the result of an effect. */
export const EffectResult = Closed({ epoch, name: effectName, result: Type.Unknown() });
/** What an effect resulted in. */
export type EffectResult = Static<typeof EffectResult>;

/** Whether an effect is to be performed, or its recorded result. */
export const EffectState = Type.Object(
  {
    state: OneOf(['claimed', 'done'], { description: '`claimed`: perform it now; `done`: take the result' }),
    idempotencyKey: Type.String({ description: 'The same for every attempt at this effect' }),
    result: Optional(Type.Unknown()),
  },
  { $id: 'WorkerEffect' },
);
/** The state of an effect in the ledger. */
export type EffectState = Static<typeof EffectState>;

const TaskLog = Closed({ message: Type.String({ minLength: 1, maxLength: 4_000 }), fields: Optional(AnyObject) });
const logs = Optional(
  Type.Array(TaskLog, { maxItems: LOGS_MAX, description: 'Lines for the event log of the run, in order' }),
);

/** Reports the outputs of a node. */
export const TaskCompletion = Closed({ epoch, outputs: AnyObject, logs });
/** A successful attempt. */
export type TaskCompletion = Static<typeof TaskCompletion>;

/** Reports that an attempt failed. */
export const TaskFailure = Closed({
  epoch,
  error: Closed(RunError.properties),
  logs,
});
/** A failed attempt; it is retried as the node says, unless `retryable` is false. */
export type TaskFailure = Static<typeof TaskFailure>;

const timeoutMs = Optional(Type.Integer({ minimum: 1, maximum: TIMEOUT_MAX_MS }));

/** What an attempt waits for: exactly one of the members. */
const WaitsFor = Closed(
  {
    answer: Optional(
      Closed(
        { prompt: Type.String({ minLength: 1, maxLength: 4_000 }), answer: Optional(JsonSchema), timeoutMs },
        { description: 'The answer of a person to `prompt`' },
      ),
    ),
    event: Optional(
      Closed(
        { eventType: Type.String({ minLength: 1, maxLength: 256 }), correlation: AnyObject, timeoutMs },
        { description: 'An event from outside' },
      ),
    ),
    until: Optional(Type.String({ format: 'date-time', description: 'A time' })),
    child: Optional(
      Closed(
        { workflowId: Type.String({ minLength: 1, maxLength: 128 }), inputs: Optional(AnyObject) },
        { description: 'The end of a run of a workflow that the config of the node names' },
      ),
    ),
  },
  { minProperties: 1, maxProperties: 1 },
);
/** What the next call of the code gets. */
export type WaitsFor = Static<typeof WaitsFor>;

/** Reports that an attempt has to wait. The task comes back, to any worker, once what it waits for is there. */
export const TaskSuspension = Closed({ epoch, waitsFor: WaitsFor });
/** An attempt that waits without a worker. */
export type TaskSuspension = Static<typeof TaskSuspension>;
