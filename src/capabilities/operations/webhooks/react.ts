import type { Append, Reaction } from '../../../runtime/append.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { isDelivered } from './deliverable.ts';
import { LANE, listSubscribedTenants, openLanes } from './records.ts';
import { newLane } from './rules.ts';

/** Says on other hosts that somebody subscribed. */
const SUBSCRIBED = 'webhook-subscribed';

/**
 * Opens lanes in the transactions that move runs, and calls for whoever works in them. Which tenants may have webhooks
 * is remembered to save work; where there are several hosts nothing depends on it but how soon a lane is looked at.
 */
export class Lanes {
  readonly #runtime: Runtime;
  readonly #subscribed = new Set<string>();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    runtime.hub.onAppend((append) => {
      if (this.#subscribed.has(append.identity.subject.tenant)) runtime.hub.callToWork(LANE);
    });
    runtime.hub.onWork((workId) => {
      if (workId === SUBSCRIBED) void this.#lookAgain();
    });
  }

  readonly reaction: Reaction = ({ identity: { subject }, run: { facts }, events, isInherited }: Append) => {
    const { tenant, workspace } = subject;
    // What a replay says has been said, and so has what a fork was handed.
    if (facts.fork?.mode === 'replay' || isInherited) return [];
    // The one host of a store that has one owner knows every webhook there is.
    if (!this.#runtime.store.isShared && !this.#subscribed.has(tenant)) return [];
    const types = [...new Set(events.map(({ type }) => type))].filter((type) => isDelivered(facts.workflowId, type));
    if (types.length === 0) return [];
    const lane = JSON.stringify(newLane(events[0]!.sequence - 1));
    return [openLanes({ tenant, workspace, runId: facts.runId, tags: facts.tags ?? [], types }, lane)];
  };

  /** Called before the webhook is in the store, so that no run moves on unnoticed once it is. */
  expect(tenant: string): void {
    this.#subscribed.add(tenant);
  }

  /** Called once it is there: other hosts may want to know. */
  announce(): void {
    this.#runtime.store.hint([`work:${SUBSCRIBED}`]);
  }

  async look(): Promise<void> {
    const rows = await this.#runtime.store.read<{ tenant: string }>(listSubscribedTenants());
    for (const { tenant } of rows) this.#subscribed.add(tenant);
  }

  async #lookAgain(): Promise<void> {
    try {
      await this.look();
    } catch (error) {
      this.#runtime.log.warn({ err: error }, 'could not see who has webhooks; deliveries may begin a second late');
    }
  }
}
