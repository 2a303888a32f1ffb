import { useRef, useState } from 'react';
import type { InboxItem } from '../../src/protocol/people/inbox.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import { client } from '../api/client.ts';
import { useSession } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { JsonTree } from '../parts/JsonTree.tsx';
import { useKeys } from '../parts/keys.ts';
import { Principals } from '../parts/Principal.tsx';
import { SchemaFields } from '../parts/SchemaForm.tsx';
import type { Schema } from '../parts/schema.ts';
import { draftOf, readDraft } from '../parts/schema-draft.ts';
import { Decision } from './Decision.tsx';
import styles from './Item.module.css';
import { type Asked, answerOf, answerSchemaOf, hindranceOf } from './open-interrupt.ts';

/** Answers an item: says so, and sends it in a moment. */
export type Answer = (text: string, send: () => Promise<unknown>) => void;

interface QuestionProps {
  readonly runId: string;
  readonly nodeId: string;
  readonly asked: Asked;
  readonly run: RunSnapshot | undefined;
  /** The scope that the inbox says that it takes. */
  readonly item?: Pick<InboxItem, 'requiredScope'>;
  readonly onAnswer: Answer;
}

/** What a node asks, and the form that answers it. Whoever may not answer reads who can. */
export function OpenQuestion({ runId, nodeId, asked, run, item = {}, onAnswer }: QuestionProps) {
  const me = useSession();
  const { answering, approving } = hindranceOf(item, asked, me, run);
  const send: Send = (text, resumeValue) =>
    onAnswer(text, () => client.resolveInterruptByRun(runId, nodeId, { resumeValue }));
  return (
    <div className={styles.question}>
      <Subject asked={asked} />
      <Votes asked={asked} />
      {answering !== undefined ? (
        <p className={styles.hindrance}>{answering}</p>
      ) : (
        <AnswerForm key={asked.interruptId} asked={asked} approving={approving} send={send} />
      )}
    </div>
  );
}

/** Sends a resume value, with a word for the notice. */
export type Send = (text: string, resumeValue: unknown) => void;

interface FormProps {
  readonly asked: Asked;
  readonly approving: string | undefined;
  readonly send: Send;
}

function AnswerForm({ asked, approving, send }: FormProps) {
  const schema = answerSchemaOf(asked);
  if (schema) return <AnswerFields schema={schema} onSubmit={(value) => send('Answering …', answerOf(asked, value))} />;
  if (asked.kind === 'external-event') return <ExternalEvent asked={asked} send={send} />;
  return <Decision asked={asked} approving={approving} send={send} />;
}

/** What is to be decided. */
function Subject({ asked: { kind, data } }: { readonly asked: Asked }) {
  const { description, prompt, artifactData, artifactHash, payload, decision, observed, threshold } = data;
  const shown = artifactData ?? payload ?? decision;
  return (
    <>
      {[description, prompt].map(
        (text) =>
          typeof text === 'string' && (
            <p key={text} dir="auto" className={styles.text}>
              {text}
            </p>
          ),
      )}
      {kind === 'low-confidence' && (
        <p className="number">
          Confidence {percent(observed)}, {percent(threshold)} is needed.
        </p>
      )}
      {shown !== undefined && (
        <div className={styles.subject}>
          <JsonTree value={shown} />
        </div>
      )}
      {typeof artifactHash === 'string' && (
        <p className={styles.hash}>
          <span className="quiet">SHA-256</span> <code>{artifactHash}</code>
        </p>
      )}
    </>
  );
}

const percent = (share: unknown): string => `${Math.round(Number(share) * 100)} %`;

function Votes({ asked: { data, votes } }: { readonly asked: Asked }) {
  const needed = Number(data.quorum ?? data.requiredApprovals ?? 1);
  if (needed < 2 && votes.length === 0) return null;
  const granted = votes.filter(({ action }) => action === 'granted' || action.endsWith('accept'));
  return (
    <p className={styles.votes}>
      <span className="number">
        {granted.length} of {needed}
      </span>{' '}
      approvals
      {granted.length > 0 && (
        <>
          : <Principals ids={granted.map(({ by }) => by)} />
        </>
      )}
    </p>
  );
}

/** The fields of an answer, by its schema. They are sent with the button, or with Ctrl and Enter from any field. */
export function AnswerFields(props: {
  readonly schema: Schema;
  readonly start?: unknown;
  readonly action?: string;
  readonly onSubmit: (value: unknown) => void;
}) {
  const { schema, start, action = 'Answer', onSubmit } = props;
  const form = useRef<HTMLFormElement>(null);
  const [draft, setDraft] = useState(() => draftOf(schema, start));
  const [isTried, setTried] = useState(false);
  const { value, problems } = readDraft(schema, draft);
  const submit = (): void => {
    setTried(true);
    if (Object.keys(problems).length === 0) onSubmit(value);
    else form.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus();
  };
  useKeys('Form', [
    {
      keys: 'Enter',
      label: 'Go to the first field',
      act: () => form.current?.querySelector<HTMLElement>('input, textarea, select')?.focus(),
    },
  ]);
  return (
    <form
      ref={form}
      className={styles.form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={(event) => leaveOrSend(event, submit)}
    >
      <SchemaFields schema={schema} draft={draft} onChange={setDraft} problems={isTried ? problems : {}} />
      <div className={styles.actions}>
        <Button kind="main" type="submit">
          {action}
        </Button>
        <span className="quiet">Ctrl Enter sends, Esc leaves the field.</span>
      </div>
    </form>
  );
}

/** Ctrl and Enter send from any field; Escape leaves the field, so that the keys of the page work again. */
export function leaveOrSend(event: React.KeyboardEvent, send: () => void): void {
  if (event.key === 'Escape' && event.target instanceof HTMLElement) event.target.blur();
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  send();
}

/** Another system answers this; a person can stand in for it. */
function ExternalEvent({ asked: { data, resumeSchema }, send }: Omit<FormProps, 'approving'>) {
  const { eventType, correlation } = data;
  const schema: Schema = resumeSchema ?? { type: 'object', properties: {} };
  const known = Object.keys(typeof correlation === 'object' && correlation !== null ? correlation : {});
  const rest = Object.entries(schema.properties ?? {}).filter(([name]) => !known.includes(name));
  const more = { ...schema, properties: Object.fromEntries(rest), required: [] };
  return (
    <>
      <p>
        The run waits until another system sends <code>{String(eventType)}</code> with these values:
      </p>
      <div className={styles.subject}>
        <JsonTree value={correlation} />
      </div>
      <AnswerFields
        schema={more}
        action="Send this event myself"
        onSubmit={(value) => send('Sending the event …', { ...(value as object), ...(correlation as object) })}
      />
    </>
  );
}
