import type { Refusal } from '../../../protocol/errors.ts';
import type {
  Heartbeat,
  HeartbeatEvaluated,
  HeartbeatEvent,
  HeartbeatRequest,
  HeartbeatStateChanged,
} from '../../../protocol/starting/heartbeats.ts';
import type { Visibility } from '../../../store/log.ts';
import { door } from '../../capability.ts';
import type { Author, Before, Starters, Switchable } from '../starter/door.ts';

/** Observes things at an interval, and starts runs when they have changed. */
export interface Heartbeats extends Starters<HeartbeatRequest, Heartbeat, Before>, Switchable<Heartbeat> {
  /** The latest events of a heartbeat before a sequence, newest first. */
  events(author: Author, id: string, before: number, limit: number): Promise<HeartbeatEvent[] | Refusal>;
  /** A tick of a heartbeat that exists only in a conformance suite. */
  tryTick(from: Visibility, trial: TickTrial): Promise<TickTrialResult>;
}

/** The door to heartbeats. */
export const Heartbeats = door<Heartbeats>()('heartbeat');

/** What a heartbeat of a conformance suite observes, and how long that takes. */
export interface TickTrial {
  readonly heartbeatId: string;
  readonly observedState: unknown;
  readonly slowMs: number;
}

/** The events of a tick. */
export interface TickTrialResult {
  readonly evaluated: readonly HeartbeatEvaluated[];
  readonly stateChanged: readonly HeartbeatStateChanged[];
}
