import { makePlan, type Plan } from '../engine/definition/plan.ts';
import type { WorkflowDefinition } from '../protocol/running/workflows.ts';
import { type DefinitionRow, findDefinition, findWorkflowVersion, ownerOf } from '../store/definitions.ts';
import type { Visibility } from '../store/log.ts';
import type { Store } from '../store/store.ts';
import { LruCache } from './lru-cache.ts';
import { managementDefinition } from './management.ts';

/** A definition ready to run, and who owns it: a tenant, or the host. */
export interface PinnedPlan {
  readonly owner: string;
  readonly plan: Plan;
}

const PLANS_MAX = 256;
const CURRENT_MAX = 10_000;

type Current = Pick<DefinitionRow, 'owner' | 'version'>;

/** Finds definitions and prepares each version once. A version never changes, so what is cached is never stale. */
export class Plans {
  readonly #store: Store;
  readonly #prepared = new LruCache<string, Plan>(PLANS_MAX);
  /** What new runs get, where nobody but this process can change it. */
  #current = new Map<string, Current>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** What a new run of this workflow would be pinned to. */
  async current(from: Visibility, workflowId: string): Promise<PinnedPlan | undefined> {
    const found = this.#store.isShared ? await this.#look(from, workflowId) : await this.#known(from, workflowId);
    return found && { owner: found.owner, plan: await this.pinned(found.owner, workflowId, found.version) };
  }

  /** Workflows were registered or removed. */
  changed(): void {
    this.#current = new Map();
  }

  async #known(from: Visibility, workflowId: string): Promise<Current | undefined> {
    const known = this.#current;
    const key = `${ownerOf(from)}\n${workflowId}`;
    const found = known.get(key) ?? (await this.#look(from, workflowId));
    if (found && known.size < CURRENT_MAX) known.set(key, found);
    return found;
  }

  async #look(from: Visibility, workflowId: string): Promise<Current | undefined> {
    const [found] = await this.#store.read<Current>(findWorkflowVersion(from, workflowId));
    return found;
  }

  async pinned(owner: string, workflowId: string, version: number): Promise<Plan> {
    const plan = await this.find(owner, workflowId, version);
    if (!plan) throw new Error(`version ${version} of a workflow that runs are pinned to is missing`);
    return plan;
  }

  async find(owner: string, workflowId: string, version: number): Promise<Plan | undefined> {
    const cached = this.#prepared.get(keyOf(owner, workflowId, version));
    if (cached) return cached;
    const definition =
      managementDefinition(owner, workflowId, version) ?? (await this.#read(owner, workflowId, version));
    if (!definition) return undefined;
    const plan = makePlan(definition, version);
    this.#prepared.set(keyOf(owner, workflowId, version), plan);
    return plan;
  }

  async #read(owner: string, workflowId: string, version: number): Promise<WorkflowDefinition | undefined> {
    const [row] = await this.#store.read<DefinitionRow>(findDefinition(owner, workflowId, version));
    return row && (JSON.parse(row.body) as WorkflowDefinition);
  }
}

function keyOf(owner: string, workflowId: string, version: number): string {
  return `${owner}\n${workflowId}\n${version}`;
}
