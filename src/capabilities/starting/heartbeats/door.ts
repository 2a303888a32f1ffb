import type { Refusal } from '../../../protocol/errors.ts';
import type { Heartbeat, HeartbeatEvent, HeartbeatRequest } from '../../../protocol/starting/heartbeats.ts';
import { door } from '../../capability.ts';
import type { Author, Before, Starters, Switchable } from '../starter/door.ts';

export { observeWithin } from '../starter/observing.ts';
export { INITIAL_STATE, tickOf } from './rules.ts';

/** Observes things at an interval, and starts runs when they have changed. */
export interface Heartbeats extends Starters<HeartbeatRequest, Heartbeat, Before>, Switchable<Heartbeat> {
  /** The latest events of a heartbeat before a sequence, newest first. */
  events(author: Author, id: string, before: number, limit: number): Promise<HeartbeatEvent[] | Refusal>;
}

/** The door to heartbeats. */
export const Heartbeats = door<Heartbeats>()('heartbeat');
