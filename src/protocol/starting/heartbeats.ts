import { type Static, Type } from 'typebox';
import type { JsonObject } from '../format/json.ts';
import { AnyObject, Closed, MapOf, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { Owner } from '../running/events.ts';
import { RunId } from '../running/runs.ts';
import { Observation, ObservationExpression } from './observations.ts';

const Optional = Type.Optional;

/** Shorter intervals become this long. */
export const MIN_INTERVAL_SEC = 1;
/** A look that takes longer is given up. */
export const MAX_RUNTIME_MS = 5_000;

const spec = {
  intervalSec: Type.Integer({ minimum: 0, maximum: 31 * 86_400, description: 'From one look to the next' }),
  observe: Optional(Observation),
  state: Optional(
    Type.String({
      ...ObservationExpression,
      description:
        'CEL over `observed` and `prior`: what of it matters; of a page its digest where this is silent, else all of it',
    }),
  ),
  when: Optional(
    Type.String({
      ...ObservationExpression,
      description: 'CEL over `from` and `to`: whether a change starts a run; every change does where this is silent',
    }),
  ),
  workflowId: Optional(
    Type.String({ minLength: 1, maxLength: 128, description: 'What a change starts a run of; nothing without it' }),
  ),
  inputs: Optional(MapOf(Type.Unknown(), { description: 'What every run is given, besides `heartbeat`' })),
};

export const HeartbeatRequest = Closed(spec, { $id: 'HeartbeatRequest' });
export type HeartbeatRequest = Static<typeof HeartbeatRequest>;

export const TICK_STATUSES = ['ok', 'timeout', 'error'] as const;
export type TickStatus = (typeof TICK_STATUSES)[number];

export const Heartbeat = Type.Object(
  {
    id: NonEmpty,
    ...spec,
    inputs: Optional(AnyObject),
    nextTickAt: Optional(Type.String({ format: 'date-time', description: 'Missing for one that is off' })),
    lastTickAt: Optional(Timestamp),
    lastStatus: Optional(OneOf(TICK_STATUSES)),
    lastError: Optional(Type.String({ description: 'What went wrong the last time' })),
    lastState: Optional(Type.Unsafe<JsonObject>({ ...AnyObject, description: 'What changes are told from' })),
    lastChangedAt: Optional(Timestamp),
    lastRunId: Optional(RunId),
    owner: Owner,
    belongsTo: Optional(Type.String({ description: 'What made it, and changes it, where that is not a person' })),
    createdAt: Timestamp,
  },
  { $id: 'Heartbeat' },
);
export type Heartbeat = Static<typeof Heartbeat>;

export const HeartbeatEvaluated = Closed({
  heartbeatId: NonEmpty,
  status: OneOf(TICK_STATUSES),
  changed: Type.Boolean(),
});
export type HeartbeatEvaluated = Static<typeof HeartbeatEvaluated>;

export const HeartbeatStateChanged = Closed({ heartbeatId: NonEmpty, from: AnyObject, to: AnyObject });
export type HeartbeatStateChanged = Static<typeof HeartbeatStateChanged>;

/** What a heartbeat says. None of it is an event of a run. */
export const HeartbeatEvent = Type.Object(
  {
    sequence: Type.Integer({ minimum: 1 }),
    timestamp: Timestamp,
    type: OneOf(['heartbeat.evaluated', 'heartbeat.stateChanged']),
    payload: Type.Union([HeartbeatEvaluated, HeartbeatStateChanged]),
  },
  { $id: 'HeartbeatEvent' },
);
export type HeartbeatEvent = Static<typeof HeartbeatEvent>;
