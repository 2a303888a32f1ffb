import { type InfiniteData, useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { Play } from 'lucide-react';
import { useEffect, useMemo, useRef, useState } from 'react';
import type { Page } from '../../src/client/index.ts';
import { isTerminalStatus } from '../../src/protocol/running/run-status.ts';
import type { RunSummary } from '../../src/protocol/running/runs.ts';
import { useFeed } from '../api/feed.ts';
import { isBlocked, readAgain } from '../api/queries.ts';
import { readLatestRuns, runsQuery } from '../api/runs.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import { ChosenRuns } from './ChosenRuns.tsx';
import { NoRuns } from './NoRuns.tsx';
import { RunFilters } from './RunFilters.tsx';
import styles from './RunsPage.module.css';
import { RunTable } from './RunTable.tsx';
import { StartRun } from './StartRun.tsx';
import type { RunsSearch } from './search.ts';

const route = getRouteApi('/shell/runs');
/** Runs that end so closely after each other are read together. */
const TOGETHER_MS = 300;

/** The runs of the tenant, newest first, live. */
export function RunsPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const query = useInfiniteQuery(runsQuery(search));
  const { fresh, refresh } = useFresh(search, query.isPending);
  const all = useMemo(() => query.data?.pages.flatMap(({ items }) => items) ?? [], [query.data]);
  const rows = useMemo(() => all.filter((run) => matches(run, search.text)), [all, search.text]);
  const [chosen, choose] = useState<ReadonlySet<string>>(new Set());
  const close = () => void navigate({ to: '/runs', search: ({ start: _start, ...rest }) => rest });
  return (
    <div className={styles.page}>
      <header className={styles.head}>
        <h1>Runs</h1>
        {may('runs:create') && (
          <Button
            kind="main"
            icon={<Play />}
            onClick={() => void navigate({ to: '/runs', search: (old) => ({ ...old, start: '-' }) })}
          >
            Start run
          </Button>
        )}
      </header>
      <RunFilters search={search} />
      {chosen.size > 0 && <ChosenRuns chosen={chosen} onDone={() => choose(new Set())} />}
      {fresh > 0 && (
        <Button kind="fresh" onClick={refresh}>
          {fresh} new {fresh === 1 ? 'run' : 'runs'}
        </Button>
      )}
      {isBlocked(query) ? (
        <Problem error={query.error} onRetry={() => void query.refetch()} />
      ) : query.isPending ? (
        <Skeleton lines={8} />
      ) : rows.length === 0 ? (
        isFiltered(search) ? (
          <NoMatch search={search} />
        ) : (
          <NoRuns />
        )
      ) : (
        <RunTable
          rows={rows}
          chosen={chosen}
          choose={choose}
          onEnd={() => query.hasNextPage && !query.isFetchingNextPage && void query.fetchNextPage()}
        />
      )}
      {search.start !== undefined && may('runs:create') && <StartRun workflowId={search.start} onClose={close} />}
    </div>
  );
}

type ListedRuns = InfiniteData<Page<RunSummary>, string>;

/** New runs are counted, not pushed under the pointer; a state that changes is shown where it is. */
function useFresh(search: RunsSearch, isPending: boolean): { readonly fresh: number; readonly refresh: () => void } {
  const [fresh, setFresh] = useState(0);
  const cache = useQueryClient();
  const change = (how: (run: RunSummary) => RunSummary): void =>
    void cache.setQueriesData<ListedRuns>(
      { queryKey: ['runs'] },
      (old) => old && { ...old, pages: old.pages.map((page) => ({ ...page, items: page.items.map(how) })) },
    );
  const showEnded = useEnded(search, change);
  useFeed((event, { runId, status }) => {
    if (event === 'run.created') setFresh((count) => count + 1);
    if (event !== 'run.status' || status === undefined) return;
    if (isPending) return void readAgain({ queryKey: ['runs'] });
    change((run) => moved(run, runId, status));
    if (isTerminalStatus(status)) showEnded();
  });
  return {
    fresh,
    refresh: () => {
      setFresh(0);
      void cache.invalidateQueries({ queryKey: ['runs'] });
    },
  };
}

/** What came of runs that have just ended is read with the latest runs, once for all that end together. */
function useEnded(search: RunsSearch, change: (how: (run: RunSummary) => RunSummary) => void): () => void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const read = async (): Promise<void> => {
    const known = new Map((await readLatestRuns(search)).map((run) => [run.runId, run]));
    change((run) => known.get(run.runId) ?? run);
  };
  return () => {
    clearTimeout(timer.current);
    // A page that is not up to date yet shows the state alone.
    timer.current = setTimeout(() => void read().catch(() => {}), TOGETHER_MS);
  };
}

function moved(run: RunSummary, runId: string | undefined, status: string): RunSummary {
  if (run.runId !== runId) return run;
  const now = new Date().toISOString();
  const known = status as RunSummary['status'];
  return { ...run, status: known, updatedAt: now, ...(isTerminalStatus(status) ? { endedAt: now } : {}) };
}

function matches(run: RunSummary, words: string | undefined): boolean {
  const { runId, workflowId, errorCode = '', outcome = '' } = run;
  const text = `${runId} ${workflowId} ${errorCode} ${outcome}`.toLowerCase();
  return (words ?? '')
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function isFiltered({ start: _start, ...filters }: RunsSearch): boolean {
  return Object.keys(filters).length > 0;
}

function NoMatch({ search }: { readonly search: RunsSearch }) {
  const all = (
    <Link to="/runs" search={{ ...search, origin: 'any' }}>
      Search previews, too
    </Link>
  );
  return (
    <Empty
      title="No run matches"
      action={
        <>
          <Link to="/runs">Clear the filters</Link>
          {search.origin === undefined && all}
        </>
      }
    >
      {search.origin === undefined
        ? 'Previews of proposals are not listed.'
        : 'A run is listed with its first event, so a run that has just started may take a moment to appear.'}
    </Empty>
  );
}
