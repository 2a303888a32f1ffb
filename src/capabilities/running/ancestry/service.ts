import { NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import type { Cause, RunAncestry } from '../../../protocol/running/inspection.ts';
import { commitAll } from '../../../runtime/command.ts';
import type { RunRow } from '../../../store/log.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import { findInstallation, nameInstallation } from './records.ts';

export type AncestryService = ReturnType<typeof ancestryService>;

export function ancestryService({ runtime }: Host) {
  const { store, reader, plans, ids } = runtime;
  let hostId = '';

  return {
    /** Opaque, and the same for as long as the store lives: it says nothing about machines. */
    get hostId(): string {
      return hostId;
    },

    async learnHostId(): Promise<void> {
      await commitAll(store, [nameInstallation(ids.next('capstan-'))]);
      const [row] = await store.read<{ host_id: string }>(findInstallation());
      hostId = row!.host_id;
    },

    async ancestry(caller: Caller, runId: string): Promise<RunAncestry | Refusal> {
      const row = await reader.row(caller.subject, runId);
      if (!row) return NOT_FOUND;
      const parentRunId = row.parent_node_id === null ? null : row.parent_run_id;
      const parent = parentRunId === null ? null : { runId: parentRunId, hostId, cause: await causeOf(row) };
      return { runId, hostId, parent };
    },
  };

  /** The kind of node that started it. A parent that is not kept any more was one of the ordinary kind. */
  async function causeOf({ tenant, parent_run_id, parent_node_id }: RunRow): Promise<Cause> {
    const parent = await reader.row({ tenant }, parent_run_id!);
    if (!parent) return 'core.subWorkflow';
    const plan = await plans.pinned(parent.workflow_owner, parent.workflow_id, parent.workflow_version);
    return plan.node(parent_node_id!)?.node.typeId === 'core.dispatch' ? 'core.dispatch' : 'core.subWorkflow';
  }
}
