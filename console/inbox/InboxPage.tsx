import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { ArrowLeft, Bell, BellOff } from 'lucide-react';
import { useMemo, useState } from 'react';
import type { InboxItem } from '../../src/protocol/people/inbox.ts';
import { inboxQuery } from '../api/inbox.ts';
import { useLooking } from '../api/looking.ts';
import { isBlocked } from '../api/queries.ts';
import { Button } from '../parts/Button.tsx';
import { useKeys } from '../parts/keys.ts';
import { Principal } from '../parts/Principal.tsx';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import { Time } from '../parts/Time.tsx';
import styles from './InboxPage.module.css';
import { InterruptItem } from './InterruptItem.tsx';
import { leave, useLeaving } from './leaving.ts';
import { useNotices } from './notices.ts';
import { DisputeItem, FeedbackItem, GoalItem, ProposalItem, QuarantineItem } from './OtherItems.tsx';
import { keyOf, placeOf, type QueueGroup, queueOf, runOf } from './queue.ts';
import { ItemViewers, type OthersAt, RowViewers, useOthers } from './Viewers.tsx';

const route = getRouteApi('/shell/inbox');

const DETAILS = {
  interrupt: InterruptItem,
  gate: InterruptItem,
  goal: GoalItem,
  dispute: DisputeItem,
  proposal: ProposalItem,
  feedback: FeedbackItem,
  quarantine: QuarantineItem,
} as const;

/** Everything that waits for a person: the queue on one side, the item on the other, all of it by keyboard. */
export function InboxPage() {
  const { item: wanted } = route.useSearch();
  const navigate = useNavigate();
  const query = useInfiniteQuery(inboxQuery);
  const { items, fresh, showFresh } = useQueue(query.data?.pages.flatMap((page) => page.items));
  const groups = useMemo(() => queueOf(items), [items]);
  const order = groups.flatMap((group) => group.items);
  const index = wanted === undefined ? 0 : order.findIndex((item) => keyOf(item) === wanted);
  const shown = order[index];
  const othersAt = useOthers();
  useLooking(shown);
  const open = (item: InboxItem | undefined): void =>
    void navigate({ to: '/inbox', search: item ? { item: keyOf(item) } : {}, replace: true, resetScroll: false });
  const move = (by: number) => (): void => open(order[Math.min(order.length - 1, Math.max(0, index + by))]);
  useKeys('Inbox', [
    { keys: 'j', label: 'Next item', act: move(1) },
    { keys: 'k', label: 'Previous item', act: move(-1) },
    { keys: 'ArrowDown', label: 'Next item', act: move(1) },
    { keys: 'ArrowUp', label: 'Previous item', act: move(-1) },
  ]);
  const answer = (item: InboxItem) => (text: string, send: () => Promise<unknown>) => {
    open(order[index + 1] ?? order[index - 1]);
    leave(keyOf(item), text, send);
  };
  if (isBlocked(query)) return <Problem error={query.error} onRetry={() => void query.refetch()} />;
  const Detail = shown && DETAILS[shown.kind];
  return (
    <div
      className={styles.page}
      data-open={wanted === undefined ? undefined : ''}
      data-empty={order.length === 0 ? '' : undefined}
    >
      <section className={styles.queue} aria-label="Queue">
        <Head count={order.length} isMore={query.hasNextPage} />
        {fresh > 0 && (
          <Button kind="fresh" onClick={showFresh}>
            {fresh} new
          </Button>
        )}
        {query.isPending && <Skeleton lines={8} />}
        {groups.map((group) => (
          <Group key={group.title} group={group} shown={shown} othersAt={othersAt} />
        ))}
        {query.hasNextPage && (
          <Button isBusy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Show older ones
          </Button>
        )}
      </section>
      <section className={styles.detail} aria-label="Item" aria-live="polite">
        <div className={styles.back}>
          <Button kind="quiet" icon={<ArrowLeft />} onClick={() => open(undefined)}>
            All
          </Button>
        </div>
        {shown && <ItemViewers names={othersAt(shown)} />}
        {shown && Detail ? (
          <Detail key={keyOf(shown)} item={shown} onAnswer={answer(shown)} />
        ) : (
          query.isSuccess && <Nothing isLeft={order.length > 0} onNext={() => open(order[0])} />
        )}
      </section>
    </div>
  );
}

