import { NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { InboxLook, InboxPresence, InboxViewer } from '../../../protocol/people/inbox.ts';
import { and, type Change, changeOf, commitOrThrow, perform, unchanged, withResult } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Cancel } from '../../../system/clock.ts';
import type { Feed } from '../../operations/feed/door.ts';
import type { Caller } from '../../request.ts';
import type { InboxService } from './service.ts';
import {
  deleteOldViews,
  deleteView,
  deleteViewsOf,
  endView,
  listViews,
  saveView,
  viewFrom,
} from './viewing-records.ts';
import {
  exceededBy,
  type HeldView,
  isSameItem,
  STORE_VIEW_EVERY_MS,
  STORED_VIEW_MS,
  scopesOfMove,
  VIEW_LIMITS,
  VIEW_MS,
  type View,
  type ViewedItem,
  viewersFor,
  viewKeyOf,
} from './viewing-rules.ts';

/** How often a host looks whose views are over. */
const SWEEP_MS = 1_000;

type ViewingRuntime = Pick<Runtime, 'store' | 'clock' | 'ids' | 'log' | 'mutex'>;

/** What it is made of. */
interface ViewingParts {
  readonly inbox: Pick<InboxService, 'find'>;
  readonly feed: Pick<Feed, 'publish'>;
}

/**
 * Who has which item of the inbox open.
 *
 * V1. Whoever looks goes on saying so. That is noted in the memory of the host that hears it; nothing is written.
 * V2. On a shared store the host stores its views for the others: when one begins, moves or ends, and every 30 seconds.
 * V3. Readers of the feed are told when somebody comes, moves or goes, in the part of the tenant that sees the item.
 */
export class InboxViewing {
  readonly #runtime: ViewingRuntime;
  readonly #parts: ViewingParts;
  readonly #host: string;
  readonly #held = new Map<string, HeldView>();
  #cancelSweep: Cancel | undefined;

  constructor(runtime: ViewingRuntime, parts: ViewingParts) {
    this.#runtime = runtime;
    this.#parts = parts;
    this.#host = runtime.ids.next('');
  }

  /** Notes that the caller has an item open in one of their windows, until shortly after they said so last. */
  async look(caller: Caller, viewId: string, wanted: InboxLook): Promise<Change<InboxPresence> | Refusal> {
    const { tenant, principal } = caller.subject;
    const key = viewKeyOf({ tenant, principal, viewId });
    const known = this.#held.get(key);
    const item = known && isSameItem(wanted, known.item) ? known.item : await this.#parts.inbox.find(caller, wanted);
    if (!item) return NOT_FOUND;
    const now = this.#runtime.clock.now();
    const isSame = known !== undefined && isSameItem(known.item, item);
    const { kind, id, runId, workspace } = item;
    const named: ViewedItem = { kind, id, workspace, ...(runId === undefined ? {} : { runId }) };
    const view: View = { tenant, principal, viewId, item: named, since: isSame ? known.since : now };
    const exceeded = isSame ? undefined : exceededBy(view, this.#held.values());
    if (exceeded) return refuse('conflict', 'Too many windows have the inbox open.', { ...exceeded });
    // Noted at once, so that requests which come together count each other.
    this.#hold(key, { ...view, until: now + VIEW_MS, storeAgainAt: isSame ? known.storeAgainAt : 0 });
    const stored = isSame && now < known.storeAgainAt ? unchanged(undefined) : this.#store(key, view);
    const moved = isSame ? [] : [this.#publish(scopesOfMove(tenant, known?.item, named))];
    const views = [...(await this.#viewsOf(tenant)).filter((each) => viewKeyOf(each) !== key), view];
    const items = viewersFor(caller, views).filter((viewer) => isSameItem(viewer, named));
    return withResult(and(stored, ...moved), () => ({ items, expiresInMs: VIEW_MS }));
  }

  /** Ends a view; one that is over already is none. */
  async leave({ subject: { tenant, principal } }: Caller, viewId: string): Promise<Change> {
    const view = { tenant, principal, viewId };
    const known = this.#held.get(viewKeyOf(view)) ?? (await this.#findStored(view));
    this.#held.delete(viewKeyOf(view));
    if (!known) return unchanged(undefined);
    const ended = this.#runtime.store.isShared ? [endView(view)] : [];
    return and(changeOf(undefined, ended), this.#publish(scopesOfMove(tenant, known.item)));
  }

  /** Everybody who looks at something that is in the caller's inbox. */
  async list(caller: Caller): Promise<InboxViewer[]> {
    return viewersFor(caller, await this.#viewsOf(caller.subject.tenant));
  }

  /** To be called when the host stops: nobody looks through it any more. */
  async stop(): Promise<void> {
    this.#cancelSweep?.();
    this.#held.clear();
    const { store, log } = this.#runtime;
    if (!store.isShared) return;
    try {
      await commitOrThrow(store, [deleteViewsOf(this.#host)]);
    } catch (error) {
      log.warn({ err: error }, 'views of the inbox on this host could not be removed; they expire within a minute');
    }
  }

  #store(key: string, view: View): Change {
    if (!this.#runtime.store.isShared) return unchanged(undefined);
    const writes = [deleteOldViews(), saveView(view, this.#host, STORED_VIEW_MS)];
    return changeOf(undefined, writes, { announce: [() => this.#noteStored(key, view)] });
  }

  #noteStored(key: string, view: View): void {
    const held = this.#held.get(key);
    if (!held || !isSameItem(held.item, view.item)) return;
    this.#held.set(key, { ...held, storeAgainAt: this.#runtime.clock.now() + STORE_VIEW_EVERY_MS });
  }

  #publish(scopes: readonly Visibility[]): Change {
    const [first = unchanged(undefined), ...others] = scopes.map((scope) =>
      this.#parts.feed.publish(scope, [{ event: 'inbox.viewers', data: {} }]),
    );
    return and(first, ...others);
  }

  async #viewsOf(tenant: string): Promise<View[]> {
    const { store } = this.#runtime;
    if (!store.isShared) return [...this.#held.values()].filter((view) => view.tenant === tenant);
    const rows = await store.read<Parameters<typeof viewFrom>[0]>(listViews(tenant, VIEW_LIMITS.ofTenant));
    return rows.map(viewFrom);
  }

  async #findStored(view: Pick<View, 'tenant' | 'principal' | 'viewId'>): Promise<View | undefined> {
    if (!this.#runtime.store.isShared) return undefined;
    return (await this.#viewsOf(view.tenant)).find((each) => viewKeyOf(each) === viewKeyOf(view));
  }

  #hold(key: string, view: HeldView): void {
    this.#held.set(key, view);
    this.#cancelSweep ??= this.#runtime.clock.after(SWEEP_MS, () => void this.#sweep());
  }

  /** Ends the views that nobody has renewed. */
  async #sweep(): Promise<void> {
    const { clock, log, store } = this.#runtime;
    const over = [...this.#held].filter(([, { until }]) => until <= clock.now());
    for (const [key] of over) this.#held.delete(key);
    this.#cancelSweep = this.#held.size === 0 ? undefined : clock.after(SWEEP_MS, () => void this.#sweep());
    try {
      for (const [, view] of over) {
        const taken = changeOf(undefined, store.isShared ? [deleteView(view, this.#host)] : []);
        await perform(this.#runtime, async () => and(taken, this.#publish(scopesOfMove(view.tenant, view.item))));
      }
    } catch (error) {
      log.warn({ err: error }, 'the end of views of the inbox was not published; their rows expire within a minute');
    }
  }
}
