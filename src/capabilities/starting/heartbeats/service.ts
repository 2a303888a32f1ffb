import { NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import type { Heartbeat, HeartbeatEvent, HeartbeatRequest } from '../../../protocol/starting/heartbeats.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Storage } from '../../integrations/storage/door.ts';
import type { Author, Before } from '../starter/door.ts';
import type { StarterFamily } from '../starter/family.ts';
import { type StarterNeeds, StarterService } from '../starter/service.ts';
import { eventFrom } from './document.ts';
import type { Heartbeats, TickTrial, TickTrialResult } from './door.ts';
import { type HeartbeatEventRow, type HeartbeatRow, listHeartbeatEvents } from './records.ts';
import { tryTick } from './trial.ts';

/** What heartbeats need of other capabilities. */
export interface HeartbeatNeeds extends StarterNeeds {
  readonly storage: Pick<Storage, 'perform'>;
}

/** Heartbeats and their events. */
export class HeartbeatService
  extends StarterService<HeartbeatRow, HeartbeatRequest, Heartbeat, Before>
  implements Heartbeats
{
  readonly #runtime: Runtime;
  readonly #storage: HeartbeatNeeds['storage'];

  constructor(
    host: { readonly runtime: Runtime },
    needs: HeartbeatNeeds,
    family: StarterFamily<HeartbeatRow, HeartbeatRequest, Heartbeat, Before>,
  ) {
    super(host, needs, family);
    this.#runtime = host.runtime;
    this.#storage = needs.storage;
  }

  async events({ subject }: Author, id: string, before: number, limit: number): Promise<HeartbeatEvent[] | Refusal> {
    const row = await this.read(subject, id);
    if (!row) return NOT_FOUND;
    const statement = listHeartbeatEvents(row.tenant, id, before, limit);
    return (await this.#runtime.store.read<HeartbeatEventRow>(statement)).map(eventFrom);
  }

  tryTick(from: Visibility, trial: TickTrial): Promise<TickTrialResult> {
    return tryTick(this.#runtime, this.#storage, from, trial);
  }
}
