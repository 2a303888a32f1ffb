import { defined } from '../../../protocol/format/json.ts';
import type { Heartbeat, HeartbeatEvent, HeartbeatRequest } from '../../../protocol/starting/heartbeats.ts';
import { ownerFrom, timeIfAny, timeText } from '../starter/self-starting.ts';
import type { HeartbeatEventRow, HeartbeatRow } from './records.ts';

/** A heartbeat as callers see it. */
export function heartbeatFrom(row: HeartbeatRow): Heartbeat {
  return {
    id: row.heartbeat_id,
    ...specOf(row),
    ...(row.shown_inputs === null ? {} : { inputs: JSON.parse(row.shown_inputs) }),
    ...defined({
      nextTickAt: timeIfAny(row.next_tick_at),
      lastTickAt: timeIfAny(row.last_tick_at),
      lastStatus: (row.last_status ?? undefined) as Heartbeat['lastStatus'],
      lastError: row.last_error ?? undefined,
      lastState: row.state === null ? undefined : JSON.parse(row.state),
      lastChangedAt: timeIfAny(row.last_changed_at),
      lastRunId: row.last_run_id ?? undefined,
      belongsTo: row.belongs_to ?? undefined,
    }),
    owner: ownerFrom(row),
    createdAt: timeText(row.created_at),
  };
}

/** What was written down, but for the inputs. */
export function specOf({ spec }: HeartbeatRow): Omit<HeartbeatRequest, 'inputs'> {
  return JSON.parse(spec);
}

export function eventFrom({ sequence, at, type, payload }: HeartbeatEventRow): HeartbeatEvent {
  return { sequence, timestamp: timeText(at), type: type as HeartbeatEvent['type'], payload: JSON.parse(payload) };
}
