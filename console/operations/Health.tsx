import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { HostHealth } from '../../src/protocol/operations/health.ts';
import { healthQuery } from '../api/operations.ts';
import { type Column, DataTable } from '../parts/DataTable.tsx';
import { bytes, count, counted } from '../parts/numbers.ts';
import { Panel } from '../parts/Panel.tsx';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import { span } from '../parts/time.ts';
import { Facts } from './Facts.tsx';
import styles from './Operations.module.css';

/** A queue that is behind by so much keeps people waiting. */
const LATE_MS = 5_000;
const DAY_MS = 86_400_000;

type Queue = NonNullable<HostHealth['queue']>;

const NOT_PUBLIC = 'This covers all tenants, and the metrics of this host are not public.';

/** How the hosts, the queue and the store are; what may be used; what is slow. */
export function Health() {
  const { data, error, isPending, refetch } = useQuery(healthQuery);
  if (isPending) return <Skeleton />;
  if (!data) return <Problem error={error} onRetry={() => void refetch()} />;
  return (
    <>
      <Panel title="Health">
        <Facts facts={factsOf(data)} />
      </Panel>
      <div className={styles.pair}>
        <Panel title="Hosts" isFlush>
          <DataTable label="Hosts" columns={HOSTS} rows={data.hosts} keyOf={({ hostId }) => hostId} />
        </Panel>
        <Panel title="Queue" isFlush>
          {data.queue === undefined ? (
            <Empty title="Not shown">{NOT_PUBLIC}</Empty>
          ) : data.queue.length === 0 ? (
            <Empty title="Nothing waits">All due work items are being handled.</Empty>
          ) : (
            <DataTable label="Queue" columns={QUEUE} rows={data.queue} keyOf={({ kind }) => kind} />
          )}
        </Panel>
      </div>
      <Panel
        title="Slow nodes"
        isFlush
        aside={<span className="quiet">in the latest 100 runs, without waiting time</span>}
      >
        {data.slowNodes.length === 0 ? (
          <Empty title="No attempts yet">Nodes that took long are listed here.</Empty>
        ) : (
          <DataTable
            label="Slow nodes"
            columns={SLOW}
            rows={data.slowNodes}
            keyOf={({ workflowId, nodeId }) => `${workflowId} ${nodeId}`}
          />
        )}
      </Panel>
      <Panel title="Limits">
        <Facts facts={limitsOf(data.limits)} />
      </Panel>
    </>
  );
}

function factsOf({ queue, interrupts, store, tenant, quarantinedRuns }: HostHealth) {
  const { storedBytes, storageLimitBytes, retentionMs } = tenant;
  return [
    ...(queue ? [['Due work', dueWork(queue)] as const] : []),
    ['Quarantined runs', quarantinedRuns === 0 ? '✓ none' : `✕ ${count(quarantinedRuns)}`],
    ...(interrupts ? [['Open questions', openQuestions(interrupts)] as const] : []),
    ['Store', `${STORES[store.kind]}${store.bytes === undefined ? '' : `, ${bytes(store.bytes)}`}`],
    ['Your runs take', `${bytes(storedBytes)} of ${bytes(storageLimitBytes)}`],
    ['Ended runs are kept', counted(Math.round(retentionMs / DAY_MS), 'day')],
  ] as const;
}

const STORES = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const;

function dueWork(queue: Queue): string {
  const due = queue.reduce((sum, each) => sum + each.due, 0);
  const lag = Math.max(0, ...queue.map(({ lagMs }) => lagMs));
  return due === 0 ? '✓ none waits' : `${lag > LATE_MS ? '✕' : '◐'} ${count(due)}, for ${span(lag)}`;
}

function openQuestions({ open, oldestMs }: NonNullable<HostHealth['interrupts']>): string {
  return open === 0 ? 'none' : `${count(open)}, for ${span(oldestMs)}`;
}

const LIMITS: Readonly<Record<keyof HostHealth['limits'], readonly [title: string, show: (value: number) => string]>> =
  {
    maxNodeExecutions: ['Node executions of a run', count],
    maxRunDurationMs: ['Duration of a run', span],
    maxOutputCharacters: ['Outputs of a node', bytes],
    maxVariableCharacters: ['A variable', bytes],
    maxStateCharacters: ['State of a run', bytes],
    maxLogCharacters: ['Log of a run', bytes],
    maxRequestBodyBytes: ['Request body', bytes],
    requestsPerSecond: ['Requests of a key', (value) => `${count(value)} / s`],
    inFlightPerTenant: ['Requests at once', count],
    streamsPerTenant: ['Streams at once', count],
    workPerTenant: ['Work items at once, each host', count],
  };

function limitsOf(limits: HostHealth['limits']) {
  return Object.entries(LIMITS).map(([name, [title, show]]) => {
    const value = limits[name as keyof HostHealth['limits']];
    return [title, show(value)] as const;
  });
}

const HOSTS: readonly Column<HostHealth['hosts'][number]>[] = [
  { title: 'Host', show: ({ hostId }) => <span className={styles.id}>{hostId}</span> },
  { title: 'Version', show: ({ version = 'not said' }) => version },
  {
    title: 'Work in hand',
    isRight: true,
    show: ({ workItems }) => (workItems === undefined ? 'not shown' : count(workItems)),
  },
  { title: 'Answers', show: ({ isAnswering }) => (isAnswering ? '● this one' : '') },
];

const QUEUE: readonly Column<Queue[number]>[] = [
  { title: 'Kind of work', show: ({ kind }) => kind },
  { title: 'Due', isRight: true, show: ({ due }) => count(due) },
  { title: 'Oldest for', isRight: true, show: ({ lagMs }) => span(lagMs) },
];

const SLOW: readonly Column<HostHealth['slowNodes'][number]>[] = [
  {
    title: 'Node',
    show: ({ workflowId, nodeId }) => (
      <Link to="/workflows/$workflowId" params={{ workflowId }} search={{ node: nodeId }}>
        {workflowId} · {nodeId}
      </Link>
    ),
  },
  { title: 'Attempts', isRight: true, show: ({ attempts }) => count(attempts) },
  { title: 'Median', isRight: true, show: ({ medianMs }) => span(medianMs) },
  {
    title: 'Slowest',
    isRight: true,
    show: ({ maxMs, slowestRunId, nodeId }) => (
      <Link to="/runs/$runId" params={{ runId: slowestRunId }} search={{ node: nodeId }}>
        {span(maxMs)}
      </Link>
    ),
  },
];
