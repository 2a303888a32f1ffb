import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { OpenTask, WorkerType } from '../../src/protocol/running/workers.ts';
import { workerTasksQuery, workerTypesQuery } from '../api/operations.ts';
import { isBlocked } from '../api/queries.ts';
import type { Column } from '../parts/DataTable.tsx';
import { DataTable } from '../parts/DataTable.tsx';
import { JsonTree } from '../parts/JsonTree.tsx';
import { Panel } from '../parts/Panel.tsx';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import { Time, useNow } from '../parts/Time.tsx';
import { ListSection } from './ListSection.tsx';
import styles from './Operations.module.css';
import type { SectionProps } from './OperationsPage.tsx';

/** Workers that wait for attempts ask at least this often. */
const SILENT_MS = 60_000;

/** Who makes the attempts at nodes whose code is outside the host, and which attempts are open. */
export function Workers(props: SectionProps) {
  const query = useQuery(workerTypesQuery);
  const columns: readonly Column<WorkerType>[] = [
    {
      title: 'Node type',
      show: ({ typeId }) => (
        <button type="button" className={styles.open} onClick={() => props.onOpen(typeId)}>
          {typeId}
        </button>
      ),
    },
    { title: 'Pool', show: ({ pool }) => pool },
    { title: 'About', isExtra: true, show: ({ description }) => <span dir="auto">{description}</span> },
    { title: 'Workers', show: (type) => <Served {...type} /> },
    { title: 'Waiting', isRight: true, show: ({ waiting = 0 }) => waiting },
    { title: 'In hand', isRight: true, show: ({ leased = 0 }) => leased },
  ];
  return (
    <>
      <ListSection
        {...props}
        title="Worker types"
        query={query}
        columns={columns}
        keyOf={({ typeId }) => typeId}
        emptyText="A worker is a program of yours that executes nodes. It declares its node types when it starts: capstan worker."
        detail={(type) => <JsonTree value={type} />}
      />
      <OpenTasks />
    </>
  );
}

/** Whether anybody asks for attempts of the type. */
function Served({ seenAt, leased = 0, waiting = 0 }: WorkerType) {
  const now = useNow(5_000);
  if (seenAt === undefined) return <span className={waiting > 0 ? styles.bad : 'quiet'}>✕ no worker yet</span>;
  if (leased > 0 || now - Date.parse(seenAt) < SILENT_MS) return <span className={styles.good}>● at work</span>;
  return (
    <span className={waiting > 0 ? styles.bad : 'quiet'}>
      ✕ last seen <Time at={seenAt} />
    </span>
  );
}

const TASKS: readonly Column<OpenTask>[] = [
  { title: 'State', show: ({ state }) => (state === 'leased' ? '● in hand' : '◐ waiting') },
  { title: 'Node type', show: ({ typeId }) => typeId },
  {
    title: 'Run',
    show: ({ runId, nodeId }) => (
      <Link to="/runs/$runId" params={{ runId }} search={{ node: nodeId }}>
        {nodeId}
      </Link>
    ),
  },
  { title: 'Pool', isExtra: true, show: ({ pool }) => pool },
  { title: 'Attempt', isRight: true, isExtra: true, show: ({ attempt }) => attempt + 1 },
  { title: 'Says', isExtra: true, show: ({ progress = '' }) => <span dir="auto">{progress}</span> },
  { title: 'Since', show: ({ since }) => <Time at={since} /> },
  { title: 'Worker', show: ({ worker = '' }) => <span dir="auto">{worker}</span> },
];

function OpenTasks() {
  const query = useQuery(workerTasksQuery);
  return (
    <Panel title="Open attempts" isFlush aside={<span className="quiet number">{query.data?.length}</span>}>
      {isBlocked(query) ? (
        <Problem error={query.error} onRetry={() => void query.refetch()} />
      ) : !query.data ? (
        <Skeleton lines={3} />
      ) : query.data.length === 0 ? (
        <Empty title="No open attempts">Nothing waits for a worker.</Empty>
      ) : (
        <DataTable label="Open attempts" columns={TASKS} rows={query.data} keyOf={({ taskId }) => taskId} />
      )}
    </Panel>
  );
}
