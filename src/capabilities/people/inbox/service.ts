import type { Host } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import { type InboxEntry, type InboxPlace, InboxSources } from './door.ts';
import { newestFirst } from './rules.ts';

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
}
