import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useFeed } from '../api/feed.ts';
import { inboxQuery } from '../api/inbox.ts';
import { readAgain } from '../api/queries.ts';
import { useMay } from '../api/session.ts';
import styles from './InboxCount.module.css';
import { wantsNotices } from './notices.ts';
import { keyOf } from './queue.ts';

const TITLE = 'Capstan';

/** How much waits for a person: in the navigation, in the title of the page, and as a notice if that is wanted. */
export function InboxCount() {
  const may = useMay();
  const { data } = useInfiniteQuery({ ...inboxQuery, enabled: may('runs:read') });
  useFeed((event) => {
    if (event === 'inbox.changed') void readAgain({ queryKey: inboxQuery.queryKey });
  });
  const items = data?.pages.flatMap((page) => page.items) ?? [];
  const isMore = data?.pages.at(-1)?.nextCursor !== undefined;
  const words = items.length === 0 ? '' : `${items.length}${isMore ? '+' : ''}`;
  const seen = useRef<ReadonlySet<string>>(undefined);
  useEffect(() => {
    document.title = words === '' ? TITLE : `(${words}) ${TITLE}`;
    return () => {
      document.title = TITLE;
    };
  }, [words]);
  useEffect(() => {
    if (!data) return;
    const now = data.pages.flatMap((page) => page.items);
    const fresh = seen.current ? now.filter((item) => !seen.current?.has(keyOf(item))) : [];
    seen.current = new Set(now.map(keyOf));
    if (!document.hidden || fresh.length === 0 || !wantsNotices()) return;
    const body = fresh.length === 1 ? fresh[0]!.title : `${fresh.length} new items`;
    new Notification('Capstan: an item waits for a person', { body, tag: 'capstan-inbox' });
  }, [data]);
  if (words === '') return null;
  return (
    <b className={styles.count}>
      {words}
      <i className="hidden"> waiting</i>
    </b>
  );
}
