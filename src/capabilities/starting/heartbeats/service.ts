import { NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import type { Heartbeat, HeartbeatEvent, HeartbeatRequest } from '../../../protocol/starting/heartbeats.ts';
import type { Author, Before } from '../starter/door.ts';
import { StarterService } from '../starter/service.ts';
import { eventFrom } from './document.ts';
import type { Heartbeats } from './door.ts';
import { type HeartbeatEventRow, type HeartbeatRow, listHeartbeatEvents } from './records.ts';

/** Heartbeats and their events. */
export class HeartbeatService
  extends StarterService<HeartbeatRow, HeartbeatRequest, Heartbeat, Before>
  implements Heartbeats
{
  async events({ subject }: Author, id: string, before: number, limit: number): Promise<HeartbeatEvent[] | Refusal> {
    const row = await this.read(subject, id);
    if (!row) return NOT_FOUND;
    const statement = listHeartbeatEvents(row.tenant, id, before, limit);
    return (await this.runtime.store.read<HeartbeatEventRow>(statement)).map(eventFrom);
  }
}
