import type { Problem } from '../../../engine/definition/check.ts';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { isManagement } from '../../../protocol/running/management.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { workflowProblems } from '../../../runtime/validation/definition-problems.ts';
import type { LatestVersion } from '../../../store/definitions.ts';
import { findSecret } from '../../../system/redaction.ts';
import type { Caller } from '../../request.ts';

/** How a definition that every tenant may run is registered. */
export interface SharedRegistration {
  /** On whose behalf its triggers and schedules start runs; without it nothing starts them. */
  readonly servedFor?: Caller | undefined;
  /** It comes with the program, whose tests have checked it: a start need not check it again. */
  readonly isOurs?: boolean;
}

/** Refuses a definition that no run could execute, that uses a reserved id or that contains a secret. */
export async function checkRegistration(
  definition: WorkflowDefinition,
  runtime: Pick<Runtime, 'catalog' | 'schemas'>,
): Promise<Refusal | undefined> {
  return (
    refuseReservedId(definition) ??
    refuseProblems(await workflowProblems(definition, runtime)) ??
    refuseSecret(definition)
  );
}

/** The refusal that names every problem of a definition. A capability that the host lacks has an error code of its own. */
export function refuseProblems(problems: readonly Problem[]): Refusal | undefined {
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

/** Runs of management workflows must not be confused with runs of a tenant's workflow. */
function refuseReservedId({ id }: WorkflowDefinition): Refusal | undefined {
  if (!isManagement(id)) return undefined;
  return refuse('conflict', `The workflow id ${id} is reserved for the host. Choose another id.`, { field: 'id' });
}

/** Definitions are never deleted and many people read them, so a secret must not be part of one. */
function refuseSecret(definition: WorkflowDefinition): Refusal | undefined {
  const path = findSecret(definition);
  if (path === undefined) return undefined;
  const message = `${path}: this looks like a secret. Store it as a credential and refer to it by name.`;
  return {
    ...refuse('validation_error', message, { fields: [{ path, message: 'looks like a secret' }] }),
    status: 422,
  };
}

/** Where a definition goes among the versions of its workflow. */
export interface Versioning {
  readonly digest: string;
  readonly version: number;
  /** The version that new runs got until now; null if the workflow does not exist or was removed. */
  readonly replaced: number | null;
  /** Whether this version is stored already. */
  readonly isStored: boolean;
  /** Whether new runs get this version already. */
  readonly isCurrent: boolean;
  /** Since when new runs get it. */
  readonly updatedAt: number;
}

/** A definition that equals the latest version keeps its number; any other becomes the next version. */
export function versionOf(digest: string, latest: LatestVersion | undefined, now: number): Versioning {
  const replaced = latest?.current ?? null;
  const isStored = latest?.digest === digest;
  const version = isStored ? latest.version : (latest?.version ?? 0) + 1;
  const isCurrent = isStored && replaced === version;
  return { digest, version, replaced, isStored, isCurrent, updatedAt: isCurrent ? latest.updated_at! : now };
}

/** The audit action of a registration; none if the definition is the current version already. */
export function auditActionOf({ isCurrent, replaced }: Versioning): AuditAction | undefined {
  if (isCurrent) return undefined;
  return replaced === null ? 'workflow.register' : 'workflow.replace';
}
