import { type Static, Type } from 'typebox';
import { AnyObject, Closed, MapOf, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { Owner } from '../running/events.ts';
import { RunId } from '../running/runs.ts';

const Optional = Type.Optional;

export const MISSED_POLICIES = ['skip', 'once'] as const;
export type MissedPolicy = (typeof MISSED_POLICIES)[number];

const spec = {
  workflowId: Type.String({ minLength: 1, maxLength: 128, description: 'The workflow to run' }),
  inputs: Optional(MapOf(Type.Unknown(), { description: 'What every run is given' })),
  cron: Optional(
    Type.String({ minLength: 1, maxLength: 256, description: 'Five fields, or six with seconds in front' }),
  ),
  timezone: Optional(
    Type.String({ minLength: 1, maxLength: 64, description: 'IANA name of the zone whose clock cron goes by; UTC' }),
  ),
  runAt: Optional(
    Type.String({ format: 'date-time', maxLength: 64, description: 'Run once, at this time, instead of by cron' }),
  ),
  missed: Optional(
    OneOf(MISSED_POLICIES, {
      description: 'What becomes of times that passed while no host was up: nothing, or one run for all of them; skip',
    }),
  ),
};

/** What is to run, and when. Also what an automation consists of. */
export const ScheduleSpec = Closed(spec, { $id: 'ScheduleSpec' });
export type ScheduleSpec = Static<typeof ScheduleSpec>;

export const ScheduleRequest = Closed(
  { ...spec, enabled: Optional(Type.Boolean({ description: 'Off keeps it without running anything' })) },
  { $id: 'ScheduleRequest' },
);
export type ScheduleRequest = Static<typeof ScheduleRequest>;

export const Schedule = Type.Object(
  {
    id: NonEmpty,
    workflowId: NonEmpty,
    inputs: Optional(AnyObject),
    cron: Optional(NonEmpty),
    runAt: Optional(Timestamp),
    timezone: NonEmpty,
    missed: OneOf(MISSED_POLICIES),
    enabled: Type.Boolean({ description: 'Whether there is a next time' }),
    nextRunAt: Optional(Timestamp),
    lastRunAt: Optional(Timestamp),
    lastRunId: Optional(RunId),
    lastMissedAt: Optional(
      Type.String({ format: 'date-time', description: 'The last time that passed without a run' }),
    ),
    lastError: Optional(
      Type.Object(
        { code: NonEmpty, message: NonEmpty, at: Timestamp },
        { description: 'Why no run could be started the last time' },
      ),
    ),
    owner: Owner,
    belongsTo: Optional(Type.String({ description: 'What made it, and changes it, where that is not a person' })),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { $id: 'Schedule' },
);
export type Schedule = Static<typeof Schedule>;
