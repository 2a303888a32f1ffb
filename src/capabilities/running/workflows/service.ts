import { checkDefinition, type Problem } from '../../../engine/definition/check.ts';
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import { canonicalJson, type JsonObject } from '../../../protocol/format/json.ts';
import { isManagement } from '../../../protocol/running/management.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import { UnitRefused } from '../../../runtime/command.ts';
import {
  findWorkflow,
  HOST_OWNER,
  insertDefinition,
  type LatestVersion,
  latestVersion,
  listWorkflows,
  ownerOf,
  pointWorkflow,
  removeWorkflow,
  type WorkflowPlace,
  type WorkflowRow,
} from '../../../store/definitions.ts';
import type { Unit } from '../../../store/sql.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { findSecret } from '../../../system/redaction.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import type { AuditService } from '../../trust/audit/service.ts';

export interface RegisteredWorkflow {
  readonly definition: WorkflowDefinition;
  readonly version: number;
  /** Every tenant may run it, none may change it. */
  readonly isShared: boolean;
  readonly updatedAt: number;
}

export type WorkflowService = ReturnType<typeof workflowService>;

type Also = (outcome: RegisteredWorkflow) => Unit;

/** What registering came to; undefined when everything was so already. */
type Change = Extract<AuditAction, 'workflow.register' | 'workflow.replace'> | undefined;

/** What else has to happen with a change of a workflow, in the same transaction. */
export interface Accompaniment {
  readonly writes: Unit;
  /** A promise of its own that others may have broken in between: then everything is read again. */
  readonly contested?: string;
  /** What it means that one of its other promises does not hold. */
  readonly refusals?: Readonly<Record<string, Refusal>>;
  readonly committed?: () => void;
}

/** Knows what else has to happen when a workflow becomes what the definition says; undefined when it is removed. */
export type Companion = (
  caller: Caller,
  workflowId: string,
  definition: WorkflowDefinition | undefined,
) => Promise<Accompaniment | Refusal>;

const TRIES_MAX = 5;
const ALONE: Accompaniment = { writes: [] };

