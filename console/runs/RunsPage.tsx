import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { Play } from 'lucide-react';
import { useMemo, useRef, useState } from 'react';
import { isTerminalStatus } from '../../src/protocol/running/run-status.ts';
import type { RunSummary } from '../../src/protocol/running/runs.ts';
import { client } from '../api/client.ts';
import { useFeed } from '../api/feed.ts';
import { runsQuery } from '../api/runs.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { useKeys } from '../parts/keys.ts';
import { compact, count, dollars } from '../parts/numbers.ts';
import { StateMark } from '../parts/StateMark.tsx';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import { Time, useNow } from '../parts/Time.tsx';
import { span } from '../parts/time.ts';
import { complain, say, sayWithUndo } from '../parts/toasts.tsx';
import { RunFilters } from './RunFilters.tsx';
import styles from './RunsPage.module.css';
import { StartRun } from './StartRun.tsx';

const route = getRouteApi('/shell/runs');
const ROW = 36;

/** The runs of the tenant, newest first, live. */
export function RunsPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const query = useInfiniteQuery(runsQuery(search));
  const { fresh, refresh } = useFresh();
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
      {chosen.size > 0 && <Bulk chosen={chosen} onDone={() => choose(new Set())} />}
      {fresh > 0 && (
        <Button kind="fresh" onClick={refresh}>
          {fresh} new {fresh === 1 ? 'run' : 'runs'}
        </Button>
      )}
      {query.isError ? (
        <Problem error={query.error} onRetry={() => void query.refetch()} />
      ) : query.isPending ? (
        <Skeleton lines={8} />
      ) : rows.length === 0 ? (
        <NoRuns isFiltered={Object.keys(search).some((name) => name !== 'start')} />
      ) : (
        <RunTable
          rows={rows}
          chosen={chosen}
          choose={may('runs:cancel') ? choose : undefined}
          onEnd={() => query.hasNextPage && !query.isFetchingNextPage && void query.fetchNextPage()}
        />
      )}
      {search.start !== undefined && may('runs:create') && <StartRun workflowId={search.start} onClose={close} />}
    </div>
  );
}

/** New runs are counted, not pushed under the pointer; a state that changes is shown where it is. */
function useFresh(): { readonly fresh: number; readonly refresh: () => void } {
  const [fresh, setFresh] = useState(0);
  const cache = useQueryClient();
  useFeed((event, { runId, status }) => {
    if (event === 'run.created') setFresh((count) => count + 1);
    if (event !== 'run.status' || status === undefined) return;
    cache.setQueriesData<{ pages: { items: RunSummary[] }[]; pageParams: unknown[] }>(
      { queryKey: ['runs'] },
      (old) =>
        old && {
          ...old,
          pages: old.pages.map((page) => ({ ...page, items: page.items.map((run) => moved(run, runId, status)) })),
        },
    );
  });
  return {
    fresh,
    refresh: () => {
      setFresh(0);
      void cache.invalidateQueries({ queryKey: ['runs'] });
    },
  };
}

function moved(run: RunSummary, runId: string | undefined, status: string): RunSummary {
  if (run.runId !== runId) return run;
  const now = new Date().toISOString();
  const known = status as RunSummary['status'];
  return { ...run, status: known, updatedAt: now, ...(isTerminalStatus(status) ? { endedAt: now } : {}) };
}

function matches({ runId, workflowId, errorCode = '' }: RunSummary, words: string | undefined): boolean {
  const text = `${runId} ${workflowId} ${errorCode}`.toLowerCase();
  return (words ?? '')
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function NoRuns({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <Empty title="No run matches" action={<Link to="/runs">Show all runs</Link>}>
        Runs end up here with the first event, so a filter for what just started may need a moment.
      </Empty>
    );
  }
  return (
    <Empty title="No runs yet">
      A run is one execution of a workflow. Start one here, or with{' '}
      <code>capstan runs start support-triage --inputs '{'{"subject":"Help"}'}'</code>.
    </Empty>
  );
}

/** What can be done with the chosen runs. */
function Bulk({ chosen, onDone }: { readonly chosen: ReadonlySet<string>; readonly onDone: () => void }) {
  const cache = useQueryClient();
  const cancel = useMutation({
    mutationFn: (runIds: string[]) => client.bulkCancelRuns({ runIds }),
    onSuccess: ({ results }) => {
      const done = results.filter(({ ok }) => ok).length;
      say(`${done} of ${results.length} runs cancelled.`);
      void cache.invalidateQueries({ queryKey: ['runs'] });
    },
    onError: complain,
  });
  const start = (): void => {
    const runIds = [...chosen];
    onDone();
    sayWithUndo(`Cancelling ${runIds.length} ${runIds.length === 1 ? 'run' : 'runs'} …`, () => cancel.mutate(runIds));
  };
  return (
    <div className={styles.bulk}>
      <span className="number">{chosen.size} chosen</span>
      <Button kind="danger" onClick={start}>
        Cancel
      </Button>
      <Button kind="quiet" onClick={onDone}>
        Clear
      </Button>
    </div>
  );
}

