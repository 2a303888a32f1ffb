import { Plus, X } from 'lucide-react';
import type { WorkflowVariable } from '../../src/protocol/running/workflows.ts';
import { Button } from '../parts/Button.tsx';
import { Field } from '../parts/Field.tsx';
import { type Draft, freeName, idFrom } from './draft.ts';
import styles from './Inspector.module.css';

interface FormProps {
  readonly draft: Draft;
  readonly onChange: (how: (draft: Draft) => Draft) => void;
  readonly isSaved: boolean;
}

const ID = /^[a-z][a-z0-9_-]*$/;
const VARIABLE_TYPES = ['string', 'number', 'boolean', 'object', 'array'] as const;

/** The workflow itself: its name and the variables that runs are started with. */
export function WorkflowForm({ draft, onChange, isSaved }: FormProps) {
  const change = (part: Partial<Draft>): void => onChange((old) => ({ ...old, ...part }));
  const rename = (name: string): void =>
    onChange((old) => ({ ...old, name, ...(!isSaved && old.id === idFrom(old.name) ? { id: idFrom(name) } : {}) }));
  const { description = '' } = draft;
  return (
    <div className={styles.form}>
      <header className={styles.head}>
        <h2>Workflow</h2>
      </header>
      <Field label="Name">
        {(field) => <input {...field} dir="auto" value={draft.name} onChange={({ target }) => rename(target.value)} />}
      </Field>
      <Field
        label="Id"
        hint={
          isSaved
            ? 'The id cannot be changed, because runs and schedules refer to it.'
            : 'Lower-case letters, digits, - and _.'
        }
        problem={
          draft.id === '' || ID.test(draft.id)
            ? undefined
            : 'Lower-case letters, digits, - and _, starting with a letter.'
        }
      >
        {(field) => (
          <input
            {...field}
            value={draft.id}
            readOnly={isSaved}
            spellCheck={false}
            onChange={({ target }) => change({ id: target.value })}
          />
        )}
      </Field>
      <Field label="Description">
        {(field) => (
          <textarea
            {...field}
            className={`${field.className} ${styles.prose}`}
            dir="auto"
            value={description}
            onChange={({ target }) => change({ description: target.value })}
          />
        )}
      </Field>
      <VariableList
        variables={draft.variables}
        onChange={(how) => onChange((old) => ({ ...old, variables: how(old.variables) }))}
      />
    </div>
  );
}

interface ListProps {
  readonly variables: readonly WorkflowVariable[];
  readonly onChange: (how: (variables: WorkflowVariable[]) => WorkflowVariable[]) => void;
}

function VariableList({ variables, onChange }: ListProps) {
  const change = (index: number, part: Partial<WorkflowVariable>): void =>
    onChange((old) => old.map((variable, at) => (at === index ? { ...variable, ...part } : variable)));
  const add = (): void =>
    onChange((old) => [
      ...old,
      {
        name: freeName(
          'input',
          old.map(({ name }) => name),
        ),
        type: 'string',
      },
    ]);
  return (
    <fieldset className={styles.group}>
      <legend>Variables</legend>
      {variables.length === 0 && <p className="quiet">None. The values of variables are given when a run starts.</p>}
      {variables.map((variable, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: variables keep their order while their names are edited
        <div key={index} className={styles.portHead}>
          <input
            aria-label={`Name of variable ${index + 1}`}
            className={styles.small}
            value={variable.name}
            spellCheck={false}
            onChange={({ target }) => change(index, { name: target.value })}
          />
          <select
            aria-label={`Type of ${variable.name}`}
            className={styles.small}
            value={variable.type}
            onChange={({ target }) => {
              const type = VARIABLE_TYPES.find((known) => known === target.value);
              if (type) change(index, { type });
            }}
          >
            {VARIABLE_TYPES.map((type) => (
              <option key={type}>{type}</option>
            ))}
          </select>
          <label className={styles.check}>
            <input
              type="checkbox"
              checked={variable.required ?? false}
              onChange={({ target }) => change(index, { required: target.checked })}
            />
            required
          </label>
          <Button
            kind="quiet"
            icon={<X />}
            aria-label={`Remove variable ${variable.name}`}
            onClick={() => onChange((old) => old.filter((_variable, at) => at !== index))}
          />
        </div>
      ))}
      <Button icon={<Plus />} onClick={add}>
        Add variable
      </Button>
    </fieldset>
  );
}
