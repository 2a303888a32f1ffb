import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { RunSnapshot, RunSummary } from '../../src/protocol/running/runs.ts';
import { runsQuery } from '../api/runs.ts';
import { Dialog } from '../parts/Dialog.tsx';
import { StateMark } from '../parts/StateMark.tsx';
import { Problem, Skeleton } from '../parts/States.tsx';
import { Time } from '../parts/Time.tsx';
import styles from './CompareWith.module.css';

interface CompareProps {
  readonly run: RunSnapshot;
  readonly onClose: () => void;
}

/** Chooses the other run of a comparison: the source and the forks of this one, then others of its workflow. */
export function CompareWith({ run, onClose }: CompareProps) {
  const { runId, workflowId } = run;
  const { data, error, isPending } = useInfiniteQuery(runsQuery({ workflowId, origin: 'any' }));
  const others = (data?.pages[0]?.items ?? []).filter((other) => other.runId !== runId);
  const close = relatedTo(run);
  const isClose = (other: RunSummary): boolean => close.some(([id]) => id === other.runId);
  return (
    <Dialog title="Compare with another run" isOpen isSide onClose={onClose}>
      {close.length > 0 && (
        <section className={styles.group} aria-label="Its source and its forks">
          <h3>Its source and its forks</h3>
          <ul>
            {close.map(([otherId, what]) => (
              <Choice
                key={otherId}
                runId={runId}
                otherId={otherId}
                what={what}
                run={others.find(({ runId: id }) => id === otherId)}
              />
            ))}
          </ul>
        </section>
      )}
      <section className={styles.group} aria-label={`Other runs of ${workflowId}`}>
        <h3>Other runs of {workflowId}</h3>
        {isPending && <Skeleton />}
        {error && <Problem error={error} />}
        {data && others.every(isClose) && <p className="quiet">There are no others.</p>}
        <ul>
          {others
            .filter((other) => !isClose(other))
            .map((other) => (
              <Choice key={other.runId} runId={runId} otherId={other.runId} run={other} />
            ))}
        </ul>
      </section>
      <p className="quiet">To compare runs of different workflows, choose both in the list of runs.</p>
    </Dialog>
  );
}

function relatedTo({ forkedFrom, forks = [] }: RunSnapshot): readonly (readonly [runId: string, what: string])[] {
  return [
    ...(forkedFrom ? [[forkedFrom.runId, 'source'] as const] : []),
    ...forks.map(({ runId }) => [runId, 'fork'] as const),
  ];
}

interface ChoiceProps {
  readonly runId: string;
  readonly otherId: string;
  readonly what?: string;
  readonly run: RunSummary | undefined;
}

function Choice({ runId, otherId, what, run }: ChoiceProps) {
  return (
    <li>
      <Link to="/runs/$runId/compare/$otherId" params={{ runId, otherId }} className={styles.choice}>
        <span className={styles.line}>
          {run ? <StateMark state={run.status} /> : <code>{otherId}</code>}
          {what !== undefined && <span className="quiet">{what}</span>}
          {run && (
            <span className={styles.when}>
              <Time at={run.createdAt} />
            </span>
          )}
        </span>
        {run && (
          <span className={styles.outcome} dir="auto">
            {run.outcome ?? run.errorCode ?? run.runId}
          </span>
        )}
      </Link>
    </li>
  );
}
