import { type Static, Type } from 'typebox';
import { AnyObject, Closed, MapOf, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { Owner } from '../running/events.ts';
import { RunId } from '../running/runs.ts';

const Optional = Type.Optional;

/** What happens to times that passed while no host was running: `skip` them, or start one run (`once`). */
export const MISSED_POLICIES = ['skip', 'once'] as const;
/** One of MISSED_POLICIES. */
export type MissedPolicy = (typeof MISSED_POLICIES)[number];

const spec = {
  workflowId: Type.String({ minLength: 1, maxLength: 128, description: 'Id of the workflow to run' }),
  inputs: Optional(MapOf(Type.Unknown(), { description: 'Inputs of each run' })),
  cron: Optional(
    Type.String({
      minLength: 1,
      maxLength: 256,
      description: 'Cron expression with five fields, or six starting with seconds',
    }),
  ),
  timezone: Optional(
    Type.String({ minLength: 1, maxLength: 64, description: 'IANA time zone of the cron expression; defaults to UTC' }),
  ),
  runAt: Optional(
    Type.String({ format: 'date-time', maxLength: 64, description: 'Run once at this time, instead of by cron' }),
  ),
  missed: Optional(
    OneOf(MISSED_POLICIES, {
      description:
        'How to handle times that passed while no host was running: skip them, or start one run for all; defaults to skip',
    }),
  ),
};

/** What to run and when; also the content of an automation proposal. */
export const ScheduleSpec = Closed(spec, { $id: 'ScheduleSpec' });
/** A well-formed specification; it needs either `cron` or `runAt`. */
export type ScheduleSpec = Static<typeof ScheduleSpec>;

/** Creates or replaces a schedule. */
export const ScheduleRequest = Closed(
  { ...spec, enabled: Optional(Type.Boolean({ description: 'If false, the schedule is kept but starts no runs' })) },
  { $id: 'ScheduleRequest' },
);
/** A well-formed request; the schedule is enabled unless `enabled` is false. */
export type ScheduleRequest = Static<typeof ScheduleRequest>;

/** A schedule with its last and next run. */
export const Schedule = Type.Object(
  {
    id: NonEmpty,
    workflowId: NonEmpty,
    inputs: Optional(AnyObject),
    cron: Optional(NonEmpty),
    runAt: Optional(Timestamp),
    timezone: NonEmpty,
    missed: OneOf(MISSED_POLICIES),
    enabled: Type.Boolean({ description: 'Whether the schedule will start runs' }),
    nextRunAt: Optional(Timestamp),
    lastRunAt: Optional(Timestamp),
    lastRunId: Optional(RunId),
    lastMissedAt: Optional(Type.String({ format: 'date-time', description: 'Last scheduled time that was missed' })),
    lastError: Optional(
      Type.Object(
        { code: NonEmpty, message: NonEmpty, at: Timestamp },
        { description: 'Why the last run could not be started' },
      ),
    ),
    owner: Owner,
    belongsTo: Optional(
      Type.String({ description: 'Resource that owns it (a goal or a proposal), if it was not created by a caller' }),
    ),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { $id: 'Schedule' },
);
/** A schedule as returned to callers; without `nextRunAt` it starts no more runs. */
export type Schedule = Static<typeof Schedule>;
