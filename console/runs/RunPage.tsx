import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useEffect, useMemo, useRef } from 'react';
import type { RunEvent } from '../../src/client/index.ts';
import { isTerminalStatus } from '../../src/protocol/running/run-status.ts';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import { isBlocked, readAgain } from '../api/queries.ts';
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
import { UnknownRun } from './UnknownRun.tsx';
import { type RunView, viewOf, withWorkerWaits } from './view.ts';
import { Waterfall } from './Waterfall.tsx';
import { useWorkerWaits } from './worker-waits.ts';

const RunGraph = lazy(() => loaded(() => import('./RunGraph.tsx')).then(({ RunGraph }) => ({ default: RunGraph })));
const route = getRouteApi('/shell/runs/$runId');
/** A graph of so few nodes needs little room. */
const SMALL = 4;

/** One run: what came of it, then how. */
export function RunPage() {
  const { runId } = route.useParams();
  const { at, node, tab } = route.useSearch();
  const may = useMay();
  const select = useSelect(runId);
  const run = useQuery(runQuery(runId));
  const log = useRunLog(runId);
  useReread(runId, log.events);
  const { data: definition } = useQuery({
    ...runWorkflowQuery(runId),
    enabled: run.data !== undefined && may('manifest:read'),
  });
  const { shown, whole, view, waits } = useViews(runId, log.events, at, definition);
  if (isBlocked(run)) return <UnknownRun runId={runId} error={run.error} onRetry={() => void run.refetch()} />;
  if (!run.data) return <Skeleton lines={8} />;
  const isReading = isTerminalStatus(run.data.status) && !log.isComplete && log.error === undefined;
  // Where it failed or waits is what most visitors look for.
  const chosen = node ?? whole.failedNodeId ?? run.data.interrupt?.nodeId ?? waits[0]?.nodeId;
  return (
    <div className={styles.page}>
      <RunHeader run={run.data} view={whole} isWithoutWorker={waits.length > 0} />
      {log.error !== undefined && <Problem error={log.error} />}
      <Outcome run={run.data} view={whole} events={log.events} definition={definition} waits={waits} onNode={select} />
      <TimeLine events={log.events} at={at} runId={runId} />
      <div className={styles.pair}>
        <GraphPanel definition={definition} view={view} selected={chosen} onSelect={select} />
        <NodeDetail
          nodeId={chosen}
          view={view}
          definition={definition}
          run={run.data}
          events={shown}
          isReading={isReading}
        />
      </div>
      <LogTabs
        runId={runId}
        tab={tab ?? 'timeline'}
        count={log.events.length}
        views={{
          timeline: <Waterfall view={view} whole={whole} selected={chosen} onSelect={select} />,
          events: <EventLog events={shown} run={run.data} node={chosen} />,
          state: <StateAt run={run.data} events={shown} isPast={at !== undefined} definition={definition} />,
        }}
      />
      {may('feedback:read') && <Feedback runId={runId} outputs={whole.outputs} isReading={isReading} />}
    </div>
  );
}

/** Shows a node, or none, beside the graph. */
function useSelect(runId: string): (node: string | undefined) => void {
  const navigate = useNavigate();
  return (node) =>
    void navigate({
      to: '/runs/$runId',
      params: { runId },
      search: ({ node: _node, ...rest }) => (node === undefined ? rest : { ...rest, node }),
      replace: true,
      resetScroll: false,
    });
}

/** What the log says: as a whole, and up to the event that the time line is at. */
function useViews(
  runId: string,
  events: readonly RunEvent[],
  at: number | undefined,
  definition: WorkflowDefinition | undefined,
) {
  const shown = useMemo(
    () => (at === undefined ? events : events.filter(({ sequence }) => sequence <= at)),
    [events, at],
  );
  const logged = useMemo(() => viewOf(events), [events]);
  const waits = useWorkerWaits(runId, logged, definition);
  const whole = useMemo(() => withWorkerWaits(logged, waits), [logged, waits]);
  const view = useMemo(() => (at === undefined ? whole : viewOf(shown)), [at, whole, shown]);
  return { shown, whole, view, waits };
}

interface GraphProps {
  readonly definition: WorkflowDefinition | undefined;
  readonly view: RunView;
  readonly selected: string | undefined;
  readonly onSelect: (node: string | undefined) => void;
}

function GraphPanel({ definition, ...rest }: GraphProps) {
  return (
    <Panel title="Graph" isFlush>
      <div className={styles.graph} data-small={(definition?.nodes.length ?? 0) <= SMALL || undefined}>
        {definition ? (
          <Suspense fallback={<Skeleton />}>
            <RunGraph definition={definition} {...rest} />
          </Suspense>
        ) : (
          <Skeleton />
        )}
      </div>
    </Panel>
  );
}

type Tab = NonNullable<RunSearch['tab']>;

interface TabsProps {
  readonly runId: string;
  readonly tab: Tab;
  /** How many events the log has. */
  readonly count: number;
  readonly views: Readonly<Record<Tab, ReactNode>>;
}

/** The log as a picture, as a list and as a state; only the chosen one is rendered. */
function LogTabs({ runId, tab, count, views }: TabsProps) {
  const navigate = useNavigate();
  const choose = (name: Tab): void =>
    void navigate({
      to: '/runs/$runId',
      params: { runId },
      search: (old) => ({ ...old, tab: name }),
      replace: true,
      resetScroll: false,
    });
  return (
    <div>
      <TabBar
        label="Views of the log"
        tabs={[
          ['timeline', 'Timeline'],
          ['events', 'Events', count],
          ['state', 'State'],
        ]}
        chosen={tab}
        onChoose={choose}
        controls="run-tab"
      />
      <div id="run-tab" role="tabpanel" className={styles.tab} aria-label={tab}>
        {views[tab]}
      </div>
    </div>
  );
}

/** The snapshot has what no event says, such as the open question: it is read again when the run moves. */
function useReread(runId: string, events: readonly RunEvent[]): void {
  const seen = useRef(0);
  useEffect(() => {
    const fresh = events.slice(seen.current);
    seen.current = events.length;
    if (fresh.some(({ type }) => /^(?:run|interrupt|node\.(?:failed|dispatched))/.test(type))) {
      void readAgain({ queryKey: ['run', runId] });
    }
  }, [events, runId]);
}
