import { makePlan, type Plan } from '../engine/definition/plan.ts';
import type { WorkflowDefinition } from '../protocol/running/workflows.ts';
import { type DefinitionRow, findDefinition, findWorkflowVersion, ownerOf } from '../store/definitions.ts';
import type { Visibility } from '../store/log.ts';
import type { Store } from '../store/store.ts';
import { BoundedCache } from './bounded-cache.ts';
import { managementDefinition } from './management-workflows.ts';

/** A compiled workflow version and its owner, a tenant or the host. Runs stay on the version they started with. */
export interface PinnedPlan {
  readonly owner: string;
  readonly plan: Plan;
}

/** Compiled versions in memory, unless they are heavy: all together take half a gigabyte at most. */
const PLANS_MAX = 256;
const WEIGHT_MAX = 2_000_000;
/** Workflows whose newest version is remembered. */
const CURRENT_MAX = 10_000;

type Current = Pick<DefinitionRow, 'owner' | 'version'>;

/** Finds workflow versions and compiles each once. A version never changes, so compiled plans never become stale. */
export class Plans {
  readonly #store: Store;
  readonly #compiled = new BoundedCache<string, Plan>(WEIGHT_MAX, ({ weight }) =>
    Math.max(weight, WEIGHT_MAX / PLANS_MAX),
  );
  /** Newest versions, by owner and workflow. Used with SQLite only, where no other process can register workflows. */
  #current = new Map<string, Current>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** The newest version of a workflow, which a new run is pinned to; undefined if the caller can see none. */
  async current(from: Visibility, workflowId: string): Promise<PinnedPlan | undefined> {
    const found = this.#store.isShared
      ? await this.#readVersion(from, workflowId)
      : (this.#current.get(currentKey(from, workflowId)) ?? (await this.#cacheVersion(from, workflowId)));
    if (!found) return undefined;
    const { owner, version } = found;
    const plan = this.#compiled.get(keyOf(owner, workflowId, version));
    return { owner, plan: plan ?? (await this.pinned(owner, workflowId, version)) };
  }

  /** Drops the cached newest versions; called after workflows were registered or removed. */
  invalidate(): void {
    this.#current = new Map();
  }

  async #cacheVersion(from: Visibility, workflowId: string): Promise<Current | undefined> {
    // Read once: what was read before a change must not be put into the map that replaces this one.
    const cache = this.#current;
    const found = await this.#readVersion(from, workflowId);
    if (found && cache.size < CURRENT_MAX) cache.set(currentKey(from, workflowId), found);
    return found;
  }

  async #readVersion(from: Visibility, workflowId: string): Promise<Current | undefined> {
    const [found] = await this.#store.read<Current>(findWorkflowVersion(from, workflowId));
    return found;
  }

  /** The version that a run is pinned to; throws if the store does not have it. */
  async pinned(owner: string, workflowId: string, version: number): Promise<Plan> {
    const plan = await this.find(owner, workflowId, version);
    if (!plan) throw new Error(`version ${version} of a workflow that runs are pinned to is missing`);
    return plan;
  }

  /** A version of a workflow, compiled on first use; undefined if there is none. */
  async find(owner: string, workflowId: string, version: number): Promise<Plan | undefined> {
    const cached = this.#compiled.get(keyOf(owner, workflowId, version));
    if (cached) return cached;
    const definition =
      managementDefinition(owner, workflowId, version) ?? (await this.#readDefinition(owner, workflowId, version));
    if (!definition) return undefined;
    const plan = makePlan(definition, version);
    this.#compiled.set(keyOf(owner, workflowId, version), plan);
    return plan;
  }

  async #readDefinition(owner: string, workflowId: string, version: number): Promise<WorkflowDefinition | undefined> {
    const [row] = await this.#store.read<DefinitionRow>(findDefinition(owner, workflowId, version));
    return row && (JSON.parse(row.body) as WorkflowDefinition);
  }
}

function currentKey(from: Visibility, workflowId: string): string {
  return `${ownerOf(from)}\n${workflowId}`;
}

function keyOf(owner: string, workflowId: string, version: number): string {
  return `${owner}\n${workflowId}\n${version}`;
}
