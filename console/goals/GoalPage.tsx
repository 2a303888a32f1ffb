import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import type { Goal, GoalEvaluation, GoalEvaluations, GoalPlan } from '../../src/protocol/learning/goals.ts';
import { useFeed } from '../api/feed.ts';
import { evaluationsQuery, goalQuery, planQuery } from '../api/goals.ts';
import { isBlocked, readAgain } from '../api/queries.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { loaded } from '../parts/loaded.ts';
import { Mark } from '../parts/Mark.tsx';
import { Panel } from '../parts/Panel.tsx';
import { Principal } from '../parts/Principal.tsx';
import { Problem, Skeleton } from '../parts/States.tsx';
import { Time } from '../parts/Time.tsx';
import { Bounds } from './Bounds.tsx';
import { GoalForm } from './GoalForm.tsx';
import styles from './GoalPage.module.css';
import { PlanForm } from './PlanForm.tsx';
import { Steer } from './Steer.tsx';
import { CONTINUATIONS, isOpenGoal, PAUSED, STATES } from './states.ts';
import { useOpen } from './use-open.ts';
import { Verdicts } from './Verdicts.tsx';

/** The list says the same as the chart, so a browser that cannot draw it loses nothing. */
const VerdictChart = lazy(() =>
  loaded(() => import('./VerdictChart.tsx'))
    .then(({ VerdictChart }) => ({ default: VerdictChart }))
    .catch(() => ({ default: NoChart })),
);
const route = getRouteApi('/shell/goals/$goalId');

/** One goal: what it is, how it stands, how far it may go, and how it was judged. */
export function GoalPage() {
  const { goalId } = route.useParams();
  const goal = useQuery(goalQuery(goalId));
  const evaluations = useQuery(evaluationsQuery(goalId));
  useFeed((event) => {
    // A run that starts counts against the bounds before it is judged.
    const isAbout = event.startsWith('goal.') || event === 'run.created' || event === 'run.annotated';
    if (isAbout) void readAgain({ queryKey: ['goal', goalId] });
  });
  if (isBlocked(goal)) return <Problem error={goal.error} onRetry={() => void goal.refetch()} />;
  if (isBlocked(evaluations)) return <Problem error={evaluations.error} onRetry={() => void evaluations.refetch()} />;
  if (!goal.data || !evaluations.data) return <Skeleton lines={8} />;
  const { items } = evaluations.data;
  return (
    <div className={styles.page}>
      <Head goal={goal.data} evaluations={evaluations.data} />
      <Steer goal={goal.data} evaluations={evaluations.data} />
      <Bounds goal={goal.data} evaluations={evaluations.data} />
      <Panel title="Verdicts" aside={<span className="quiet number">{items.length}</span>}>
        {items.length === 0 ? (
          <p className="quiet">No run has been judged yet.</p>
        ) : (
          <div className={styles.verdicts}>
            <Suspense fallback={<div className={styles.chart} />}>
              <VerdictChart items={items} />
            </Suspense>
            <Verdicts items={items} />
          </div>
        )}
      </Panel>
      <div className={styles.columns}>
        <Plan goal={goal.data} />
        <Objectives evaluations={evaluations.data} />
      </div>
    </div>
  );
}

function NoChart(_props: { readonly items: readonly GoalEvaluation[] }) {
  return <p className="quiet">This browser cannot draw the chart.</p>;
}

interface GoalProps {
  readonly goal: Goal;
  readonly evaluations: GoalEvaluations;
}

function Head({ goal, evaluations: { paused, managementRunId } }: GoalProps) {
  const { objective, state, continuation, owner, createdAt, completion } = goal;
  const judge = completion.check === 'verifier' ? `the verifier ${completion.verifierRef}` : 'the host';
  return (
    <header className={styles.head}>
      <Mark mark={state === 'active' && paused ? PAUSED : STATES[state]} isSoft />
      <h1 dir="auto">{objective}</h1>
      <p className={styles.facts}>
        <span>
          set <Time at={createdAt} />
          {owner.principal && (
            <>
              {' '}
              by <Principal id={owner.principal} />
            </>
          )}
        </span>
        <span>continued {CONTINUATIONS[continuation.mode]}</span>
        <span>judged by {judge}</span>
      </p>
      <Link to="/runs/$runId" params={{ runId: managementRunId }} search={{}}>
        Whole log
      </Link>
    </header>
  );
}

/** How it is worked on, with the forms that change it. */
function Plan({ goal }: { readonly goal: Goal }) {
  const { data } = useQuery(planQuery(goal.id));
  const { edit } = route.useSearch();
  const open = useOpen(goal.id);
  const may = useMay();
  if (data === undefined) return null;
  const canEdit = may('goals:write') && isOpenGoal(goal);
  const aside = canEdit && data && <Button onClick={() => open('plan')}>Edit plan</Button>;
  return (
    <Panel title="Plan" aside={aside}>
      {data ? <PlanFacts plan={data} /> : <p className="quiet">The goal has no plan, so no runs start.</p>}
      {canEdit && edit === 'plan' && <PlanForm goal={goal} plan={data ?? undefined} onClose={() => open(undefined)} />}
      {canEdit && edit === 'goal' && <GoalForm goal={goal} onClose={() => open(undefined)} />}
    </Panel>
  );
}

function PlanFacts({ plan: { workflowId, criteria, schedule, heartbeat, commitment } }: { readonly plan: GoalPlan }) {
  return (
    <dl className={styles.plan}>
      <dt>Workflow</dt>
      <dd dir="auto">
        <Link to="/workflows/$workflowId" params={{ workflowId }} search={{}}>
          {workflowId}
        </Link>
      </dd>
      {schedule && (
        <>
          <dt>Schedule</dt>
          <dd className="mono">
            {schedule.cron} {schedule.timezone}
          </dd>
        </>
      )}
      {heartbeat && (
        <>
          <dt>Heartbeat</dt>
          <dd className="number">every {heartbeat.intervalSec} s</dd>
        </>
      )}
      {commitment && (
        <>
          <dt>Commitment</dt>
          <dd dir="auto">{commitment.intention ?? commitment.at ?? commitment.predicate?.when}</dd>
        </>
      )}
      {criteria.map(({ key, expression }) => (
        <div key={key} className={styles.criterion}>
          <dt dir="auto">{key}</dt>
          <dd>
            <code>{expression}</code>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Every wording of the objective, so that nobody makes a goal easier unnoticed. */
function Objectives({ evaluations: { objectives, note } }: { readonly evaluations: GoalEvaluations }) {
  return (
    <Panel title="History of the objective">
      <ol className={styles.objectives}>
        {objectives.toReversed().map(({ version, objective, at, by }) => (
          <li key={version}>
            <p dir="auto">{objective}</p>
            <p className="quiet">
              version {version} by <Principal id={by} /> <Time at={at} />
            </p>
          </li>
        ))}
      </ol>
      {note && (
        <p className={styles.note}>
          Note for the next runs: <span dir="auto">{note.text}</span>{' '}
          <span className="quiet">
            <Principal id={note.by} /> <Time at={note.at} />
          </span>
        </p>
      )}
    </Panel>
  );
}
