import type { MemoryRecord } from '../../../protocol/ai/memory.ts';
import { NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import { and, type Change, changeOf } from '../../../runtime/change.ts';
import type { MemoryRequest, MemoryResult } from '../../../runtime/effects/memory.ts';
import type { Host } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import { type Audit, entryBy } from '../../trust/audit/door.ts';
import type { ModelSettings } from '../models/settings.ts';
import { AgentMemory } from './agent-memory.ts';
import { recordOf } from './document.ts';
import type { Memory, MemoryFilter, MemoryUser } from './door.ts';
import { deleteEntry, deleteMemory, findRecord, listRecords, type MemoryRow } from './records.ts';

interface Needs {
  readonly audit: Pick<Audit, 'entry'>;
}

interface Settings {
  readonly models: readonly Pick<ModelSettings, 'credentialRef' | 'secret'>[];
}

/** Memory as people see it, and the way to it for nodes and tools. */
export class MemoryService implements Memory {
  readonly #host: Pick<Host, 'runtime'>;
  readonly #needs: Needs;
  readonly #agentMemory: AgentMemory;

  constructor(host: Pick<Host, 'runtime'>, needs: Needs, { models }: Settings) {
    this.#host = host;
    this.#needs = needs;
    const secrets = models.flatMap(({ credentialRef, secret }) =>
      credentialRef !== undefined && secret !== undefined ? [{ id: credentialRef, value: secret }] : [],
    );
    this.#agentMemory = new AgentMemory(host.runtime, secrets);
  }

  perform(user: MemoryUser, request: MemoryRequest): Promise<MemoryResult> {
    return this.#agentMemory.perform(user, request);
  }

  async list({ subject }: Caller, filter: MemoryFilter, limit: number): Promise<MemoryRecord[]> {
    const { tenant, workspace } = subject;
    const statement = listRecords({ tenant, workspace, ...filter }, limit);
    return (await this.#host.runtime.store.read<MemoryRow>(statement)).map(recordOf);
  }

  async find(caller: Caller, memoryId: string): Promise<MemoryRecord | Refusal> {
    const row = await this.#visible(caller, memoryId);
    return row ? recordOf(row) : NOT_FOUND;
  }

  async remove(caller: Caller, memoryId: string): Promise<Change | Refusal> {
    const row = await this.#visible(caller, memoryId);
    if (!row) return NOT_FOUND;
    const place = { tenant: caller.subject.tenant, workspace: row.workspace, memoryRef: row.memory_ref };
    return and(changeOf(undefined, [deleteEntry(place, memoryId)]), this.#audited(caller, memoryId));
  }

  async removeAll(caller: Caller, memoryRef: string): Promise<Change> {
    const { tenant, workspace } = caller.subject;
    return and(changeOf(undefined, [deleteMemory(tenant, workspace, memoryRef)]), this.#audited(caller, memoryRef));
  }

  async #visible({ subject }: Caller, memoryId: string): Promise<MemoryRow | undefined> {
    const statement = findRecord(subject.tenant, subject.workspace, memoryId);
    const [row] = await this.#host.runtime.store.read<MemoryRow>(statement);
    return row;
  }

  #audited({ subject }: Caller, target: string): Change {
    return entryBy(this.#needs.audit, subject, 'memory.forget', target);
  }
}
