import { Type } from 'typebox';
import { isRefusal } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { InboxItem, InboxLook, InboxPresence, InboxViewers } from '../../../protocol/people/inbox.ts';
import type { Clock } from '../../../system/clock.ts';
import { ListQuery, Page, pageFrom, pageOf } from '../../page.ts';
import { NO_CONTENT, reply, route, transact } from '../../request.ts';
import type { InboxEntry } from './door.ts';
import { placeFrom, placeOf, placeText } from './rules.ts';
import type { InboxService } from './service.ts';
import type { InboxViewing } from './viewing.ts';

/** What the handlers of inbox routes use. */
interface Services {
  readonly inbox: InboxService;
  readonly viewing: InboxViewing;
  readonly clock: Clock;
}

const listInbox = route<Services>()({
  operationId: 'listInbox',
  summary: 'List what waits for a person, newest first',
  method: 'GET',
  path: '/v1/host/capstan/inbox',
  scope: 'runs:read',
  query: ListQuery({}),
  replies: { 200: Page(InboxItem) },
  refusals: [400],
  handle: async ({ caller, query }, { inbox, clock }) => {
    const page = pageFrom(query, placeFrom);
    if (isRefusal(page)) return page;
    const entries = await inbox.list(caller, page.after, page.limit + 1);
    const now = clock.now();
    const runs = await inbox.runsOf(caller, entries);
    return reply(
      200,
      pageOf(
        entries,
        page,
        (entry) => ({ ...itemOf(entry, now), ...runs.get(entry.runId ?? '') }),
        (entry) => placeText(placeOf(entry)),
      ),
    );
  },
});

function itemOf({ createdAt, workspace: _, ...entry }: InboxEntry, now: number): InboxItem {
  return { ...entry, createdAt: new Date(createdAt).toISOString(), ageMs: Math.max(0, now - createdAt) };
}

const VIEWERS = '/v1/host/capstan/inbox/viewers';
const params = Closed({
  viewId: Type.String({ pattern: '^[A-Za-z0-9_-]{8,64}$', description: 'Names a window; its page makes it up' }),
});

const listInboxViewers = route<Services>()({
  operationId: 'listInboxViewers',
  summary: 'List who has which item of the inbox open now',
  method: 'GET',
  path: VIEWERS,
  scope: 'runs:read',
  replies: { 200: InboxViewers },
  handle: async ({ caller }, { viewing }) => reply(200, { items: await viewing.list(caller) }),
});

const lookAtInboxItem = route<Services>()({
  operationId: 'lookAtInboxItem',
  summary: 'Report that an item of the inbox is open in a window; repeat it while the item stays open',
  method: 'PUT',
  path: `${VIEWERS}/{viewId}`,
  scope: 'runs:read',
  params,
  body: InboxLook,
  isUnrecorded: true,
  replies: { 200: InboxPresence },
  refusals: [400, 404, 409],
  handle: ({ caller, params: { viewId }, body }, { viewing }) =>
    transact(
      () => viewing.look(caller, viewId, body),
      (presence) => reply(200, presence),
      { isAdditive: true },
    ),
});

const leaveInboxItem = route<Services>()({
  operationId: 'leaveInboxItem',
  summary: 'Say that no item of the inbox is open in a window any more',
  method: 'DELETE',
  path: `${VIEWERS}/{viewId}`,
  scope: 'runs:read',
  params,
  isUnrecorded: true,
  replies: { 204: 'nothing' },
  refusals: [400],
  handle: ({ caller, params: { viewId } }, { viewing }) =>
    transact(
      () => viewing.leave(caller, viewId),
      () => NO_CONTENT,
      { isAdditive: true },
    ),
});

/** The routes of the inbox. */
export const routes = [listInbox, listInboxViewers, lookAtInboxItem, leaveInboxItem];
