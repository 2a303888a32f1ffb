import { makePlan, type Plan } from '../engine/plan.ts';
import type { WorkflowDefinition } from '../protocol/workflows.ts';
import { type DefinitionRow, findDefinition, findWorkflow } from '../store/definitions.ts';
import type { Store } from '../store/store.ts';
import { LruCache } from './lru-cache.ts';

/** A definition ready to run, and who owns it: a tenant, or the host. */
export interface PinnedPlan {
  readonly owner: string;
  readonly plan: Plan;
}

const PLANS_MAX = 256;

/** Finds definitions and prepares each version once. A version never changes, so what is cached is never stale. */
export class Plans {
  readonly #store: Store;
  readonly #prepared = new LruCache<string, Plan>(PLANS_MAX);

  constructor(store: Store) {
    this.#store = store;
  }

  /** What a new run of this workflow would be pinned to. */
  async current(tenant: string, workflowId: string): Promise<PinnedPlan | undefined> {
    const [row] = await this.#store.read<DefinitionRow>(findWorkflow(tenant, workflowId));
    return row && { owner: row.owner, plan: this.#prepare(row) };
  }

  async pinned(owner: string, workflowId: string, version: number): Promise<Plan> {
    const cached = this.#prepared.get(keyOf(owner, workflowId, version));
    if (cached) return cached;
    const [row] = await this.#store.read<DefinitionRow>(findDefinition(owner, workflowId, version));
    if (!row) throw new Error(`version ${version} of a workflow that runs are pinned to is missing`);
    return this.#prepare(row);
  }

  #prepare(row: DefinitionRow): Plan {
    const key = keyOf(row.owner, row.workflow_id, row.version);
    const plan = this.#prepared.get(key) ?? makePlan(JSON.parse(row.body) as WorkflowDefinition, row.version);
    this.#prepared.set(key, plan);
    return plan;
  }
}

function keyOf(owner: string, workflowId: string, version: number): string {
  return `${owner}\n${workflowId}\n${version}`;
}
