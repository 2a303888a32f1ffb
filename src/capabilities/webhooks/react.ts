import type { Append, Reaction } from '../../runtime/append.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { LANE, listSubscribedTenants, openLanes } from './records.ts';
import { newLane } from './rules.ts';

/** Says on other hosts that somebody subscribed. */
const SUBSCRIBED = 'webhook-subscribed';

/**
 * Opens lanes in the transactions that move runs, and calls for whoever works in them. Which tenants have webhooks is
 * known here only to save a look at the queue after each append: what is true is in the store.
 */
export class Lanes {
  readonly #runtime: Runtime;
  #subscribed = new Set<string>();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    runtime.hub.onAppend((append) => {
      if (this.#subscribed.has(append.identity.subject.tenant)) runtime.hub.callToWork(LANE);
    });
    runtime.hub.onWork((workId) => {
      if (workId === SUBSCRIBED) void this.look();
    });
  }

  readonly reaction: Reaction = ({ identity: { subject }, run, events }: Append) => {
    const after = events[0]!.sequence - 1;
    const { tenant, workspace } = subject;
    return [openLanes({ tenant, workspace, runId: run.facts.runId, after }, JSON.stringify(newLane(after)))];
  };

  subscribed(tenant: string): void {
    this.#subscribed.add(tenant);
    this.#runtime.store.hint([`work:${SUBSCRIBED}`]);
  }

  async look(): Promise<void> {
    try {
      const rows = await this.#runtime.store.read<{ tenant: string }>(listSubscribedTenants());
      this.#subscribed = new Set(rows.map(({ tenant }) => tenant));
    } catch (error) {
      this.#runtime.log.warn({ err: error }, 'could not see who has webhooks; deliveries may begin a second late');
    }
  }
}
