import { type ReactNode, useId } from 'react';
import { Button } from './Button.tsx';
import { Dialog } from './Dialog.tsx';
import styles from './FormDialog.module.css';

interface FormDialogProps {
  readonly title: string;
  /** The words on the button that sends it. */
  readonly action: string;
  readonly isBusy: boolean;
  /** Whether enough is filled in to be sent. */
  readonly canSend?: boolean;
  /** Whether the browser leaves it to the form itself to check its fields. */
  readonly noValidate?: boolean;
  /** What was refused and belongs to no field. */
  readonly problem: string | undefined;
  readonly onSubmit: () => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A form beside the page, with its buttons and with what the host refused. */
export function FormDialog(props: FormDialogProps) {
  const { title, action, isBusy, canSend = true, noValidate = false, problem, onSubmit, onClose, children } = props;
  const id = useId();
  const footer = (
    <>
      <Button onClick={onClose}>Close</Button>
      <Button kind="main" type="submit" form={id} isBusy={isBusy} disabled={!canSend}>
        {action}
      </Button>
    </>
  );
  return (
    <Dialog title={title} isOpen isSide onClose={onClose} footer={footer}>
      <form
        id={id}
        className={styles.form}
        noValidate={noValidate}
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit();
        }}
      >
        {children}
        <FormProblem text={problem} />
      </form>
    </Dialog>
  );
}

/** What the host refused and belongs to no field. */
export function FormProblem({ text }: { readonly text: string | undefined }) {
  if (text === undefined) return null;
  return (
    <p className={styles.problem} role="alert">
      {text}
    </p>
  );
}