/** New items wait behind a button, so that nothing moves under the pointer; an empty queue takes them at once. */
function useQueue(all: readonly InboxItem[] | undefined) {
  const leaving = useLeaving();
  const [seen, setSeen] = useState<ReadonlySet<string>>();
  if (all && (seen === undefined || seen.size === 0) && all.length > 0) setSeen(new Set(all.map(keyOf)));
  const waiting = (all ?? []).filter((item) => !leaving.has(keyOf(item)));
  const known = waiting.filter((item) => seen?.has(keyOf(item)));
  const isEmpty = known.length === 0;
  return {
    items: isEmpty ? waiting : known,
    fresh: isEmpty ? 0 : waiting.length - known.length,
    showFresh: () => setSeen(new Set((all ?? []).map(keyOf))),
  };
}

function Head({ count, isMore }: { readonly count: number; readonly isMore: boolean }) {
  const notices = useNotices();
  return (
    <header className={styles.head}>
      <h1>
        Inbox <span className={`number ${styles.count}`}>{isMore ? `${count}+` : count}</span>
      </h1>
      {notices.isPossible && (
        <Button
          kind="quiet"
          icon={notices.isOn ? <Bell /> : <BellOff />}
          aria-pressed={notices.isOn}
          aria-label="Notify me of new items"
          title="Notify me of new items"
          onClick={() => void notices.toggle()}
        />
      )}
    </header>
  );
}

function Group({
  group: { title, items },
  shown,
  othersAt,
}: {
  readonly group: QueueGroup;
  readonly shown: InboxItem | undefined;
  readonly othersAt: OthersAt;
}) {
  return (
    <section className={styles.group} aria-label={title}>
      <h2>
        {title} <span className="number quiet">{items.length}</span>
      </h2>
      <ul>
        {items.map((item) => (
          <li key={keyOf(item)}>
            <Link
              to="/inbox"
              search={{ item: keyOf(item) }}
              replace
              resetScroll={false}
              className={styles.row}
              aria-current={item === shown ? 'true' : undefined}
              activeOptions={{ includeSearch: true, exact: true }}
            >
              <span className={styles.title} dir="auto">
                {item.title}
              </span>
              {item.about !== undefined && (
                <span className={styles.about} dir="auto">
                  {item.about}
                </span>
              )}
              <span className={styles.facts}>
                <span className={styles.origin} dir="auto">
                  {placeOf(item)}
                </span>
                <Time at={item.createdAt} />
              </span>
              <RunFact item={item} />
              <RowViewers names={othersAt(item)} />
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

function RunFact({ item }: { readonly item: InboxItem }) {
  const run = runOf(item);
  if (run === undefined) return null;
  return (
    <span className={styles.facts} title={item.runId}>
      <span className={styles.origin}>
        {run}
        {item.startedBy !== undefined && (
          <>
            {' '}
            by <Principal id={item.startedBy} />
          </>
        )}
      </span>
    </span>
  );
}

function Nothing({ isLeft, onNext }: { readonly isLeft: boolean; readonly onNext: () => void }) {
  if (isLeft) {
    return (
      <Empty title="This item is closed" action={<Button onClick={onNext}>Show the next one</Button>}>
        Somebody answered it, or its run has ended.
      </Empty>
    );
  }
  return (
    <Empty title="Nothing waits for you">
      Approvals, questions, stopped goals, proposals and flagged runs appear here as soon as they wait for a person.
    </Empty>
  );
}
