import { type ReactNode, useId } from 'react';
import styles from './Field.module.css';

/** What connects an input with its label, its hint and its problem. */
interface FieldAttributes {
  readonly id: string;
  readonly className: string | undefined;
  readonly 'aria-describedby': string | undefined;
  readonly 'aria-invalid': true | undefined;
}

interface FieldProps {
  readonly label: string;
  readonly hint?: string | undefined;
  readonly problem?: string | undefined;
  readonly children: (attributes: FieldAttributes) => ReactNode;
}

/** A labelled input; a problem is said where it is, also to screen readers. */
export function Field({ label, hint, problem, children }: FieldProps) {
  const id = useId();
  const note = problem ?? hint;
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        className: styles.input,
        'aria-describedby': note === undefined ? undefined : `${id}-note`,
        'aria-invalid': problem === undefined ? undefined : true,
      })}
      {note !== undefined && (
        <p id={`${id}-note`} className={styles.note} role={problem === undefined ? undefined : 'alert'}>
          {note}
        </p>
      )}
    </div>
  );
}
