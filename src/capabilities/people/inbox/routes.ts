import { isRefusal, refuse } from '../../../protocol/errors.ts';
import { InboxItem } from '../../../protocol/people/inbox.ts';
import type { Clock } from '../../../system/clock.ts';
import { ListQuery, Page, pageOf, pageRequest } from '../../page.ts';
import { reply, route } from '../../request.ts';
import type { InboxEntry } from './door.ts';
import { placeFrom, placeOf, placeText } from './rules.ts';
import type { InboxService } from './service.ts';

/** What the handlers of inbox routes use. */
interface Services {
  readonly inbox: InboxService;
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
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const before = page.after === undefined ? undefined : placeFrom(page.after);
    if (page.after !== undefined && !before) {
      return refuse('validation_error', 'cursor is not a cursor of this list.', { field: 'cursor' });
    }
    const entries = await inbox.list(caller, before, page.limit + 1);
    const now = clock.now();
    return reply(
      200,
      pageOf(
        entries,
        page,
        (entry) => itemOf(entry, now),
        (entry) => placeText(placeOf(entry)),
      ),
    );
  },
});

function itemOf({ createdAt, ...entry }: InboxEntry, now: number): InboxItem {
  return { ...entry, createdAt: new Date(createdAt).toISOString(), ageMs: Math.max(0, now - createdAt) };
}

/** The routes of the inbox. */
export const routes = [listInbox];
