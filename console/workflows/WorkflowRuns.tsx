import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { RunSummary } from '../../src/protocol/running/runs.ts';
import { runsQuery } from '../api/runs.ts';
import { type Column, DataTable } from '../parts/DataTable.tsx';
import { Panel } from '../parts/Panel.tsx';
import { StateMark } from '../parts/StateMark.tsx';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import { Duration, Time } from '../parts/Time.tsx';

const COLUMNS: readonly Column<RunSummary>[] = [
  { title: 'State', show: ({ status }) => <StateMark state={status} /> },
  {
    title: 'Run',
    show: ({ runId }) => (
      <Link to="/runs/$runId" params={{ runId }} search={{}} className="mono">
        {runId}
      </Link>
    ),
  },
  { title: 'Version', isRight: true, isExtra: true, show: ({ workflowVersion }) => workflowVersion },
  { title: 'Outcome', show: ({ outcome, errorCode }) => outcome ?? errorCode },
  { title: 'Started', show: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Duration', isRight: true, show: ({ createdAt, endedAt }) => <Duration from={createdAt} to={endedAt} /> },
];

/** The latest runs of a workflow. */
export function WorkflowRuns({ workflowId }: { readonly workflowId: string }) {
  const { data, error, isPending } = useInfiniteQuery(runsQuery({ workflowId }));
  const rows = data?.pages[0]?.items ?? [];
  return (
    <Panel
      title="Latest runs"
      isFlush
      aside={
        <Link to="/runs" search={{ workflowId }}>
          All its runs
        </Link>
      }
    >
      {isPending ? (
        <Skeleton />
      ) : error ? (
        <Problem error={error} />
      ) : rows.length === 0 ? (
        <Empty title="No runs yet">Start one with the button above.</Empty>
      ) : (
        <DataTable label="Latest runs" columns={COLUMNS} rows={rows} keyOf={({ runId }) => runId} />
      )}
    </Panel>
  );
}
