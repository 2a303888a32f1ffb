import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Ban, ListPlus, Pause, Pencil, Play, RotateCw } from 'lucide-react';
import { useState } from 'react';
import type { Goal, GoalEvaluations } from '../../src/protocol/learning/goals.ts';
import { client } from '../api/client.ts';
import { planQuery } from '../api/goals.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { Dialog } from '../parts/Dialog.tsx';
import { Field } from '../parts/Field.tsx';
import { useKeys } from '../parts/keys.ts';
import { complain, say } from '../parts/toasts.tsx';
import styles from './GoalPage.module.css';
import { ESCALATIONS, isOpenGoal } from './states.ts';
import { useOpen } from './use-open.ts';

interface SteerProps {
  readonly goal: Goal;
  readonly evaluations: GoalEvaluations;
}

/** Why it stopped and how it goes on; pausing, running and giving up. */
export function Steer({ goal, evaluations }: SteerProps) {
  const may = useMay();
  const { state } = goal;
  const isOver = !isOpenGoal(goal);
  return (
    <>
      {state === 'escalated' && <Escalation goal={goal} evaluations={evaluations} />}
      {may('goals:write') && !isOver && <Actions goal={goal} isPaused={evaluations.paused} />}
      {!may('goals:write') && !isOver && <p className="quiet">Editors may pause, resume and abandon it.</p>}
    </>
  );
}

/** Does something with a goal, and reads it again. */
function useDeed(deed: () => Promise<unknown>, notice: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: deed,
    onSuccess: () => {
      say(notice);
      for (const name of ['goal', 'goals', 'inbox']) void cache.invalidateQueries({ queryKey: [name] });
    },
    onError: complain,
  });
}

function Escalation({ goal: { id }, evaluations: { escalation } }: SteerProps) {
  const may = useMay();
  const open = useOpen(id);
  const [note, setNote] = useState('');
  const resume = useDeed(() => client.resumeGoal(id, note.trim() === '' ? {} : { note: note.trim() }), 'It goes on.');
  return (
    <section className={styles.escalation} aria-label="Why it stopped">
      <h2>{ESCALATIONS[escalation?.reason ?? ''] ?? 'It stopped.'}</h2>
      {escalation?.detail && (
        <p dir="auto" className={styles.text}>
          {escalation.detail}
        </p>
      )}
      {escalation?.runId && (
        <p>
          <Link to="/runs/$runId" params={{ runId: escalation.runId }} search={{}} className="mono">
            {escalation.runId}
          </Link>
        </p>
      )}
      {may('goals:write') && (
        <form
          className={styles.answer}
          onSubmit={(event) => {
            event.preventDefault();
            resume.mutate();
          }}
        >
          <Field label="A note for the next runs (optional)">
            {(field) => (
              <input {...field} value={note} maxLength={2_000} onChange={({ target }) => setNote(target.value)} />
            )}
          </Field>
          <Button kind="main" type="submit" icon={<Play />} isBusy={resume.isPending}>
            Resume
          </Button>
          <p className={styles.repair}>
            If that is not enough, mend it first:
            <Button onClick={() => open('plan')}>Edit plan</Button>
            <Button onClick={() => open('goal')}>Edit objective and judge</Button>
          </p>
        </form>
      )}
    </section>
  );
}

function Actions({ goal: { id, state, continuation }, isPaused }: { readonly goal: Goal; readonly isPaused: boolean }) {
  const may = useMay();
  const open = useOpen(id);
  const [isAsking, ask] = useState(false);
  const pause = useDeed(() => client.pauseGoal(id), 'The goal is paused. Active runs may finish.');
  const resume = useDeed(() => client.resumeGoal(id, {}), 'It goes on.');
  const run = useDeed(() => client.startGoalRun(id, {}), 'A run is started.');
  const abandon = useDeed(() => client.abandonGoal(id), 'It is abandoned.');
  const isActive = state === 'active';
  const { data: plan } = useQuery(planQuery(id));
  const canRun = isActive && !isPaused && plan && may('runs:create');
  const toggle = isPaused ? resume : pause;
  useKeys('This goal', [
    ...(canRun ? [{ keys: 's', label: 'Start a run', act: () => run.mutate() }] : []),
    ...(isActive ? [{ keys: 'p', label: isPaused ? 'Resume' : 'Pause', act: () => toggle.mutate() }] : []),
  ]);
  return (
    <div className={styles.actions}>
      {isActive && plan === null && (
        <Button kind="main" icon={<ListPlus />} onClick={() => open('plan')}>
          Make a plan
        </Button>
      )}
      {canRun && (
        <Button
          kind={continuation.mode === 'manual' ? 'main' : 'plain'}
          icon={<RotateCw />}
          isBusy={run.isPending}
          onClick={() => run.mutate()}
        >
          Start a run
        </Button>
      )}
      {isActive && (
        <Button icon={isPaused ? <Play /> : <Pause />} isBusy={toggle.isPending} onClick={() => toggle.mutate()}>
          {isPaused ? 'Resume' : 'Pause'}
        </Button>
      )}
      <Button icon={<Pencil />} onClick={() => open('goal')}>
        Edit
      </Button>
      <Button kind="danger" icon={<Ban />} onClick={() => ask(true)}>
        Abandon
      </Button>
      {isAsking && (
        <Dialog
          title="Abandon this goal?"
          isOpen
          onClose={() => ask(false)}
          footer={
            <>
              <Button onClick={() => ask(false)}>Keep it</Button>
              <Button
                kind="danger"
                isBusy={abandon.isPending}
                onClick={() => abandon.mutate(undefined, { onSettled: () => ask(false) })}
              >
                Abandon
              </Button>
            </>
          }
        >
          <p>
            It starts no more runs and cannot be taken up again. Runs that are under way finish without being judged.
          </p>
        </Dialog>
      )}
    </div>
  );
}
