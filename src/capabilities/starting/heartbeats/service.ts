import { NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import type { Heartbeat, HeartbeatEvent, HeartbeatRequest } from '../../../protocol/starting/heartbeats.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Author } from '../starter/door.ts';
import type { StarterRows } from '../starter/service.ts';
import { eventFrom } from './document.ts';
import { type HeartbeatEventRow, type HeartbeatRow, listHeartbeatEvents } from './records.ts';

/** The mechanism of starters, as heartbeats use it. */
type HeartbeatStarters = Pick<StarterRows<HeartbeatRow, HeartbeatRequest, Heartbeat>, 'read'>;

/** What heartbeats have that other starters do not: events. */
export class HeartbeatService {
  readonly #runtime: Runtime;
  readonly #starters: HeartbeatStarters;

  constructor({ runtime }: { readonly runtime: Runtime }, starters: HeartbeatStarters) {
    this.#runtime = runtime;
    this.#starters = starters;
  }

  /** The latest events of a heartbeat before a sequence, newest first. */
  async events({ subject }: Author, id: string, before: number, limit: number): Promise<HeartbeatEvent[] | Refusal> {
    const row = await this.#starters.read(subject, id);
    if (!row) return NOT_FOUND;
    const statement = listHeartbeatEvents(row.tenant, id, before, limit);
    return (await this.#runtime.store.read<HeartbeatEventRow>(statement)).map(eventFrom);
  }
}
