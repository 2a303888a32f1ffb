import { isManagement } from '../../../protocol/running/management.ts';
import { TRIGGER_EVENTS } from '../../../protocol/starting/triggers.ts';
import type { AppendListener } from '../../../runtime/hub.ts';
import { KnownTenants } from '../../../runtime/known-tenants.ts';
import type { Append, Reaction } from '../../../runtime/reaction.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { listTenantsWithEvents, startForEach, TRIGGER_WORK } from './records.ts';

const AWAITED: ReadonlySet<string> = new Set(TRIGGER_EVENTS);

/** Adds a work item for each event and trigger to the units that append the events. */
export class EventTriggers {
  readonly #hub: Runtime['hub'];
  readonly tenants: KnownTenants;

  constructor(runtime: Pick<Runtime, 'store' | 'hub' | 'log'>) {
    this.#hub = runtime.hub;
    this.tenants = new KnownTenants(runtime, { list: listTenantsWithEvents, topic: 'trigger-registered' });
  }

  readonly reaction: Reaction = (append) => {
    const { tenant, workspace } = append.identity.subject;
    if (!this.tenants.mayHave(tenant)) return [];
    const { runId } = append.run.facts;
    return awaitedIn(append).map(({ type, sequence }) => startForEach({ tenant, workspace, runId, sequence, type }));
  };

  /** Has the executor claim the work items at once. */
  readonly onAppend: AppendListener = (append) => {
    if (this.tenants.has(append.identity.subject.tenant) && awaitedIn(append).length > 0) {
      this.#hub.wakeWorkers(TRIGGER_WORK);
    }
  };
}

/**
 * The events that triggers may wait for. A replay repeats what has happened already, and so does the beginning of a fork.
 * How management runs proceed is internal to the host; what they record about proposals and goals is not.
 */
function awaitedIn({ run: { facts }, events, isInherited }: Append): Append['events'] {
  if (isInherited || facts.fork?.mode === 'replay') return [];
  const isInternal = isManagement(facts.workflowId);
  return events.filter(({ type }) => AWAITED.has(type) && !(isInternal && type.startsWith('run.')));
}
