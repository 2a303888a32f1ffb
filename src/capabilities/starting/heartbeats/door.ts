import type { Heartbeat, HeartbeatRequest } from '../../../protocol/starting/heartbeats.ts';
import { door } from '../../capability.ts';
import type { Before, Starters, Switchable } from '../starter/door.ts';

/** Observes things at an interval, and starts runs when they have changed. */
export type Heartbeats = Starters<HeartbeatRequest, Heartbeat, Before> & Switchable<Heartbeat>;

/** The door to heartbeats. */
export const Heartbeats = door<Heartbeats>()('heartbeat');
