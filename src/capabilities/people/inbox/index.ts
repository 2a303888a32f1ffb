import { isRefusal, refuse } from '../../../protocol/errors.ts';
import { InboxItem } from '../../../protocol/people/inbox.ts';
import type { ProposalService } from '../../learning/proposals/service.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { ListQuery, Page, pageOf, pageRequest } from '../../page.ts';
import { reply, route } from '../../request.ts';
import type { FeedbackService } from '../feedback/service.ts';
import type { InterruptService } from '../interrupts/service.ts';
import {
  type InboxEntry,
  type InboxPlace,
  type InboxService,
  type InboxSource,
  inboxService,
  interruptSource,
  placeOf,
  reviewSource,
} from './service.ts';

const listInbox = route<{ readonly inbox: InboxService & { now(): number } }>()({
  operationId: 'listInbox',
  summary: 'What waits for a person, newest first',
  method: 'GET',
  path: '/v1/host/capstan/inbox',
  scope: 'runs:read',
  query: ListQuery({}),
  replies: { 200: Page(InboxItem) },
  refusals: [400],
  handle: async ({ caller, query }, { inbox }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const before = page.after === undefined ? undefined : readPlace(page.after);
    if (before === null)
      return refuse('validation_error', 'cursor is not one that this host gave out.', { field: 'cursor' });
    const items = await inbox.list(caller, before, page.limit + 1);
    const shown = ({ createdAt, ...item }: InboxEntry) => ({
      ...item,
      createdAt: new Date(createdAt).toISOString(),
      ageMs: Math.max(0, inbox.now() - createdAt),
    });
    return reply(
      200,
      pageOf(items, page, shown, (item) => Object.values(placeOf(item)).join('.')),
    );
  },
});

/** Null when the text names no place. */
function readPlace(text: string): InboxPlace | null {
  const [, at, id, runId = ''] = /^(\d{1,16})\.([\w-]+)\.([\w-]*)$/.exec(text) ?? [];
  return at === undefined || id === undefined ? null : { at: Number(at), id, runId };
}

interface InboxNeeds {
  readonly interrupts: InterruptService;
  readonly feedback?: FeedbackService;
  readonly proposals: ProposalService;
  readonly goals: { readonly waiting: readonly InboxSource[] };
}

/** One place for everything that waits for somebody. */
export const inbox: Capability<'inbox', InboxService & { now(): number }> = {
  name: 'inbox',
  service: ({ runtime }, { interrupts, feedback, proposals, goals }: InboxNeeds) => ({
    ...inboxService([
      interruptSource(interrupts, proposals),
      ...(feedback ? [reviewSource(feedback)] : []),
      ...proposals.waiting,
      ...goals.waiting,
    ]),
    now: runtime.clock.now,
  }),
  routes: [listInbox],
};
