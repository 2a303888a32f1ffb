import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Plus, X } from 'lucide-react';
import { useState } from 'react';
import type { Goal, GoalPlan } from '../../src/protocol/learning/goals.ts';
import { client } from '../api/client.ts';
import { workflowQuery, workflowsQuery } from '../api/workflows.ts';
import { Button } from '../parts/Button.tsx';
import { AreaField, ChoiceField, TextField } from '../parts/Fields.tsx';
import { FormDialog } from '../parts/FormDialog.tsx';
import { problemsOf } from '../parts/field-problems.ts';
import { say } from '../parts/toasts.tsx';
import { ArmFields } from './ArmFields.tsx';
import styles from './GoalPage.module.css';
import { ARM_FIELDS, type PlanDraft, planDraftOf, readPlan } from './plan-draft.ts';

interface FormProps {
  readonly goal: Goal;
  /** The one to change; the goal has none yet without it. */
  readonly plan: GoalPlan | undefined;
  readonly onClose: () => void;
}

/** How the host works on a goal: the workflow of its runs, what starts them, and by what they are judged. */
export function PlanForm({ goal, plan, onClose }: FormProps) {
  const cache = useQueryClient();
  const [draft, setDraft] = useState(() => planDraftOf(plan));
  const [own, setOwn] = useState<Readonly<Record<string, string>>>({});
  const set = (change: Partial<PlanDraft>): void => setDraft({ ...draft, ...change });
  const save = useMutation({
    mutationFn: (request: GoalPlan) => client.putGoalPlan(goal.id, request),
    onSuccess: async () => {
      say('The plan is saved.');
      onClose();
      await cache.invalidateQueries({ queryKey: ['goal', goal.id] });
    },
  });
  const places = draft.criteria.flatMap((_, index) => [`criteria.${index}.key`, `criteria.${index}.expression`]);
  const said = problemsOf(save.error, [...places, 'workflowId', 'inputs', 'criteria', 'maxParallel', ...ARM_FIELDS]);
  const problems = { ...said.fields, ...own };
  const submit = (): void => {
    const read = readPlan(draft, goal.continuation.mode, plan);
    setOwn(read.problems);
    if (Object.keys(read.problems).length === 0) save.mutate(read.plan);
  };
  return (
    <FormDialog
      title="Plan"
      action="Save plan"
      isBusy={save.isPending}
      canSend={draft.workflowId !== ''}
      noValidate
      problem={said.rest}
      onSubmit={submit}
      onClose={onClose}
    >
      <Runs draft={draft} set={set} problems={problems} />
      <ArmFields mode={goal.continuation.mode} draft={draft} set={set} problems={problems} />
      {goal.completion.check === 'host' && <Criteria draft={draft} set={set} problems={problems} />}
      {goal.continuation.mode === 'manual' && (
        <TextField
          label="Runs at once (optional)"
          inputMode="numeric"
          problem={problems.maxParallel}
          value={draft.maxParallel}
          onChange={(maxParallel) => set({ maxParallel })}
        />
      )}
    </FormDialog>
  );
}

interface PartProps {
  readonly draft: PlanDraft;
  readonly set: (change: Partial<PlanDraft>) => void;
  readonly problems: Readonly<Record<string, string>>;
}

/** Which workflow the runs are of, and what they get. */
function Runs({ draft, set, problems }: PartProps) {
  const { data: workflows = [] } = useQuery(workflowsQuery);
  return (
    <>
      <ChoiceField
        label="Workflow of the runs"
        problem={problems.workflowId}
        value={draft.workflowId}
        onChange={(workflowId) => set({ workflowId })}
        choices={[['', 'Choose a workflow …'], ...workflows.map(({ id, name }) => [id, name] as const)]}
      />
      <AreaField
        label="Inputs (optional)"
        hint="JSON. Each run also gets the input goal, with the objective and the progress."
        problem={problems.inputs}
        spellCheck={false}
        placeholder="{ }"
        value={draft.inputs}
        onChange={(inputs) => set({ inputs })}
      />
      {draft.inputs.trim() !== '' && draft.workflowId !== '' && <MaskedNotice workflowId={draft.workflowId} />}
    </>
  );
}

/** What is sensitive is shown masked, and would be stored as it is shown. */
function MaskedNotice({ workflowId }: { readonly workflowId: string }) {
  const { data } = useQuery(workflowQuery(workflowId));
  const names = data?.variables.filter(({ sensitive }) => sensitive).map(({ name }) => name) ?? [];
  if (names.length === 0) return null;
  return <p className={styles.warning}>Sensitive inputs are masked here: fill them in again ({names.join(', ')}).</p>;
}

function Criteria({ draft: { criteria }, set, problems }: PartProps) {
  const change = (index: number, part: Partial<PlanDraft['criteria'][number]>): void =>
    set({ criteria: criteria.map((each, at) => (at === index ? { ...each, ...part } : each)) });
  return (
    <fieldset className={styles.bounds}>
      <legend>Criteria</legend>
      <p className={problems.criteria === undefined ? 'quiet' : styles.problem}>
        {problems.criteria ??
          'All must be met. Expressions (CEL) know run, outputs (by node), variables and annotations.'}
      </p>
      {criteria.map(({ key, expression }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: criteria have no identity but their place
        <div key={index} className={styles.criterionFields}>
          <TextField
            label={`Name of criterion ${index + 1}`}
            problem={problems[`criteria.${index}.key`]}
            value={key}
            onChange={(value) => change(index, { key: value })}
          />
          <Button
            kind="quiet"
            aria-label={`Remove criterion ${index + 1}`}
            icon={<X />}
            onClick={() => set({ criteria: criteria.toSpliced(index, 1) })}
          />
          <AreaField
            label={`Expression of criterion ${index + 1}`}
            problem={problems[`criteria.${index}.expression`]}
            rows={2}
            spellCheck={false}
            value={expression}
            onChange={(value) => change(index, { expression: value })}
          />
        </div>
      ))}
      <div>
        <Button icon={<Plus />} onClick={() => set({ criteria: [...criteria, { key: '', expression: '' }] })}>
          Add a criterion
        </Button>
      </div>
    </fieldset>
  );
}