export function workflowService({ runtime }: Host, { audit }: { readonly audit: Pick<AuditService, 'record'> }) {
  const { store, clock, catalog, plans } = runtime;
  let companion: Companion = async () => ALONE;

  return {
    /** From now on nothing changes without this one. */
    accompany(next: Companion): void {
      companion = next;
    },

    async find(caller: Caller, workflowId: string): Promise<RegisteredWorkflow | undefined> {
      const [row] = await store.read<WorkflowRow>(findWorkflow(caller.subject, workflowId));
      return row && fromRow(row);
    },

    async list(caller: Caller, after: WorkflowPlace, limit: number): Promise<RegisteredWorkflow[]> {
      const rows = await store.read<WorkflowRow>(listWorkflows(caller.subject, after, limit));
      return rows.map(fromRow);
    },

    /** Takes a definition in as the next version. One that is there already stays as it is. */
    register: (caller: Caller, definition: WorkflowDefinition, also: Also): Promise<RegisteredWorkflow | Refusal> =>
      register(
        ownerOf(caller.subject),
        definition,
        () => companion(caller, definition.id, definition),
        (registered, change) => [
          ...also(registered),
          ...(change ? record(caller, change, definition.id, { version: registered.version }) : []),
        ],
      ),

    /** For definitions that come with the host or lie in a folder of its operator: nobody's, so nothing goes with them. */
    registerShared: (definition: WorkflowDefinition): Promise<RegisteredWorkflow | Refusal> =>
      register(
        HOST_OWNER,
        definition,
        async () => ALONE,
        () => [],
      ),

    /** Runs that have begun keep their version; no new ones begin. */
    async remove(caller: Caller, workflowId: string, also: () => Unit): Promise<boolean | Refusal> {
      const owner = ownerOf(caller.subject);
      return repeatedly(async () => {
        const [latest] = await store.read<LatestVersion>(latestVersion(owner, workflowId));
        if (latest?.current == null) return false;
        const accompaniment = await companion(caller, workflowId, undefined);
        if (isRefusal(accompaniment)) return accompaniment;
        const writes = [
          removeWorkflow(owner, workflowId, latest.current),
          ...also(),
          ...record(caller, 'workflow.remove', workflowId),
        ];
        return commit(writes, accompaniment, true);
      });
    },
  };

  function record({ subject }: Caller, action: AuditAction, target: string, details?: JsonObject): Unit {
    const { tenant, workspace, principal: actor } = subject;
    return audit.record({ tenant, workspace, actor, action, target, ...(details ? { details } : {}) });
  }

  async function register(
    owner: string,
    definition: WorkflowDefinition,
    accompany: () => Promise<Accompaniment | Refusal>,
    also: (outcome: RegisteredWorkflow, change: Change) => Unit,
  ): Promise<RegisteredWorkflow | Refusal> {
    const refusal =
      refuseReserved(definition) ?? refusalOf(checkDefinition(definition, catalog)) ?? refuseSecrets(definition);
    if (refusal) return refusal;
    const digest = sha256Hex(canonicalJson(definition));
    return repeatedly(async () => {
      const [latest] = await store.read<LatestVersion>(latestVersion(owner, definition.id));
      const accompaniment = await accompany();
      if (isRefusal(accompaniment)) return accompaniment;
      return tryRegister(owner, definition, digest, latest, accompaniment, also);
    });
  }

  /** Until nobody else changes the same in between. */
  async function repeatedly<T>(attempt: () => Promise<T | Refusal | undefined>): Promise<T | Refusal> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const outcome = await attempt();
      if (outcome !== undefined) return outcome;
    }
    return refuse('conflict', 'The workflow is being changed by others. Try again.');
  }

  /** Undefined when somebody else has changed the workflow since its latest version was read. */
  async function tryRegister(
    owner: string,
    definition: WorkflowDefinition,
    digest: string,
    latest: LatestVersion | undefined,
    accompaniment: Accompaniment,
    also: (outcome: RegisteredWorkflow, change: Change) => Unit,
  ): Promise<RegisteredWorkflow | Refusal | undefined> {
    const current = latest?.current ?? null;
    const isKnown = latest?.digest === digest;
    const version = isKnown ? latest.version : (latest?.version ?? 0) + 1;
    const isCurrent = isKnown && current === version;
    const updatedAt = isCurrent ? latest.updated_at! : clock.now();
    const registered = { definition, version, isShared: owner === HOST_OWNER, updatedAt };
    const row = {
      owner,
      workflow_id: definition.id,
      version,
      digest,
      body: JSON.stringify(definition),
      created_at: updatedAt,
    };
    const isUntouched = isCurrent && accompaniment.writes.length === 0;
    const writes = [
      ...(isKnown ? [] : [insertDefinition(row)]),
      ...(isUntouched ? [] : [pointWorkflow(owner, definition.id, version, updatedAt, current)]),
      ...also(registered, isCurrent ? undefined : current === null ? 'workflow.register' : 'workflow.replace'),
    ];
    return commit(writes, accompaniment, registered);
  }

  /** Gives what was done, why it cannot be, or nothing when others were there first. */
  async function commit<T>(
    writes: Unit,
    { writes: more, contested, refusals = {}, committed }: Accompaniment,
    done: T,
  ): Promise<T | Refusal | undefined> {
    try {
      const outcome = await store.commit([...writes, ...more]);
      if (!outcome.committed) {
        if (outcome.broke === 'version' || outcome.broke === contested) return undefined;
        const refusal = refusals[outcome.broke];
        if (!refusal) throw new UnitRefused(outcome.broke);
        return refusal;
      }
      committed?.();
      return done;
    } finally {
      plans.changed();
    }
  }
}

function fromRow(row: WorkflowRow): RegisteredWorkflow {
  return {
    definition: JSON.parse(row.body) as WorkflowDefinition,
    version: row.version,
    isShared: row.owner === HOST_OWNER,
    updatedAt: row.updated_at,
  };
}

/** What is wrong, with all places named. Asking for something that is not served has a code of its own. */
export function refusalOf(problems: readonly Problem[]): Refusal | undefined {
  const [first] = problems;
  if (!first) return undefined;
  const gated = problems.find(({ requiredCapability }) => requiredCapability !== undefined);
  if (gated) {
    const { requiredCapability, offendingTypeId, nodeId, message } = gated;
    return refuse('capability_required', message, { requiredCapability, offendingTypeId, nodeId });
  }
  const fields = problems.map(({ path, message, nodeId }) => ({ path, message, ...(nodeId ? { nodeId } : {}) }));
  const message = `${first.path}: ${first.message}`;
  return { ...refuse('validation_error', message, { fields }), status: 422 };
}

/** Runs of the host's own must not be mistaken for anybody's. */
function refuseReserved({ id }: WorkflowDefinition): Refusal | undefined {
  return isManagement(id) ? refuse('conflict', 'The host keeps this id for itself.', { field: 'id' }) : undefined;
}

/** A definition is kept for good and shown to many: secrets belong into the host's keeping. */
function refuseSecrets(definition: WorkflowDefinition): Refusal | undefined {
  const path = findSecret(definition);
  if (path === undefined) return undefined;
  const message = `${path}: this looks like a secret. Refer to it by name instead of writing it down.`;
  return {
    ...refuse('validation_error', message, { fields: [{ path, message: 'looks like a secret' }] }),
    status: 422,
  };
}
