import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import { useMemo, useState } from 'react';
import type { RunSummary } from '../../src/protocol/running/runs.ts';
import type { WorkflowSummary } from '../../src/protocol/running/workflows.ts';
import { isBlocked } from '../api/queries.ts';
import { useMay } from '../api/session.ts';
import { latestRunsQuery, workflowsQuery } from '../api/workflows.ts';
import { Button } from '../parts/Button.tsx';
import { type Column, DataTable } from '../parts/DataTable.tsx';
import { useKeys } from '../parts/keys.ts';
import { markOf } from '../parts/StateMark.tsx';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import { Time } from '../parts/Time.tsx';
import styles from './WorkflowsPage.module.css';

const SHOWN_RUNS = 12;

/** The workflows that can be run, each with its latest runs. */
export function WorkflowsPage() {
  const may = useMay();
  const navigate = useNavigate();
  const [words, setWords] = useState('');
  const query = useQuery(workflowsQuery);
  const latest = useQuery({ ...latestRunsQuery, enabled: may('runs:read') });
  const runsOf = useMemo(() => Map.groupBy(latest.data ?? [], ({ workflowId }) => workflowId), [latest.data]);
  const create = (): void => void navigate({ to: '/new-workflow' });
  useKeys('Workflows', may('workflows:write') ? [{ keys: 'n', label: 'New workflow', act: create }] : []);
  const rows = (query.data ?? []).filter(({ id, name }) => `${id} ${name}`.toLowerCase().includes(words.toLowerCase()));
  return (
    <div className={styles.page}>
      <header className={styles.head}>
        <h1>Workflows</h1>
        {may('workflows:write') && (
          <Button kind="main" icon={<Plus />} onClick={create}>
            New workflow
          </Button>
        )}
      </header>
      <input
        type="search"
        className={styles.filter}
        aria-label="Filter by name"
        placeholder="Filter by name or id"
        value={words}
        onChange={({ target }) => setWords(target.value)}
      />
      <div className={styles.table}>
        {isBlocked(query) ? (
          <Problem error={query.error} onRetry={() => void query.refetch()} />
        ) : query.isPending ? (
          <Skeleton lines={8} />
        ) : rows.length === 0 ? (
          <Empty title={words === '' ? 'No workflows yet' : 'No workflow has this name'}>
            A workflow is a graph of nodes that a run goes through. Build one here, or register a file with{' '}
            <code>capstan workflows register file.json</code>.
          </Empty>
        ) : (
          <DataTable label="Workflows" columns={columnsFor(runsOf)} rows={rows} keyOf={({ id }) => id} />
        )}
      </div>
    </div>
  );
}

const columnsFor = (runsOf: ReadonlyMap<string, readonly RunSummary[]>): readonly Column<WorkflowSummary>[] => [
  {
    title: 'Name',
    show: ({ id, name, shared }) => (
      <>
        <Link to="/workflows/$workflowId" params={{ workflowId: id }} search={{}} className={styles.name} dir="auto">
          {name}
        </Link>
        {shared && <span className={styles.badge}>shared</span>}
      </>
    ),
  },
  { title: 'Id', isExtra: true, show: ({ id }) => <span className={styles.id}>{id}</span> },
  { title: 'Latest runs', show: ({ id }) => <LatestRuns runs={(runsOf.get(id) ?? []).slice(0, SHOWN_RUNS)} /> },
  { title: 'Nodes', isRight: true, isExtra: true, show: ({ nodes }) => nodes },
  { title: 'Version', isRight: true, show: ({ registeredVersion }) => registeredVersion },
  { title: 'Changed', isExtra: true, show: ({ updatedAt }) => <Time at={updatedAt} /> },
];

/** One mark a run, the latest at the right; each leads to its run. */
function LatestRuns({ runs }: { readonly runs: readonly RunSummary[] }) {
  if (runs.length === 0) return <span className="quiet">none lately</span>;
  return (
    <span className={styles.marks}>
      {runs.toReversed().map(({ runId, status }) => {
        const [hue, shape, word] = markOf(status);
        return (
          <Link
            key={runId}
            to="/runs/$runId"
            params={{ runId }}
            search={{}}
            className={styles.mark}
            data-hue={hue}
            title={`${word}: ${runId}`}
            aria-label={`${word}: ${runId}`}
          >
            {shape}
          </Link>
        );
      })}
    </span>
  );
}
