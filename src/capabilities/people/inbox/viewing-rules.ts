import type { InboxLook, InboxViewer } from '../../../protocol/people/inbox.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Caller } from '../../request.ts';
import { timestamp } from '../../timestamps.ts';
import type { InboxEntry } from './door.ts';

/** How long a view lasts that nobody renews: a window that was closed or cut off is gone after that. */
export const VIEW_MS = 10_000;
/** How long a stored view lasts if the host that stored it dies. */
export const STORED_VIEW_MS = 60_000;
/** How often a host says again that a view lasts, while it does. */
export const STORE_VIEW_EVERY_MS = 30_000;
/** Views that a host holds at most, so that no caller fills its memory. */
export const VIEW_LIMITS = { ofPrincipal: 100, ofItem: 200, ofTenant: 1_000 } as const;

/** The part of an entry that names it. */
export type ViewedItem = Pick<InboxEntry, 'kind' | 'id' | 'runId' | 'workspace'>;

/** One window of somebody, and the item that is open in it. */
export interface View {
  readonly tenant: string;
  readonly principal: string;
  /** Names the window; its caller chose it. */
  readonly viewId: string;
  readonly item: ViewedItem;
  readonly since: number;
}

/** A view that this host has received. */
export interface HeldView extends View {
  /** When it is over, unless it is renewed before. */
  readonly until: number;
  /** When it is stored again for the other hosts; 0 if it was not stored yet. */
  readonly storeAgainAt: number;
}

/** What names a view among those of all tenants. */
export function viewKeyOf({ tenant, principal, viewId }: Pick<View, 'tenant' | 'principal' | 'viewId'>): string {
  return JSON.stringify([tenant, principal, viewId]);
}

/** Whether an item is the one that a request or a view names. */
export function isSameItem(one: Pick<InboxLook, 'kind' | 'id' | 'runId'>, other: ViewedItem): boolean {
  return one.kind === other.kind && one.id === other.id && (one.runId ?? other.runId) === other.runId;
}

/** The limit that one more view would exceed. */
export function exceededBy(
  view: View,
  held: Iterable<View>,
): { readonly what: keyof typeof VIEW_LIMITS; readonly limit: number } | undefined {
  const own = viewKeyOf(view);
  const others = [...held].filter((each) => each.tenant === view.tenant && viewKeyOf(each) !== own);
  const counts = {
    ofPrincipal: others.filter(({ principal }) => principal === view.principal).length,
    ofItem: others.filter(({ item }) => isSameItem(item, view.item)).length,
    ofTenant: others.length,
  };
  const what = (['ofPrincipal', 'ofItem', 'ofTenant'] as const).find((name) => counts[name] >= VIEW_LIMITS[name]);
  return what && { what, limit: VIEW_LIMITS[what] };
}

/** Whether the caller has the item in their own inbox. */
function canSee({ subject, scopes }: Caller, { item, tenant }: View): boolean {
  if (subject.tenant !== tenant || (subject.workspace ?? item.workspace) !== item.workspace) return false;
  return item.kind !== 'proposal' || scopes.has('proposals:read');
}

/** Those whom a caller may see, each once for an item, since the first of their windows. */
export function viewersFor(caller: Caller, views: readonly View[]): InboxViewer[] {
  const viewers = new Map<string, InboxViewer>();
  const visible = views.filter((view) => canSee(caller, view));
  for (const { item, principal, since } of visible.sort((one, other) => one.since - other.since)) {
    const { kind, id, runId } = item;
    const key = JSON.stringify([kind, id, runId, principal]);
    const named = { kind, id, ...(runId === undefined ? {} : { runId }), principal, since: timestamp(since) };
    if (!viewers.has(key)) viewers.set(key, named);
  }
  return [...viewers.values()];
}

/** The parts of the tenant that see a difference when a view goes from one item to another, or is new, or over. */
export function scopesOfMove(tenant: string, ...items: readonly (ViewedItem | undefined)[]): Visibility[] {
  const workspaces = new Set(items.flatMap((item) => (item ? [item.workspace] : [])));
  return [...workspaces].map((workspace) => ({ tenant, workspace: workspace ?? undefined }));
}
