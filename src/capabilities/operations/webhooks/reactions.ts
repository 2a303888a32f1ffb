import type { AppendListener, HintListener } from '../../../runtime/hub.ts';
import type { Append, Reaction } from '../../../runtime/reaction.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { isDelivered } from './deliverable.ts';
import { DELIVERY, listSubscribedTenants, startDeliveries } from './records.ts';
import { deliveredRun, newCursor } from './rules.ts';

/** Topic of the hint that a tenant has a new webhook. */
const SUBSCRIBED = 'webhook-subscribed';

/**
 * Adds the work items of deliveries to the units that move runs. The tenants that may have webhooks are cached: on a
 * store with one host the cache is complete and saves statements, elsewhere it only decides how soon work is claimed.
 */
export class Subscribers {
  readonly #runtime: Pick<Runtime, 'store' | 'hub' | 'log'> & Partial<Pick<Runtime, 'tracing'>>;
  readonly #tenants = new Set<string>();

  constructor(runtime: Pick<Runtime, 'store' | 'hub' | 'log'> & Partial<Pick<Runtime, 'tracing'>>) {
    this.#runtime = runtime;
  }

  readonly reaction: Reaction = ({ identity: { subject }, run: { facts }, events, isInherited }: Append) => {
    const { tenant, workspace } = subject;
    // The events of a replay, and those that a fork inherits, were delivered from their source.
    if (facts.fork?.mode === 'replay' || isInherited) return [];
    if (!this.#runtime.store.isShared && !this.#tenants.has(tenant)) return [];
    const types = [...new Set(events.map(({ type }) => type))].filter((type) => isDelivered(facts.workflowId, type));
    if (types.length === 0) return [];
    const run = { tenant, workspace, runId: facts.runId, tags: facts.tags ?? [], types };
    return [startDeliveries(run, newCursor(events[0]!.sequence - 1, { run: deliveredRun(this.#runtime, facts) }))];
  };

  /** Has the executor claim deliveries of this append at once. */
  readonly onAppend: AppendListener = ({ identity }) => {
    if (this.#tenants.has(identity.subject.tenant)) this.#runtime.hub.wakeWorkers(DELIVERY);
  };

  /** Another host has registered a webhook. */
  readonly onHint: Readonly<Record<string, HintListener>> = { [SUBSCRIBED]: () => void this.#loadAgain() };

  /** To be called before a webhook is committed, so that no run moves unnoticed afterwards. */
  add(tenant: string): void {
    this.#tenants.add(tenant);
  }

  /** Tells other hosts that a webhook was committed. */
  announce(tenant: string): void {
    this.#runtime.store.hint([`${SUBSCRIBED}:${tenant}`]);
  }

  async load(): Promise<void> {
    const rows = await this.#runtime.store.read<{ tenant: string }>(listSubscribedTenants());
    for (const { tenant } of rows) this.#tenants.add(tenant);
  }

  async #loadAgain(): Promise<void> {
    try {
      await this.load();
    } catch (error) {
      this.#runtime.log.warn(
        { err: error },
        'the tenants with webhooks could not be read; deliveries may start a second late',
      );
    }
  }
}
