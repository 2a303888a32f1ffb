import { Check, MessageCircleQuestion, Pencil, RotateCcw, ShieldAlert, X } from 'lucide-react';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { meetsRole } from '../../src/protocol/trust/scopes.ts';
import { useSession } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { Field } from '../parts/Field.tsx';
import { useKeys } from '../parts/keys.ts';
import { schemaLike } from '../parts/schema.ts';
import styles from './Item.module.css';
import { AnswerFields, leaveOrSend, type Send } from './OpenQuestion.tsx';
import { type Asked, type Ruling, rulingOf } from './open-interrupt.ts';

interface Choice {
  readonly action: Ruling['action'];
  readonly keys: string;
  readonly label: string;
  readonly notice: string;
  readonly icon: ReactNode;
  /** What is asked for before it is sent; without it, it is sent at once. */
  readonly text?: { readonly label: string; readonly isRequired: boolean };
}

const CHOICES: readonly Choice[] = [
  { action: 'accept', keys: 'a', label: 'Approve', notice: 'Approving …', icon: <Check /> },
  { action: 'edit-accept', keys: 'e', label: 'Edit and approve', notice: 'Approving as edited …', icon: <Pencil /> },
  {
    action: 'reject',
    keys: 'r',
    label: 'Reject',
    notice: 'Rejecting …',
    icon: <X />,
    text: { label: 'Why', isRequired: false },
  },
  {
    action: 'refine',
    keys: 'f',
    label: 'Ask for changes',
    notice: 'Asking for changes …',
    icon: <RotateCcw />,
    text: { label: 'What should be different', isRequired: true },
  },
  {
    action: 'ask',
    keys: 'q',
    label: 'Ask a question',
    notice: 'Asking …',
    icon: <MessageCircleQuestion />,
    text: { label: 'Your question', isRequired: true },
  },
  {
    action: 'override',
    keys: 'o',
    label: 'Override',
    notice: 'Overriding …',
    icon: <ShieldAlert />,
    text: { label: 'Why it is overridden (for the audit log)', isRequired: true },
  },
];

const APPROVING: readonly string[] = ['accept', 'edit-accept', 'override'];

interface DecisionProps {
  readonly asked: Asked;
  readonly approving: string | undefined;
  readonly send: Send;
}

/** What the approval lets its approver do. */
function useChoices({ kind, data }: Asked, approving: string | undefined): readonly Choice[] {
  const { role } = useSession();
  const isGate = typeof data.gateId === 'string';
  const override = data.override as { readonly requiredRole?: unknown } | undefined;
  const given = Array.isArray(data.actions) ? data.actions.map(String) : [];
  const actions = isGate
    ? ['accept', 'reject', ...(override && meetsRole(role, override.requiredRole) ? ['override'] : [])]
    : kind === 'low-confidence'
      ? ['accept', 'reject', ...(data.decision === undefined ? [] : ['edit-accept'])]
      : given;
  return CHOICES.filter(
    ({ action }) => actions.includes(action) && !(approving !== undefined && APPROVING.includes(action)),
  );
}

/** Approve, reject and what else the gate offers, each with its key. */
export function Decision({ asked, approving, send }: DecisionProps) {
  const choices = useChoices(asked, approving);
  const [opened, open] = useState<Ruling['action']>();
  const rule = (choice: Choice, more: Omit<Ruling, 'action'> = {}): void =>
    send(choice.notice, rulingOf(asked, { action: choice.action, ...more }));
  const press = (choice: Choice): void => {
    if (choice.action === 'accept') rule(choice);
    else open((old) => (old === choice.action ? undefined : choice.action));
  };
  useKeys(
    'This item',
    choices.map((choice) => ({ keys: choice.keys, label: choice.label, act: () => press(choice) })),
  );
  const chosen = choices.find(({ action }) => action === opened);
  const subject = asked.kind === 'low-confidence' ? asked.data.decision : asked.data.artifactData;
  return (
    <>
      {approving !== undefined && <p className={styles.hindrance}>{approving}</p>}
      <div className={styles.actions}>
        {choices.map((choice) => (
          <Button
            key={choice.action}
            kind={choice.action === 'accept' ? 'main' : choice.action === 'reject' ? 'danger' : 'plain'}
            icon={choice.icon}
            aria-expanded={choice.action === 'accept' ? undefined : choice === chosen}
            aria-keyshortcuts={choice.keys}
            onClick={() => press(choice)}
          >
            {choice.label}
            <kbd className={styles.kbd}>{choice.keys}</kbd>
          </Button>
        ))}
      </div>
      {chosen?.text && <Reason key={chosen.action} choice={chosen} onSend={(text) => rule(chosen, { text })} />}
      {chosen?.action === 'edit-accept' && (
        <Edit subject={subject ?? ''} onSend={(edited) => rule(chosen, { edited })} />
      )}
    </>
  );
}

/** Changes what is approved, in a form that looks like it. */
function Edit({ subject, onSend }: { readonly subject: unknown; readonly onSend: (edited: unknown) => void }) {
  const box = useFirstField();
  return (
    <div ref={box}>
      <AnswerFields schema={schemaLike(subject)} start={subject} action="Approve as edited" onSubmit={onSend} />
    </div>
  );
}

function useFirstField() {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.querySelector<HTMLElement>('input, textarea, select')?.focus(), []);
  return box;
}

function Reason({ choice, onSend }: { readonly choice: Choice; readonly onSend: (text: string) => void }) {
  const [text, setText] = useState('');
  const [isTried, setTried] = useState(false);
  const box = useFirstField();
  const isMissing = choice.text?.isRequired === true && text.trim() === '';
  const submit = (): void => {
    setTried(true);
    if (!isMissing) onSend(text.trim());
  };
  return (
    <div ref={box}>
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
        onKeyDown={(event) => leaveOrSend(event, submit)}
      >
        <Field
          label={choice.text?.isRequired ? choice.text.label : `${choice.text?.label} (optional)`}
          problem={isTried && isMissing ? 'Fill this in.' : undefined}
        >
          {(field) => (
            <input {...field} value={text} onChange={({ target }) => setText(target.value)} autoComplete="off" />
          )}
        </Field>
        <div className={styles.actions}>
          <Button kind={choice.action === 'reject' ? 'danger' : 'main'} type="submit">
            {choice.label} now
          </Button>
          <span className="quiet">Enter sends, Esc leaves the field.</span>
        </div>
      </form>
    </div>
  );
}
