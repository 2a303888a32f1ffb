import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import { useState } from 'react';
import type { Goal } from '../../src/protocol/learning/goals.ts';
import { useFeed } from '../api/feed.ts';
import { goalsQuery } from '../api/goals.ts';
import { isBlocked, readAgain } from '../api/queries.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { useKeys } from '../parts/keys.ts';
import { Mark } from '../parts/Mark.tsx';
import { counted } from '../parts/numbers.ts';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import { Time } from '../parts/Time.tsx';
import { GoalForm } from './GoalForm.tsx';
import styles from './GoalsPage.module.css';
import { CONTINUATIONS, GOAL_STATES, STATES } from './states.ts';

const route = getRouteApi('/shell/goals');

/** The standing goals, those that need somebody first. */
export function GoalsPage() {
  const { state, edit } = route.useSearch();
  const filter = state ? { state } : {};
  const may = useMay();
  const navigate = useNavigate();
  const query = useInfiniteQuery(goalsQuery(state));
  useFeed((event) => {
    if (event.startsWith('goal.')) void readAgain({ queryKey: ['goals'] });
  });
  const goals = query.data?.pages.flatMap((page) => page.goals) ?? [];
  return (
    <div className={styles.page}>
      <header className={styles.head}>
        <h1>Goals</h1>
        {may('goals:write') && (
          <Button
            kind="main"
            icon={<Plus />}
            onClick={() => void navigate({ to: '/goals', search: { ...filter, edit: 'goal' } })}
          >
            New goal
          </Button>
        )}
      </header>
      <nav className={styles.filter} aria-label="State">
        <Link
          to="/goals"
          search={{}}
          activeOptions={{ exact: true, includeSearch: true }}
          aria-current={state === undefined ? 'page' : undefined}
        >
          All
        </Link>
        {GOAL_STATES.map((each) => (
          <Link
            key={each}
            to="/goals"
            search={{ state: each }}
            activeOptions={{ exact: true, includeSearch: true }}
            aria-current={state === each ? 'page' : undefined}
          >
            {STATES[each][2]}
          </Link>
        ))}
      </nav>
      {isBlocked(query) ? (
        <Problem error={query.error} onRetry={() => void query.refetch()} />
      ) : query.isPending ? (
        <Skeleton lines={6} />
      ) : goals.length === 0 ? (
        <NoGoals isFiltered={state !== undefined} />
      ) : (
        <Cards goals={goals} />
      )}
      {query.hasNextPage && (
        <Button isBusy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          Show older ones
        </Button>
      )}
      {edit === 'goal' && may('goals:write') && (
        <GoalForm
          onClose={() => void navigate({ to: '/goals', search: filter })}
          onDone={({ id }) => void navigate({ to: '/goals/$goalId', params: { goalId: id }, search: { edit: 'plan' } })}
        />
      )}
    </div>
  );
}

function NoGoals({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No goal is in this state" action={<Link to="/goals">Show all goals</Link>} />;
  return (
    <Empty title="No goals yet">
      A goal runs a workflow again and again until a judge finds it satisfied, within its bounds.
    </Empty>
  );
}

function Cards({ goals }: { readonly goals: readonly Goal[] }) {
  const groups = GOAL_STATES.map((state) => ({ state, found: goals.filter((goal) => goal.state === state) }));
  const shown = groups.filter(({ found }) => found.length > 0);
  const order = shown.flatMap(({ found }) => found);
  const [focus, setFocus] = useState(-1);
  const navigate = useNavigate();
  const at = order[focus];
  const move = (by: number) => (): void => setFocus(Math.min(order.length - 1, Math.max(0, focus + by)));
  useKeys('Goals', [
    { keys: 'j', label: 'Next goal', act: move(1) },
    { keys: 'k', label: 'Previous goal', act: move(-1) },
    {
      keys: 'Enter',
      label: 'Open the goal',
      act: () => at && void navigate({ to: '/goals/$goalId', params: { goalId: at.id }, search: {} }),
    },
  ]);
  return shown.map(({ state, found }) => (
    <section key={state} className={styles.group} aria-label={STATES[state][2]}>
      <h2>
        {STATES[state][2]} <span className="number quiet">{found.length}</span>
      </h2>
      <ul className={styles.cards}>
        {found.map((goal) => (
          <Card key={goal.id} goal={goal} isFocused={goal === at} />
        ))}
      </ul>
    </section>
  ));
}

function Card({ goal, isFocused }: { readonly goal: Goal; readonly isFocused: boolean }) {
  const { id, objective, state, bounds, progress, continuation, createdAt, updatedAt } = goal;
  const { maxLoopIterations: most } = bounds;
  return (
    <li className={styles.card} data-focused={isFocused || undefined}>
      <Mark mark={STATES[state]} />
      <Link to="/goals/$goalId" params={{ goalId: id }} search={{}} className={styles.objective} dir="auto">
        {objective}
      </Link>
      <p className={styles.facts}>
        <span className="number">
          {most === undefined
            ? counted(progress?.iterations ?? 0, 'run')
            : `${progress?.iterations ?? 0} of ${counted(most, 'run')}`}{' '}
          judged
        </span>
        <span>{CONTINUATIONS[continuation.mode]}</span>
        <Time at={updatedAt ?? createdAt} />
      </p>
    </li>
  );
}
