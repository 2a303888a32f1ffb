import { defined } from '../../../protocol/format/json.ts';
import type { Heartbeat, HeartbeatEvent, HeartbeatRequest } from '../../../protocol/starting/heartbeats.ts';
import { timestamp, timestampIfSet } from '../../timestamps.ts';
import { inputsMember, ownerMembers } from '../starter/document.ts';
import type { HeartbeatEventRow, HeartbeatRow } from './records.ts';

/** A heartbeat as callers see it. */
export function heartbeatFrom(row: HeartbeatRow): Heartbeat {
  return {
    id: row.heartbeat_id,
    ...specOf(row),
    ...inputsMember(row),
    ...defined({
      nextTickAt: timestampIfSet(row.next_tick_at),
      lastTickAt: timestampIfSet(row.last_tick_at),
      lastStatus: (row.last_status ?? undefined) as Heartbeat['lastStatus'],
      lastError: row.last_error ?? undefined,
      lastState: row.state === null ? undefined : JSON.parse(row.state),
      lastChangedAt: timestampIfSet(row.last_changed_at),
      lastRunId: row.last_run_id ?? undefined,
    }),
    ...ownerMembers(row),
  };
}

/** The request that a heartbeat was created with, without its inputs. */
export function specOf({ spec }: HeartbeatRow): Omit<HeartbeatRequest, 'inputs'> {
  return JSON.parse(spec);
}

/** An event of a heartbeat as callers see it. */
export function eventFrom({ sequence, at, type, payload }: HeartbeatEventRow): HeartbeatEvent {
  return { sequence, timestamp: timestamp(at), type: type as HeartbeatEvent['type'], payload: JSON.parse(payload) };
}
