import type { InboxLook } from '../../../protocol/people/inbox.ts';
import { isManagement } from '../../../protocol/running/management.ts';
import { findRuns, type ListedRun } from '../../../store/log.ts';
import type { Store } from '../../../store/store.ts';
import type { Host } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import { type InboxEntry, type InboxPlace, type InboxSource, InboxSources } from './door.ts';
import { newestFirst } from './rules.ts';
import { isSameItem } from './viewing-rules.ts';

/** Items of one moment that share an id, which forks of a run do; more of them are not told apart. */
const TWINS_MAX = 200;

/** What an item says about its run. */
interface ItemRun {
  readonly workflowId: string;
  readonly startedBy: string;
}

/** One list of everything that waits for a person, whichever capability it belongs to. */
export class InboxService {
  readonly #host: Pick<Host, 'extensions'>;
  readonly #store: Pick<Store, 'read'>;

  constructor(host: Pick<Host, 'extensions'>, store: Pick<Store, 'read'>) {
    this.#host = host;
    this.#store = store;
  }

  /** Entries before a position, newest first. */
  list(caller: Caller, before: InboxPlace | undefined, limit: number): Promise<InboxEntry[]> {
    return merged(this.#sourcesFor(caller), caller, before, limit);
  }

  /** The runs of entries by their ids, without those of the host itself: a proposal or a goal is known by its own name. */
  async runsOf({ subject: { tenant } }: Caller, entries: readonly InboxEntry[]): Promise<ReadonlyMap<string, ItemRun>> {
    const runIds = [...new Set(entries.flatMap(({ runId = [] }) => runId))];
    if (runIds.length === 0) return new Map();
    const rows = await this.#store.read<ListedRun>(findRuns(tenant, runIds));
    const named = rows.filter(({ workflow_id }) => !isManagement(workflow_id));
    return new Map(
      named.map(({ run_id, workflow_id, principal }) => [run_id, { workflowId: workflow_id, startedBy: principal }]),
    );
  }

  /** One item of the caller's inbox, which is found by where the list has it. */
  async find(caller: Caller, wanted: InboxLook): Promise<InboxEntry | undefined> {
    // The position right after its id comes before the item in the list, whichever run it belongs to.
    const at = Date.parse(wanted.createdAt);
    // Leap seconds and named zones are timestamps that no item has.
    if (Number.isNaN(at)) return undefined;
    const before = { at, id: `${wanted.id}0`, runId: '' };
    const sources = this.#sourcesFor(caller).filter(({ kinds }) => kinds.includes(wanted.kind));
    const near = await merged(sources, caller, before, TWINS_MAX);
    return near.find((entry) => isSameItem(wanted, entry));
  }

  /** The sources whose entries the caller may see. */
  #sourcesFor({ scopes }: Caller): InboxSource[] {
    return this.#host.extensions(InboxSources).filter(({ scope }) => scope === undefined || scopes.has(scope));
  }
}

async function merged(
  sources: readonly InboxSource[],
  caller: Caller,
  before: InboxPlace | undefined,
  limit: number,
): Promise<InboxEntry[]> {
  const parts = await Promise.all(sources.map((source) => source.list(caller, before, limit)));
  return parts.flat().sort(newestFirst).slice(0, limit);
}
