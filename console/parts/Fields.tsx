import type { ComponentProps } from 'react';
import { Field } from './Field.tsx';

interface Common {
  readonly label: string;
  readonly hint?: string | undefined;
  readonly problem?: string | undefined;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

type Own = keyof Common | 'id' | 'className';

/** A field for a line of text. */
export function TextField({ label, hint, problem, onChange, ...rest }: Common & Omit<ComponentProps<'input'>, Own>) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(field) => (
        <input autoComplete="off" dir="auto" {...rest} {...field} onChange={({ target }) => onChange(target.value)} />
      )}
    </Field>
  );
}

/** A field for a longer text. */
export function AreaField({ label, hint, problem, onChange, ...rest }: Common & Omit<ComponentProps<'textarea'>, Own>) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(field) => <textarea dir="auto" {...rest} {...field} onChange={({ target }) => onChange(target.value)} />}
    </Field>
  );
}

interface ChoiceProps extends Common {
  /** Values with the words for them. */
  readonly choices: readonly (readonly [value: string, words: string])[];
}

/** A field to choose one of several values with. */
export function ChoiceField({ label, hint, problem, value, onChange, choices }: ChoiceProps) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(field) => (
        <select {...field} value={value} onChange={({ target }) => onChange(target.value)}>
          {choices.map(([each, words]) => (
            <option key={each} value={each}>
              {words}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
