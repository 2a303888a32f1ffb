import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import { diffQuery, runQuery } from '../api/runs.ts';
import { JsonTree } from '../parts/JsonTree.tsx';
import { Panel } from '../parts/Panel.tsx';
import { StateMark } from '../parts/StateMark.tsx';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import { Duration } from '../parts/Time.tsx';
import styles from './ComparePage.module.css';
import { UnknownRun } from './UnknownRun.tsx';

const route = getRouteApi('/shell/runs/$runId/compare/$otherId');

/** Two runs side by side, and the events in which they differ. */
export function ComparePage() {
  const { runId, otherId } = route.useParams();
  const [a, b, diff] = [useQuery(runQuery(runId)), useQuery(runQuery(otherId)), useQuery(diffQuery(runId, otherId))];
  if (a.error) return <UnknownRun runId={runId} error={a.error} onRetry={() => void a.refetch()} />;
  if (b.error) return <UnknownRun runId={otherId} error={b.error} onRetry={() => void b.refetch()} />;
  if (diff.error) return <Problem error={diff.error} />;
  if (!a.data || !b.data || !diff.data) return <Skeleton />;
  const { divergedAtSeq, eventDiffs, truncated } = diff.data;
  return (
    <div className={styles.page}>
      <h1>Compare</h1>
      <div className={styles.pair}>
        <Side run={a.data} />
        <Side run={b.data} />
      </div>
      <Panel title="Differences" aside={<span className="quiet number">{eventDiffs.length}</span>} isFlush>
        {eventDiffs.length === 0 ? (
          <Empty title="No differences">Both runs have the same events.</Empty>
        ) : (
          <>
            <p className={styles.note}>
              They go the same way until event {divergedAtSeq}.{truncated && ' Not all differences are listed.'}
            </p>
            <ol className={styles.diffs}>
              {eventDiffs.map(({ seq, op, aEvent, bEvent }) => (
                <li key={`${seq}-${op}`} className={styles.diff}>
                  <span className="number quiet">{seq}</span>
                  <div>{aEvent ? <JsonTree value={aEvent} /> : <span className="quiet">—</span>}</div>
                  <div>{bEvent ? <JsonTree value={bEvent} /> : <span className="quiet">—</span>}</div>
                </li>
              ))}
            </ol>
          </>
        )}
      </Panel>
    </div>
  );
}

function Side({ run }: { readonly run: RunSnapshot }) {
  const { runId, workflowId, workflowVersion, status, createdAt, endedAt } = run;
  return (
    <Panel title={`${workflowId}@${workflowVersion}`} aside={<StateMark state={status} />}>
      <p>
        <Link to="/runs/$runId" params={{ runId }} search={{}} className="mono">
          {runId}
        </Link>
      </p>
      {createdAt && <Duration from={createdAt} to={endedAt} />}
      <h3 className={styles.part}>Inputs</h3>
      <JsonTree value={run.inputs ?? {}} />
      <h3 className={styles.part}>Variables</h3>
      <JsonTree value={run.variables ?? {}} />
    </Panel>
  );
}
