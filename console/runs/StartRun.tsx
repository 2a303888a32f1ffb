import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import { client } from '../api/client.ts';
import { workflowQuery, workflowsQuery } from '../api/workflows.ts';
import { Button } from '../parts/Button.tsx';
import { Dialog } from '../parts/Dialog.tsx';
import { explain } from '../parts/explain.ts';
import { Field } from '../parts/Field.tsx';
import { Problem, Skeleton } from '../parts/States.tsx';
import { readInput, showInput } from './inputs.ts';
import styles from './StartRun.module.css';

const FORM = 'start-run';

interface StartProps {
  /** `-` if it is still to be chosen. */
  readonly workflowId: string;
  /** What the fields have at first: the inputs of the run to start one like. */
  readonly inputs?: Readonly<Record<string, unknown>>;
  readonly onClose: () => void;
}

/** Starts a run: a form made from the variables of the workflow. */
export function StartRun({ workflowId, inputs = {}, onClose }: StartProps) {
  const [chosen, choose] = useState(workflowId === '-' ? '' : workflowId);
  const { data: workflows = [] } = useQuery(workflowsQuery);
  const navigate = useNavigate();
  const cache = useQueryClient();
  const start = useMutation({
    mutationFn: (given: Record<string, unknown>) => client.createRun({ workflowId: chosen, inputs: given }),
    onSuccess: ({ runId }) => {
      void cache.invalidateQueries({ queryKey: ['runs'] });
      void navigate({ to: '/runs/$runId', params: { runId }, search: {} });
    },
  });
  const footer = (
    <>
      <Button onClick={onClose}>Close</Button>
      <Button kind="main" type="submit" form={FORM} disabled={chosen === ''} isBusy={start.isPending}>
        Start run
      </Button>
    </>
  );
  return (
    <Dialog title="Start a run" isOpen isSide onClose={onClose} footer={footer}>
      <div className={styles.form}>
        <Field label="Workflow">
          {(field) => (
            <select {...field} value={chosen} onChange={({ target }) => choose(target.value)}>
              <option value="">Choose a workflow …</option>
              {workflows.map(({ id, name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </select>
          )}
        </Field>
        {chosen !== '' && <Inputs key={chosen} workflowId={chosen} inputs={inputs} onSubmit={start.mutate} />}
        {start.isError && (
          <p className={styles.problem} role="alert">
            {explain(start.error).text}
          </p>
        )}
      </div>
    </Dialog>
  );
}

interface InputsProps {
  readonly workflowId: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly onSubmit: (inputs: Record<string, unknown>) => void;
}

function Inputs({ workflowId, inputs, onSubmit }: InputsProps) {
  const { data, error, isPending } = useQuery(workflowQuery(workflowId));
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({});
  if (isPending) return <Skeleton lines={4} />;
  if (!data) return <Problem error={error} />;
  const submit = (form: FormData): void => {
    const read = data.variables.map(
      (variable) => [variable.name, readInput(variable, form.get(variable.name))] as const,
    );
    const wrong = read.flatMap(([name, { problem }]) => (problem ? [[name, problem]] : []));
    setProblems(Object.fromEntries(wrong));
    if (wrong.length > 0) return;
    onSubmit(Object.fromEntries(read.flatMap(([name, { value }]) => (value === undefined ? [] : [[name, value]]))));
  };
  return (
    <form
      id={FORM}
      className={styles.form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        submit(new FormData(event.currentTarget));
      }}
    >
      {data.description && <p className="quiet">{data.description}</p>}
      {data.variables.length === 0 && <p className="quiet">This workflow takes no inputs.</p>}
      {data.variables.map((variable) => (
        <VariableField
          key={variable.name}
          variable={variable}
          given={inputs[variable.name]}
          problem={problems[variable.name]}
        />
      ))}
    </form>
  );
}

interface VariableProps {
  readonly variable: WorkflowDefinition['variables'][number];
  readonly given: unknown;
  readonly problem: string | undefined;
}

function VariableField({ variable, given, problem }: VariableProps) {
  const { name, type, description, required = false, sensitive = false } = variable;
  const shown = showInput(given ?? variable.defaultValue);
  const marks = [required && 'required', sensitive && 'sensitive'].filter(Boolean).join(', ');
  return (
    <Field label={marks === '' ? name : `${name} (${marks})`} hint={description} problem={problem}>
      {(field) =>
        type === 'boolean' ? (
          <select {...field} name={name} defaultValue={shown}>
            <option value="">Not given</option>
            <option value="true">true</option>
            <option value="false">false</option>
          </select>
        ) : type === 'object' || type === 'array' ? (
          <textarea
            {...field}
            name={name}
            defaultValue={shown}
            spellCheck={false}
            placeholder={type === 'array' ? '[ ]' : '{ }'}
          />
        ) : (
          <input
            {...field}
            name={name}
            defaultValue={shown}
            inputMode={type === 'number' ? 'decimal' : 'text'}
            autoComplete="off"
          />
        )
      }
    </Field>
  );
}
