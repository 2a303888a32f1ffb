import type { InboxLook } from '../../../protocol/people/inbox.ts';
import type { Host } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import { type InboxEntry, type InboxPlace, InboxSources } from './door.ts';
import { newestFirst } from './rules.ts';
import { isSameItem } from './viewing-rules.ts';

/** Items of one moment that share an id, which forks of a run do; more of them are not told apart. */
const TWINS_MAX = 200;

/** One list of everything that waits for a person, whichever capability it belongs to. */
export class InboxService {
  readonly #host: Pick<Host, 'extensions'>;

  constructor(host: Pick<Host, 'extensions'>) {
    this.#host = host;
  }

  /** Entries before a position, newest first. */
  async list(caller: Caller, before: InboxPlace | undefined, limit: number): Promise<InboxEntry[]> {
    const sources = this.#host.extensions(InboxSources);
    const parts = await Promise.all(sources.map((source) => source(caller, before, limit)));
    return parts.flat().sort(newestFirst).slice(0, limit);
  }

  /** One item of the caller's inbox, which is found by where the list has it. */
  async find(caller: Caller, wanted: InboxLook): Promise<InboxEntry | undefined> {
    // The position right after its id comes before the item in the list, whichever run it belongs to.
    const at = Date.parse(wanted.createdAt);
    // Leap seconds and named zones are timestamps that no item has.
    if (Number.isNaN(at)) return undefined;
    const before = { at, id: `${wanted.id}0`, runId: '' };
    const near = await this.list(caller, before, TWINS_MAX);
    return near.find((entry) => isSameItem(wanted, entry));
  }
}