interface TableProps {
  readonly rows: readonly RunSummary[];
  readonly chosen: ReadonlySet<string>;
  readonly choose: ((chosen: ReadonlySet<string>) => void) | undefined;
  readonly onEnd: () => void;
}

function RunTable({ rows, chosen, choose, onEnd }: TableProps) {
  const box = useRef<HTMLDivElement>(null);
  const navigate = useNavigate();
  const [focus, setFocus] = useState(-1);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  if ((items.at(-1)?.index ?? 0) >= rows.length - 10) queueMicrotask(onEnd);
  const move = (by: number) => (): void => {
    const next = Math.min(rows.length - 1, Math.max(0, focus + by));
    setFocus(next);
    virtual.scrollToIndex(next);
  };
  const toggle = (runId: string): void => {
    const next = new Set(chosen);
    if (!next.delete(runId)) next.add(runId);
    choose?.(next);
  };
  const at = rows[focus];
  useKeys('Runs', [
    { keys: 'j', label: 'Next run', act: move(1) },
    { keys: 'k', label: 'Previous run', act: move(-1) },
    {
      keys: 'Enter',
      label: 'Open the run',
      act: () => at && void navigate({ to: '/runs/$runId', params: { runId: at.runId }, search: {} }),
    },
    ...(choose ? [{ keys: 'x', label: 'Choose the run', act: () => at && toggle(at.runId) }] : []),
  ]);
  return (
    <div className={styles.table} role="table" aria-label="Runs" aria-rowcount={rows.length}>
      <div className={styles.header} role="row" data-choosable={choose ? '' : undefined}>
        {choose && <span role="columnheader" aria-label="Chosen" />}
        <span role="columnheader">State</span>
        <span role="columnheader">Workflow</span>
        <span role="columnheader">Run</span>
        <span role="columnheader">Error</span>
        <span role="columnheader">Started</span>
        <span role="columnheader" className={styles.right}>
          Duration
        </span>
        <span role="columnheader" className={styles.right}>
          Cost
        </span>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable with the keyboard */}
      <div className={styles.scroll} ref={box} tabIndex={0} role="rowgroup" aria-label="Rows">
        <div className={styles.inner} style={{ height: virtual.getTotalSize() }}>
          {items.map(({ index, start }) => {
            const run = rows[index]!;
            return (
              <Row
                key={run.runId}
                run={run}
                top={start}
                isFocused={index === focus}
                isChosen={chosen.has(run.runId)}
                onChoose={choose && (() => toggle(run.runId))}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

interface RowProps {
  readonly run: RunSummary;
  readonly top: number;
  readonly isFocused: boolean;
  readonly isChosen: boolean;
  readonly onChoose: (() => void) | undefined;
}

function Row({ run, top, isFocused, isChosen, onChoose }: RowProps) {
  const { runId, workflowId, workflowVersion, status, createdAt, endedAt, errorCode, cost } = run;
  return (
    <div
      className={styles.row}
      role="row"
      style={{ transform: `translateY(${top}px)` }}
      data-focused={isFocused || undefined}
      data-chosen={isChosen || undefined}
      data-choosable={onChoose ? '' : undefined}
    >
      {onChoose && (
        <span role="cell" className={styles.check}>
          <input type="checkbox" checked={isChosen} onChange={onChoose} aria-label={`Choose ${runId}`} />
        </span>
      )}
      <span role="cell">
        <StateMark state={status} />
      </span>
      <span role="cell" className={styles.workflow}>
        <Link to="/runs/$runId" params={{ runId }} search={{}} className={styles.link} dir="auto">
          {workflowId}
        </Link>
        <span className="quiet number">@{workflowVersion}</span>
      </span>
      <span role="cell" className={styles.id} title={runId}>
        {runId}
      </span>
      <span role="cell" className={styles.outcome}>
        {errorCode}
      </span>
      <span role="cell" className="quiet">
        <Time at={createdAt} />
      </span>
      <span role="cell" className={styles.right}>
        <Duration from={createdAt} to={endedAt} />
      </span>
      <span role="cell" className={styles.right}>
        <Cost cost={cost} />
      </span>
    </div>
  );
}

/** What the model calls of a run cost; their tokens if nobody knows the price. */
function Cost({ cost }: { readonly cost: RunSummary['cost'] }) {
  if (cost === undefined) return null;
  const { input = 0, output = 0 } = cost.tokens ?? {};
  const tokens = `${count(input)} tokens in, ${count(output)} out`;
  return (
    <span className="number quiet" title={cost.usd === undefined ? `${tokens}; the price is not known` : tokens}>
      {cost.usd === undefined ? `${compact(input + output)} tokens` : dollars(cost.usd)}
    </span>
  );
}

/** How long it took, or has taken so far. */
export function Duration({ from, to }: { readonly from: string; readonly to?: string | undefined }) {
  const now = useNow(to === undefined ? 1_000 : 0);
  return <span className="number quiet">{span((to === undefined ? now : Date.parse(to)) - Date.parse(from))}</span>;
}
