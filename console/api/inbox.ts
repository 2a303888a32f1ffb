import { infiniteQueryOptions } from '@tanstack/react-query';
import { client } from './client.ts';

const PAGE = 200;

/** Everything that waits for a person, newest first, a page at a time. */
export const inboxQuery = infiniteQueryOptions({
  queryKey: ['inbox'],
  queryFn: ({ pageParam, signal }) =>
    client.listInbox({ limit: PAGE, ...(pageParam ? { cursor: pageParam } : {}) }, { signal }),
  initialPageParam: '',
  getNextPageParam: ({ nextCursor }) => nextCursor,
});
