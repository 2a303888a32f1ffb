import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useMemo, useRef } from 'react';
import type { RunEvent } from '../../src/client/index.ts';
import { useRunLog } from '../api/run-log.ts';
import { runQuery } from '../api/runs.ts';
import { useMay } from '../api/session.ts';
import { runWorkflowQuery } from '../api/workflows.ts';
import { loaded } from '../parts/loaded.ts';
import { Panel } from '../parts/Panel.tsx';
import { Problem, Skeleton } from '../parts/States.tsx';
import { TabBar } from '../parts/TabBar.tsx';
import { EventLog } from './EventLog.tsx';
import { Feedback } from './Feedback.tsx';
import { NodeDetail } from './NodeDetail.tsx';
import { Outcome } from './Outcome.tsx';
import { RunHeader } from './RunHeader.tsx';
import styles from './RunPage.module.css';
import { StateAt } from './StateAt.tsx';
import type { RunSearch } from './search.ts';
import { TimeLine } from './TimeLine.tsx';
import { viewOf } from './view.ts';
import { Waterfall } from './Waterfall.tsx';

const RunGraph = lazy(() => loaded(() => import('./RunGraph.tsx')).then(({ RunGraph }) => ({ default: RunGraph })));
const route = getRouteApi('/shell/runs/$runId');
/** A graph of so few nodes needs little room. */
const SMALL = 4;

/** One run: what came of it, then how. */
export function RunPage() {
  const { runId } = route.useParams();
  const search = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const run = useQuery(runQuery(runId));
  const log = useRunLog(runId);
  useReread(runId, log.events);
  const workflow = useQuery({
    ...runWorkflowQuery(runId),
    enabled: run.data !== undefined && may('manifest:read'),
  });
  const { at } = search;
  const shown = useMemo(
    () => (at === undefined ? log.events : log.events.filter(({ sequence }) => sequence <= at)),
    [log.events, at],
  );
  const view = useMemo(() => viewOf(shown), [shown]);
  const whole = useMemo(() => (at === undefined ? view : viewOf(log.events)), [log.events, view, at]);
  if (run.isError) return <Problem error={run.error} onRetry={() => void run.refetch()} />;
  if (!run.data) return <Skeleton lines={8} />;
  const set = (change: RunSearch): void => {
    void navigate({
      to: '/runs/$runId',
      params: { runId },
      search: (old) => ({ ...old, ...change }),
      replace: true,
      resetScroll: false,
    });
  };
  const select = (node: string | undefined): void =>
    void navigate({
      to: '/runs/$runId',
      params: { runId },
      search: ({ node: _node, ...rest }) => (node === undefined ? rest : { ...rest, node }),
      replace: true,
      resetScroll: false,
    });
  const tab = search.tab ?? 'timeline';
  // Where it failed or waits is what most visitors look for.
  const chosen = search.node ?? whole.failedNodeId ?? run.data.interrupt?.nodeId;
  return (
    <div className={styles.page}>
      <RunHeader run={run.data} view={whole} />
      {log.error !== undefined && <Problem error={log.error} />}
      <Outcome run={run.data} view={whole} onNode={select} />
      <TimeLine events={log.events} at={at} runId={runId} />
      <div className={styles.pair}>
        <Panel title="Graph" isFlush>
          <div className={styles.graph} data-small={(workflow.data?.nodes.length ?? 0) <= SMALL || undefined}>
            {workflow.data ? (
              <Suspense fallback={<Skeleton />}>
                <RunGraph definition={workflow.data} view={view} selected={chosen} onSelect={select} />
              </Suspense>
            ) : (
              <Skeleton />
            )}
          </div>
        </Panel>
        <NodeDetail nodeId={chosen} view={view} definition={workflow.data} run={run.data} events={shown} />
      </div>
      <div>
        <TabBar
          label="Views of the log"
          tabs={[
            ['timeline', 'Timeline'],
            ['events', 'Events', log.events.length],
            ['state', 'State'],
          ]}
          chosen={tab}
          onChoose={(name) => set({ tab: name })}
          controls="run-tab"
        />
        <div id="run-tab" role="tabpanel" className={styles.tab} aria-label={tab}>
          {tab === 'timeline' && <Waterfall view={view} whole={whole} selected={chosen} onSelect={select} />}
          {tab === 'events' && <EventLog events={shown} run={run.data} node={chosen} />}
          {tab === 'state' && (
            <StateAt run={run.data} events={shown} isPast={at !== undefined} definition={workflow.data} />
          )}
        </div>
      </div>
      {may('feedback:read') && <Feedback runId={runId} />}
    </div>
  );
}

/** The snapshot has what no event says, such as the open question: it is read again when the run moves. */
function useReread(runId: string, events: readonly RunEvent[]): void {
  const cache = useQueryClient();
  const seen = useRef(0);
  useEffect(() => {
    const fresh = events.slice(seen.current);
    seen.current = events.length;
    if (fresh.some(({ type }) => /^(?:run|interrupt|node\.(?:failed|dispatched))/.test(type))) {
      void cache.invalidateQueries({ queryKey: ['run', runId] });
    }
  }, [events, cache, runId]);
}
