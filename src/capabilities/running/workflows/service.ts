import type { Problem } from '../../../engine/definition/check.ts';
import { isRefusal, NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import { canonicalJson } from '../../../protocol/format/json.ts';
import type { WorkflowDefinition, WorkflowWarning } from '../../../protocol/running/workflows.ts';
import { type Catalog, catalogOf } from '../../../runtime/catalog.ts';
import { and, type Change, changeOf, unchanged, withResult } from '../../../runtime/change.ts';
import { localSchemaValidator } from '../../../runtime/validation/schema-validator.ts';
import {
  type DefinitionRow,
  findDefinition,
  findWorkflow,
  findWorkflowVersion,
  HOST_OWNER,
  insertDefinition,
  type LatestVersion,
  latestVersion,
  listVersions,
  listWorkflows,
  ownerOf,
  removeWorkflow,
  setCurrentVersion,
  type WorkflowCursor,
  type WorkflowRow,
} from '../../../store/definitions.ts';
import type { Unit } from '../../../store/sql.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Host } from '../../capability.ts';
import { hostCaller } from '../../host-caller.ts';
import type { Caller } from '../../request.ts';
import { type Audit, entryBy } from '../../trust/audit/door.ts';
import {
  OtherNodeTypes,
  type RegisteredWorkflow,
  type ServedWorkflow,
  ServedWorkflows,
  type StoredVersion,
  WorkflowCompanions,
  type Workflows,
  WorkflowWarnings,
} from './door.ts';
import {
  auditActionOf,
  checkRegistration,
  refuseProblems,
  type SharedRegistration,
  type Versioning,
  versionOf,
} from './rules.ts';
import { warningsFor } from './warnings.ts';

/** What workflows need of other capabilities. */
interface WorkflowNeeds {
  readonly audit: Pick<Audit, 'entry'>;
}

/** Workflow definitions and their versions. */
export class WorkflowService implements Workflows {
  readonly #host: Pick<Host, 'runtime' | 'extensions'>;
  readonly #needs: WorkflowNeeds;
  /** Of the operator, who is trusted: checked without a thread, which would take longer to start than the rest. */
  readonly #ownSchemas = localSchemaValidator();
  /** For whom which shared workflows are served since the start, as `servedKey` names them. */
  readonly #served = new Set<string>();

  constructor(host: Pick<Host, 'runtime' | 'extensions'>, needs: WorkflowNeeds) {
    this.#host = host;
    this.#needs = needs;
  }

  async find(caller: Caller, workflowId: string): Promise<RegisteredWorkflow | undefined> {
    const [row] = await this.#host.runtime.store.read<WorkflowRow>(findWorkflow(caller.subject, workflowId));
    return row && registeredFrom(row);
  }

  async list(caller: Caller, after: WorkflowCursor, limit: number): Promise<RegisteredWorkflow[]> {
    const rows = await this.#host.runtime.store.read<WorkflowRow>(listWorkflows(caller.subject, after, limit));
    return rows.map(registeredFrom);
  }

  async validate(caller: Caller, definition: WorkflowDefinition): Promise<readonly WorkflowWarning[] | Refusal> {
    const warnings = await this.#check(caller, definition);
    if (isRefusal(warnings)) return warnings;
    const companions = await this.#companions(caller, definition.id, definition);
    return isRefusal(companions) ? companions : warnings;
  }

  /** What can be said about a definition alone. */
  async #check(caller: Caller, definition: WorkflowDefinition): Promise<readonly WorkflowWarning[] | Refusal> {
    const { store, schemas } = this.#host.runtime;
    const { tenant } = caller.subject;
    const { catalog, problems } = await this.#catalogFor(tenant, definition);
    const refusal =
      (await checkRegistration(definition, { catalog, schemas: schemas.of(tenant) })) ?? refuseProblems(problems);
    if (refusal) return refusal;
    const checks = this.#host.extensions(WorkflowWarnings);
    return warningsFor(definition, caller.subject, { runtime: { catalog, store }, checks });
  }

  async versions(
    caller: Caller,
    workflowId: string,
    before: number,
    limit: number,
  ): Promise<StoredVersion[] | undefined> {
    const current = await this.#current(caller, workflowId);
    if (!current) return undefined;
    const rows = await this.#host.runtime.store.read<DefinitionRow>(
      listVersions(current.owner, workflowId, before, limit),
    );
    return rows.map(({ body, version, created_at: createdAt }) => ({
      definition: JSON.parse(body) as WorkflowDefinition,
      version,
      isCurrent: version === current.version,
      createdAt,
    }));
  }

  async version(caller: Caller, workflowId: string, version: number): Promise<WorkflowDefinition | undefined> {
    const current = await this.#current(caller, workflowId);
    if (!current) return undefined;
    const [row] = await this.#host.runtime.store.read<DefinitionRow>(
      findDefinition(current.owner, workflowId, version),
    );
    return row && (JSON.parse(row.body) as WorkflowDefinition);
  }

  async ofRun(caller: Caller, runId: string): Promise<WorkflowDefinition | undefined> {
    const { reader, plans } = this.#host.runtime;
    const row = await reader.row(caller.subject, runId);
    return row && (await plans.pinned(row.workflow_owner, row.workflow_id, row.workflow_version)).definition;
  }

  async #current(caller: Caller, workflowId: string): Promise<Pick<DefinitionRow, 'owner' | 'version'> | undefined> {
    const [found] = await this.#host.runtime.store.read<Pick<DefinitionRow, 'owner' | 'version'>>(
      findWorkflowVersion(caller.subject, workflowId),
    );
    return found;
  }

  async register(caller: Caller, definition: WorkflowDefinition): Promise<Change<RegisteredWorkflow> | Refusal> {
    const warnings = await this.#check(caller, definition);
    if (isRefusal(warnings)) return warnings;
    const owner = ownerOf(caller.subject);
    const versioning = await this.#versioning(owner, definition);
    const companions = await this.#companions(caller, definition.id, definition);
    if (isRefusal(companions)) return companions;
    const isTouched = !versioning.isCurrent || companions.writes.length > 0;
    const stored = this.#storeVersion(owner, definition, versioning, isTouched);
    const { audit } = this.#needs;
    const action = auditActionOf(versioning);
    const entry = action && entryBy(audit, caller.subject, action, definition.id, { version: versioning.version });
    return and(
      withResult(stored, (registered) => ({ ...registered, warnings })),
      ...(entry ? [entry] : []),
      companions,
    );
  }

  async replace(caller: Caller, definition: WorkflowDefinition): Promise<Change<RegisteredWorkflow> | Refusal> {
    return (await this.find(caller, definition.id)) ? this.register(caller, definition) : NOT_FOUND;
  }

  async registerShared(
    definition: WorkflowDefinition,
    { servedFor, isOurs = false }: SharedRegistration = {},
  ): Promise<Change<RegisteredWorkflow> | Refusal> {
    const { catalog } = this.#host.runtime;
    const checks = { catalog, schemas: this.#ownSchemas };
    const refusal = isOurs ? undefined : await checkRegistration(definition, checks);
    if (refusal) return refusal;
    const versioning = await this.#versioning(HOST_OWNER, definition);
    const companions = await this.#sharedCompanions(servedFor, definition);
    if (isRefusal(companions)) return companions;
    const isTouched = !versioning.isCurrent || companions.writes.length > 0;
    return and(this.#storeVersion(HOST_OWNER, definition, versioning, isTouched), companions);
  }

  /** What starts runs of a shared workflow, for one tenant; nothing if the tenant has a workflow of that id itself. */
  async #sharedCompanions(caller: Caller | undefined, definition: WorkflowDefinition): Promise<Change | Refusal> {
    if (!caller || (await this.#isReplaced(caller, definition.id))) return unchanged(undefined);
    this.#served.add(servedKey({ tenant_name: caller.subject.tenantName, workflow_id: definition.id }));
    return this.#companions(caller, definition.id, definition);
  }

  async #isReplaced(caller: Caller, workflowId: string): Promise<boolean> {
    const current = await this.#current(caller, workflowId);
    return current !== undefined && current.owner !== HOST_OWNER;
  }

  async withdrawShared(): Promise<Change | Refusal> {
    const found = await Promise.all(this.#host.extensions(ServedWorkflows).map((served) => served()));
    const former = new Map(found.flat().map((served) => [servedKey(served), served]));
    for (const key of this.#served) former.delete(key);
    const changes: Change[] = [];
    for (const { tenant_name: tenantName, workflow_id: workflowId } of former.values()) {
      const caller = hostCaller(tenantName);
      // A trigger that the tenant's own workflow has, too, was taken over as it was.
      if (await this.#isReplaced(caller, workflowId)) continue;
      const change = await this.#companions(caller, workflowId, undefined);
      if (isRefusal(change)) return change;
      changes.push(change);
    }
    return and(unchanged(undefined), ...changes);
  }

  async remove(caller: Caller, workflowId: string): Promise<Change | Refusal> {
    const owner = ownerOf(caller.subject);
    const latest = await this.#latest(owner, workflowId);
    if (latest?.current == null) return NOT_FOUND;
    const companions = await this.#companions(caller, workflowId, undefined);
    if (isRefusal(companions)) return companions;
    const removed = this.#versionChange(undefined, [removeWorkflow(owner, workflowId, latest.current)]);
    return and(removed, entryBy(this.#needs.audit, caller.subject, 'workflow.remove', workflowId), companions);
  }

  /** The node types of the host and those that others serve for the tenant, as far as a definition has any. */
  async #catalogFor(
    tenant: string,
    { nodes }: WorkflowDefinition,
  ): Promise<{ readonly catalog: Catalog; readonly problems: readonly Problem[] }> {
    const { catalog } = this.#host.runtime;
    const unknown = nodes.map((node, index) => ({ node, index })).filter(({ node }) => !catalog.has(node.typeId));
    if (unknown.length === 0) return { catalog, problems: [] };
    const found = await Promise.all(this.#host.extensions(OtherNodeTypes).map((of) => of(tenant, unknown)));
    const types = found.flatMap((each) => each.types);
    return {
      catalog: types.length === 0 ? catalog : catalogOf([...catalog.types, ...types]),
      problems: found.flatMap((each) => each.problems),
    };
  }

  async #latest(owner: string, workflowId: string): Promise<LatestVersion | undefined> {
    const [latest] = await this.#host.runtime.store.read<LatestVersion>(latestVersion(owner, workflowId));
    return latest;
  }

  async #versioning(owner: string, definition: WorkflowDefinition): Promise<Versioning> {
    const latest = await this.#latest(owner, definition.id);
    return versionOf(sha256Hex(canonicalJson(definition)), latest, this.#host.runtime.clock.now());
  }

  /** Writes nothing if `isTouched` is false; otherwise the unit fails if the current version has changed meanwhile. */
  #storeVersion(
    owner: string,
    definition: WorkflowDefinition,
    { digest, version, replaced, isStored, updatedAt }: Versioning,
    isTouched: boolean,
  ): Change<RegisteredWorkflow> {
    const { id: workflowId } = definition;
    const body = JSON.stringify(definition);
    const row = { owner, workflow_id: workflowId, version, digest, body, created_at: updatedAt };
    const writes = [
      ...(isStored ? [] : [insertDefinition(row)]),
      ...(isTouched ? [setCurrentVersion(owner, workflowId, version, updatedAt, replaced)] : []),
    ];
    return this.#versionChange({ definition, version, isShared: owner === HOST_OWNER, updatedAt }, writes);
  }

  /**
   * A change of what new runs get. The cache of plans is in use only where this process is the only writer; there, a
   * commit that throws has been rolled back, so the cache can be wrong only after a commit that succeeded.
   */
  #versionChange<T>(result: T, writes: Unit): Change<T> {
    return changeOf(result, writes, { retryOn: ['version'], announce: [() => this.#host.runtime.plans.invalidate()] });
  }

  /** What other capabilities change together with a workflow, as one change. */
  async #companions(
    caller: Caller,
    workflowId: string,
    definition: WorkflowDefinition | undefined,
  ): Promise<Change | Refusal> {
    const changes: Change<unknown>[] = [];
    for (const companion of this.#host.extensions(WorkflowCompanions)) {
      const change = await companion(caller, workflowId, definition);
      if (isRefusal(change)) return change;
      changes.push(change);
    }
    return and(unchanged(undefined), ...changes);
  }
}

function servedKey({ tenant_name, workflow_id }: ServedWorkflow): string {
  return JSON.stringify([tenant_name, workflow_id]);
}

function registeredFrom(row: WorkflowRow): RegisteredWorkflow {
  return {
    definition: JSON.parse(row.body) as WorkflowDefinition,
    version: row.version,
    isShared: row.owner === HOST_OWNER,
    updatedAt: row.updated_at,
  };
}
