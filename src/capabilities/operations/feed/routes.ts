import { isRefusal } from '../../../protocol/errors.ts';
import { route } from '../../request.ts';
import { type FeedService, idOf } from './service.ts';

export const followTenant = route<{ readonly feed: FeedService }>()({
  operationId: 'followTenant',
  summary: 'Follow everything that happens: runs, judgements, proposals, goals, the inbox',
  method: 'GET',
  path: '/v1/host/capstan/events',
  scope: 'runs:read',
  replies: { 200: 'text/event-stream' },
  refusals: [400],
  handle: async (request, { feed }) => {
    const open = await feed.open(request.caller, request.header('last-event-id') || undefined);
    if (isRefusal(open)) return open;
    return {
      status: 200,
      headers: {
        'Content-Type': 'text/event-stream',
        'Cache-Control': 'no-cache',
        'X-Accel-Buffering': 'no',
        // Where the feed begins, for a reader that is cut off before the first entry.
        'Last-Event-ID': idOf(open),
      },
      stream: (signal) => feed.follow(request.caller, open, signal),
    };
  },
});
