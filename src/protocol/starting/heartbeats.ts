import { type Static, Type } from 'typebox';
import type { JsonObject } from '../format/json.ts';
import { AnyObject, Closed, MapOf, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { Owner } from '../running/events.ts';
import { RunId } from '../running/runs.ts';
import { Observation, ObservationExpression } from './observations.ts';

const Optional = Type.Optional;

/** Shorter intervals are raised to this. */
export const MIN_INTERVAL_SEC = 1;
/** Timeout of one observation. */
export const MAX_RUNTIME_MS = 5_000;

const spec = {
  intervalSec: Type.Integer({ minimum: 0, maximum: 31 * 86_400, description: 'Seconds between two observations' }),
  observe: Optional(Observation),
  state: Optional(
    Type.String({
      ...ObservationExpression,
      description:
        'CEL expression over `observed` and `prior` for the part to compare; defaults to the digest for a page, otherwise to the whole value',
    }),
  ),
  when: Optional(
    Type.String({
      ...ObservationExpression,
      description: 'CEL expression over `from` and `to`: whether a change starts a run; defaults to every change',
    }),
  ),
  workflowId: Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'Workflow to run on a change; without it no run is started',
    }),
  ),
  inputs: Optional(MapOf(Type.Unknown(), { description: 'Inputs of each run, in addition to `heartbeat`' })),
};

/** Creates a heartbeat: a periodic observation that starts a run when something changes. */
export const HeartbeatRequest = Closed(spec, { $id: 'HeartbeatRequest' });
/** A well-formed request; its CEL expressions are compiled when the heartbeat is created. */
export type HeartbeatRequest = Static<typeof HeartbeatRequest>;

/** Results of one observation. */
export const TICK_STATUSES = ['ok', 'timeout', 'error'] as const;
/** One of TICK_STATUSES. */
export type TickStatus = (typeof TICK_STATUSES)[number];

/** A heartbeat with its last observation. */
export const Heartbeat = Type.Object(
  {
    id: NonEmpty,
    ...spec,
    inputs: Optional(AnyObject),
    nextTickAt: Optional(Type.String({ format: 'date-time', description: 'Absent if the heartbeat is disabled' })),
    lastTickAt: Optional(Timestamp),
    lastStatus: Optional(OneOf(TICK_STATUSES)),
    lastError: Optional(Type.String({ description: 'Why the last observation failed' })),
    lastState: Optional(
      Type.Unsafe<JsonObject>({
        ...AnyObject,
        description: 'Last observed state, with which the next one is compared',
      }),
    ),
    lastChangedAt: Optional(Timestamp),
    lastRunId: Optional(RunId),
    owner: Owner,
    belongsTo: Optional(
      Type.String({ description: 'Resource that owns it (a goal or a proposal), if it was not created by a caller' }),
    ),
    createdAt: Timestamp,
  },
  { $id: 'Heartbeat' },
);
/** A heartbeat as returned to callers; members that start with `last` are absent before the first tick. */
export type Heartbeat = Static<typeof Heartbeat>;

/** Payload of `heartbeat.evaluated`: the result of an observation. */
export const HeartbeatEvaluated = Closed({
  heartbeatId: NonEmpty,
  status: OneOf(TICK_STATUSES),
  changed: Type.Boolean(),
});
/** A valid payload of `heartbeat.evaluated`; `changed` compares with the previous observation. */
export type HeartbeatEvaluated = Static<typeof HeartbeatEvaluated>;

/** Payload of `heartbeat.stateChanged`: the states before and after. */
export const HeartbeatStateChanged = Closed({ heartbeatId: NonEmpty, from: AnyObject, to: AnyObject });
/** A valid payload of `heartbeat.stateChanged`, recorded only if the state differs. */
export type HeartbeatStateChanged = Static<typeof HeartbeatStateChanged>;

/** An event of a heartbeat; it is not part of any run's log. */
export const HeartbeatEvent = Type.Object(
  {
    sequence: Type.Integer({ minimum: 1 }),
    timestamp: Timestamp,
    type: OneOf(['heartbeat.evaluated', 'heartbeat.stateChanged']),
    payload: Type.Union([HeartbeatEvaluated, HeartbeatStateChanged]),
  },
  { $id: 'HeartbeatEvent' },
);
/** An entry of the log of a heartbeat, which has its own sequence. */
export type HeartbeatEvent = Static<typeof HeartbeatEvent>;
