import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Continuation, Goal, GoalBounds, GoalEdit, GoalRequest } from '../../src/protocol/learning/goals.ts';
import { client } from '../api/client.ts';
import { verifiersQuery } from '../api/goals.ts';
import { AreaField, ChoiceField, TextField } from '../parts/Fields.tsx';
import { FormDialog } from '../parts/FormDialog.tsx';
import { problemsOf } from '../parts/field-problems.ts';
import { say } from '../parts/toasts.tsx';
import styles from './GoalPage.module.css';
import { CONTINUATIONS } from './states.ts';

const BOUNDS = ['maxLoopIterations', 'maxCostUsd', 'runTimeoutMs'] as const;
const FIELDS = ['objective', 'completion', 'continuation', ...BOUNDS.map((name) => `bounds.${name}`), 'bounds'];
const HOUR_MS = 3_600_000;

interface Filled {
  readonly objective: string;
  /** The id of a verifier; empty for the host itself. */
  readonly verifierRef: string;
  readonly mode: Continuation;
  readonly runs: string;
  readonly usd: string;
  readonly hours: string;
}

interface FormProps {
  /** The one to change; a new one without it. */
  readonly goal?: Goal;
  readonly onClose: () => void;
  readonly onDone?: (goal: Goal) => void;
}

/** Sets a goal, or changes what it is about. Its bounds are set once, so that nobody widens them unnoticed. */
export function GoalForm({ goal, onClose, onDone }: FormProps) {
  const cache = useQueryClient();
  const [filled, fill] = useState(() => filledFrom(goal));
  const set = (change: Partial<Filled>): void => fill({ ...filled, ...change });
  const save = useMutation({
    mutationFn: () => (goal ? client.editGoal(goal.id, changedIn(filled, goal)) : client.createGoal(requestOf(filled))),
    onSuccess: async (saved) => {
      say(goal ? 'The goal is saved.' : 'The goal is created. Now make a plan for it.');
      onClose();
      onDone?.(saved);
      for (const name of ['goal', 'goals']) await cache.invalidateQueries({ queryKey: [name] });
    },
  });
  const problems = problemsOf(save.error, FIELDS);
  return (
    <FormDialog
      title={goal ? 'Edit goal' : 'New goal'}
      action={goal ? 'Save' : 'Set goal'}
      isBusy={save.isPending}
      problem={problems.rest}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <Aim filled={filled} set={set} problems={problems.fields} />
      {goal ? (
        <p className="quiet">
          The bounds of a goal cannot be changed. Create another goal if it needs different bounds.
        </p>
      ) : (
        <Bounds filled={filled} set={set} problems={problems.fields} />
      )}
    </FormDialog>
  );
}

interface PartProps {
  readonly filled: Filled;
  readonly set: (change: Partial<Filled>) => void;
  readonly problems: Readonly<Record<string, string>>;
}

/** What is to be true in the end, who says whether it is, and how the work goes on. */
function Aim({ filled, set, problems }: PartProps) {
  const { data: verifiers = [] } = useQuery(verifiersQuery);
  const known = verifiers.map(({ id, kind }) => [id, `the verifier ${id} (${kind})`] as const);
  const isListed = filled.verifierRef === '' || known.some(([id]) => id === filled.verifierRef);
  return (
    <>
      <AreaField
        label="Objective"
        hint="What should be true in the end. Each run gets this text; earlier versions are kept."
        problem={problems.objective}
        required
        maxLength={8_192}
        value={filled.objective}
        onChange={(objective) => set({ objective })}
      />
      <ChoiceField
        label="Judged by"
        problem={problems.completion}
        value={filled.verifierRef}
        onChange={(verifierRef) => set({ verifierRef })}
        choices={[
          ['', 'the host, by the criteria of the plan'],
          ...known,
          ...(isListed ? [] : [[filled.verifierRef, filled.verifierRef] as const]),
        ]}
      />
      <ChoiceField
        label="The next run is started"
        problem={problems.continuation}
        value={filled.mode}
        onChange={(mode) => set({ mode: mode as Continuation })}
        choices={Object.entries(CONTINUATIONS)}
      />
    </>
  );
}

function Bounds({ filled, set, problems }: PartProps) {
  return (
    <fieldset className={styles.bounds}>
      <legend>Bounds</legend>
      <p className={problems.bounds === undefined ? 'quiet' : styles.problem}>
        {problems.bounds ?? 'Set at least one. When a bound is reached, no more runs start.'}
      </p>
      <TextField
        label="Runs"
        type="number"
        min={1}
        step={1}
        problem={problems['bounds.maxLoopIterations']}
        value={filled.runs}
        onChange={(runs) => set({ runs })}
      />
      <TextField
        label="US dollars"
        type="number"
        min={0}
        step="any"
        problem={problems['bounds.maxCostUsd']}
        value={filled.usd}
        onChange={(usd) => set({ usd })}
      />
      <TextField
        label="Hours"
        type="number"
        min={0}
        step="any"
        problem={problems['bounds.runTimeoutMs']}
        value={filled.hours}
        onChange={(hours) => set({ hours })}
      />
    </fieldset>
  );
}

function filledFrom(goal: Goal | undefined): Filled {
  return {
    objective: goal?.objective ?? '',
    verifierRef: goal?.completion.check === 'verifier' ? (goal.completion.verifierRef ?? '') : '',
    mode: goal?.continuation.mode ?? 'manual',
    runs: '10',
    usd: '',
    hours: '',
  };
}

function requestOf(filled: Filled): GoalRequest {
  const { objective, runs, usd, hours } = filled;
  const bounds: GoalBounds = {
    ...(runs.trim() !== '' && { maxLoopIterations: Number(runs) }),
    ...(usd.trim() !== '' && { maxCostUsd: Number(usd) }),
    ...(hours.trim() !== '' && { runTimeoutMs: Math.round(Number(hours) * HOUR_MS) }),
  };
  return { objective, completion: completionOf(filled), continuation: { mode: filled.mode }, bounds };
}

function completionOf({ verifierRef }: Filled): GoalRequest['completion'] {
  return verifierRef === '' ? { check: 'host' } : { check: 'verifier', verifierRef };
}

/** Only what was changed is sent: a way to continue that is sent again would arm the goal again. */
function changedIn(filled: Filled, goal: Goal): GoalEdit {
  const before = filledFrom(goal);
  return {
    ...(filled.objective !== before.objective && { objective: filled.objective }),
    ...(filled.verifierRef !== before.verifierRef && { completion: completionOf(filled) }),
    ...(filled.mode !== before.mode && { continuation: { mode: filled.mode } }),
  };
}
