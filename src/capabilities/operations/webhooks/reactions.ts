import type { AppendListener } from '../../../runtime/hub.ts';
import { KnownTenants } from '../../../runtime/known-tenants.ts';
import type { Append, Reaction } from '../../../runtime/reaction.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { isDelivered } from './deliverable.ts';
import { DELIVERY, listSubscribedTenants, startDeliveries } from './records.ts';
import { deliveredRun, newCursor } from './rules.ts';

type SubscriberRuntime = Pick<Runtime, 'store' | 'hub' | 'log'> & Partial<Pick<Runtime, 'tracing'>>;

/** Adds the work items of deliveries to the units that move runs. */
export class Subscribers {
  readonly #runtime: SubscriberRuntime;
  readonly tenants: KnownTenants;

  constructor(runtime: SubscriberRuntime) {
    this.#runtime = runtime;
    this.tenants = new KnownTenants(runtime, { list: listSubscribedTenants, topic: 'webhook-subscribed' });
  }

  readonly reaction: Reaction = ({ identity: { subject }, run: { facts }, events, isInherited }: Append) => {
    const { tenant, workspace } = subject;
    // The events of a replay, and those that a fork inherits, were delivered from their source.
    if (facts.fork?.mode === 'replay' || isInherited || !this.tenants.mayHave(tenant)) return [];
    const types = [...new Set(events.map(({ type }) => type))].filter((type) => isDelivered(facts.workflowId, type));
    if (types.length === 0) return [];
    const run = { tenant, workspace, runId: facts.runId, tags: facts.tags ?? [], types };
    return [startDeliveries(run, newCursor(events[0]!.sequence - 1, { run: deliveredRun(this.#runtime, facts) }))];
  };

  /** Has the executor claim deliveries of this append at once. */
  readonly onAppend: AppendListener = ({ identity }) => {
    if (this.tenants.has(identity.subject.tenant)) this.#runtime.hub.wakeWorkers(DELIVERY);
  };
}
