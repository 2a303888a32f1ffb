import { NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import type { Cause, RunAncestry } from '../../../protocol/running/inspection.ts';
import { commitOrThrow } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { RunRow } from '../../../store/log.ts';
import type { Caller } from '../../request.ts';
import { findInstallation, insertInstallation } from './records.ts';

/** Which run started a run, and on which installation. */
export class AncestryService {
  readonly #runtime: Runtime;
  #hostId = '';

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** The public id of the installation: the same for all hosts of a store, and it reveals nothing about machines. */
  get hostId(): string {
    return this.#hostId;
  }

  /** Reads the id of the installation; the first host of a store creates it. */
  async loadHostId(): Promise<void> {
    const { store, ids } = this.#runtime;
    await commitOrThrow(store, [insertInstallation(ids.next('capstan-'))]);
    const [row] = await store.read<{ host_id: string }>(findInstallation());
    this.#hostId = row!.host_id;
  }

  /** The run that started a run; null for a run that a caller, a schedule or another trigger started. */
  async ancestryOf(caller: Caller, runId: string): Promise<RunAncestry | Refusal> {
    const row = await this.#runtime.reader.row(caller.subject, runId);
    if (!row) return NOT_FOUND;
    const { hostId } = this;
    const parentRunId = row.parent_node_id === null ? null : row.parent_run_id;
    const parent = parentRunId === null ? null : { runId: parentRunId, hostId, cause: await this.#causeOf(row) };
    return { runId, hostId, parent };
  }

  /** The type of the node that started the run; `core.subWorkflow` if the parent has expired. */
  async #causeOf({ tenant, parent_run_id, parent_node_id }: RunRow): Promise<Cause> {
    const { reader, plans } = this.#runtime;
    const parent = await reader.row({ tenant }, parent_run_id!);
    if (!parent) return 'core.subWorkflow';
    const plan = await plans.pinned(parent.workflow_owner, parent.workflow_id, parent.workflow_version);
    return plan.node(parent_node_id!)?.node.typeId === 'core.dispatch' ? 'core.dispatch' : 'core.subWorkflow';
  }
}
