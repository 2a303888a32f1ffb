import type { Refusal } from '../../../protocol/errors.ts';
import type { Schedule, ScheduleRequest } from '../../../protocol/starting/schedules.ts';
import type { Change } from '../../../runtime/change.ts';
import { door } from '../../capability.ts';
import type { Author, Before, Starters } from '../starter/door.ts';

export { decideSlot, triggersOf } from './rules.ts';
export { isTimeZone, latestSlot, nextSlot, offsetsIn, slotCount, type Timing } from './slots.ts';

/** Which schedules a list shows. */
export interface ScheduleFilter extends Before {
  readonly workflowId?: string | undefined;
}

/** Starts runs at a time, or repeatedly by the clock of a time zone. */
export interface Schedules extends Starters<ScheduleRequest, Schedule, ScheduleFilter> {
  /** Takes effect at once. Later runs are started on behalf of whoever replaced the schedule. */
  replace(author: Author, id: string, request: ScheduleRequest): Promise<Change<Schedule> | Refusal>;
}

/** The door to schedules. */
export const Schedules = door<Schedules>()('schedules');
