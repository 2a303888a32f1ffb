import { isRefusal } from '../../../protocol/errors.ts';
import { route } from '../../request.ts';
import { eventIdOf } from './rules.ts';
import type { FeedService } from './service.ts';

const followTenant = route<{ readonly feed: FeedService }>()({
  operationId: 'followTenant',
  summary: 'Stream what happens in the tenant: runs, annotations, proposals, goals, the inbox',
  method: 'GET',
  path: '/v1/host/capstan/events',
  scope: 'runs:read',
  replies: { 200: 'text/event-stream' },
  refusals: [400],
  handle: async (request, { feed }) => {
    const start = await feed.open(request.caller, request.header('last-event-id') || undefined);
    if (isRefusal(start)) return start;
    return {
      status: 200,
      headers: {
        'Content-Type': 'text/event-stream',
        'Cache-Control': 'no-cache',
        'X-Accel-Buffering': 'no',
        // Where the stream starts, for a reader that is disconnected before the first entry.
        'Last-Event-ID': eventIdOf(start),
      },
      stream: (signal) => feed.follow(request.caller, start, signal),
    };
  },
});

/** The operation that streams the feed. */
export const routes = [followTenant];
