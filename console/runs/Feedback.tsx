import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Flag, Pencil, Tag } from 'lucide-react';
import { useState } from 'react';
import type { Annotation, AnnotationCreate } from '../../src/protocol/people/annotations.ts';
import { client } from '../api/client.ts';
import { useFeed } from '../api/feed.ts';
import { readAgain } from '../api/queries.ts';
import { annotationsQuery } from '../api/runs.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { Panel } from '../parts/Panel.tsx';
import { Principal } from '../parts/Principal.tsx';
import { Problem } from '../parts/States.tsx';
import { Time } from '../parts/Time.tsx';
import { complain, say } from '../parts/toasts.tsx';
import { CorrectOutput } from './CorrectOutput.tsx';
import styles from './Feedback.module.css';

const RATINGS = [1, 2, 3, 4, 5];
/** The latest of a node; all of them are with those of the run. */
const SHOWN_OF_NODE = 3;
/** A correction that is longer is opened with a click. */
const SHORT_CHARACTERS = 160;

interface FeedbackProps {
  readonly runId: string;
  /** What the run gave, to be edited into a correction; without it, corrections are in words. */
  readonly outputs?: unknown;
  /** Whether the outputs may still come, because the log is being read. */
  readonly isReading?: boolean;
}

/** What people think of the run and of its nodes, and a place to say it about the run. */
export function Feedback({ runId, outputs, isReading = false }: FeedbackProps) {
  const { data = [], error } = useAnnotations(runId);
  const may = useMay();
  return (
    <Panel title="Feedback" aside={<span className="quiet number">{data.length}</span>}>
      <div className={styles.feedback}>
        {error && <Problem error={error} />}
        {may('feedback:write') && <Judge runId={runId} output={outputs} isReading={isReading} />}
        <Said annotations={data} />
        {data.length === 0 && <p className="quiet">There is no feedback on this run yet.</p>}
      </div>
    </Panel>
  );
}

interface NodeFeedbackProps {
  readonly runId: string;
  readonly nodeId: string;
  readonly output: unknown;
  readonly isReading: boolean;
}

/** The same about one node. */
export function NodeFeedback({ runId, nodeId, output, isReading }: NodeFeedbackProps) {
  const { data = [] } = useAnnotations(runId);
  const may = useMay();
  const own = data.filter(({ target }) => target.nodeId === nodeId);
  return (
    <div className={styles.feedback}>
      <Said annotations={own.slice(-SHOWN_OF_NODE)} isOfNode />
      {own.length > SHOWN_OF_NODE && (
        <p className="quiet">{own.length - SHOWN_OF_NODE} earlier ones are at the end of the page.</p>
      )}
      {may('feedback:write') && (
        <Judge key={nodeId} runId={runId} nodeId={nodeId} output={output} isReading={isReading} />
      )}
      {own.length === 0 && !may('feedback:write') && <p className="quiet">None.</p>}
    </div>
  );
}

/** What was said about a run, as it is said. */
function useAnnotations(runId: string) {
  useFeed((event, data) => {
    if (event !== 'run.annotated' || data.runId !== runId) return;
    void readAgain({ queryKey: annotationsQuery(runId).queryKey });
  });
  return useQuery(annotationsQuery(runId));
}

function Said({ annotations, isOfNode = false }: { annotations: readonly Annotation[]; isOfNode?: boolean }) {
  return (
    <ul className={styles.list}>
      {annotations.map(({ annotationId, signal, note, createdAt, actor, target: { runId, nodeId } }) => (
        <li key={annotationId}>
          <Signal signal={signal} />
          {note && <span dir="auto"> {note}</span>}
          <span className="quiet">
            {' '}
            {nodeId !== undefined && !isOfNode && (
              <>
                on{' '}
                <Link to="/runs/$runId" params={{ runId }} search={{ node: nodeId }} resetScroll={false}>
                  {nodeId}
                </Link>{' '}
                ·{' '}
              </>
            )}
            <Principal id={actor.principalRef} /> · <Time at={createdAt} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function Signal({ signal }: { readonly signal: AnnotationCreate['signal'] }) {
  const { kind, rating, label, correction = '' } = signal;
  if (kind !== 'correction') {
    return <strong>{kind === 'rating' ? `${rating} of 5` : kind === 'label' ? label : 'Flagged'}</strong>;
  }
  if (correction.length <= SHORT_CHARACTERS && !correction.includes('\n')) {
    return (
      <>
        <strong>Should be:</strong> <span dir="auto">{correction}</span>
      </>
    );
  }
  return (
    <details className={styles.correction}>
      <summary>
        <strong>Should be:</strong> <span dir="auto">{correction.slice(0, SHORT_CHARACTERS)} …</span>
      </summary>
      <p className={styles.text} dir="auto">
        {correction}
      </p>
    </details>
  );
}

interface JudgeProps {
  readonly runId: string;
  readonly nodeId?: string;
  readonly output: unknown;
  readonly isReading: boolean;
}

/** Rates, flags, labels and corrects a run or one of its nodes. */
function Judge({ runId, nodeId, output, isReading }: JudgeProps) {
  const [note, setNote] = useState('');
  const [isLabelling, setLabelling] = useState(false);
  const [isCorrecting, setCorrecting] = useState(false);
  const { mutate: send, isPending: isBusy } = useSend(runId, nodeId, note, () => {
    setNote('');
    setLabelling(false);
  });
  const what = nodeId === undefined ? '' : ` ${nodeId}`;
  return (
    <div className={styles.judge}>
      <input
        className={styles.note}
        placeholder="A note (optional)"
        aria-label={`A note on${nodeId === undefined ? ' the run' : what} (optional)`}
        value={note}
        onChange={({ target }) => setNote(target.value)}
      />
      <Ratings what={what} isBusy={isBusy} onRate={(rating) => send({ kind: 'rating', rating })} />
      <Button icon={<Flag />} aria-label={`Flag${what}`} isBusy={isBusy} onClick={() => send({ kind: 'flag' })}>
        Flag
      </Button>
      <Button
        icon={<Tag />}
        aria-label={`Label${what}`}
        aria-expanded={isLabelling}
        onClick={() => setLabelling((old) => !old)}
      >
        Label
      </Button>
      <Button icon={<Pencil />} aria-label={`Correct${what}`} disabled={isReading} onClick={() => setCorrecting(true)}>
        Correct
      </Button>
      {isLabelling && <LabelForm isBusy={isBusy} onLabel={(label) => send({ kind: 'label', label })} />}
      {isCorrecting && (
        <CorrectOutput runId={runId} nodeId={nodeId} output={output} onClose={() => setCorrecting(false)} />
      )}
    </div>
  );
}

interface RatingsProps {
  /** What is rated, after a space; empty for the run. */
  readonly what: string;
  readonly isBusy: boolean;
  readonly onRate: (rating: number) => void;
}

function Ratings({ what, isBusy, onRate }: RatingsProps) {
  return (
    <fieldset className={styles.ratings}>
      <legend className="hidden">Rating</legend>
      {RATINGS.map((rating) => (
        <Button key={rating} aria-label={`Rate${what} ${rating} of 5`} isBusy={isBusy} onClick={() => onRate(rating)}>
          {rating}
        </Button>
      ))}
    </fieldset>
  );
}

function LabelForm({ isBusy, onLabel }: { readonly isBusy: boolean; readonly onLabel: (label: string) => void }) {
  const [label, setLabel] = useState('');
  return (
    <form
      className={styles.labelling}
      onSubmit={(event) => {
        event.preventDefault();
        if (label.trim() !== '') onLabel(label.trim());
      }}
    >
      <input
        className={styles.note}
        // biome-ignore lint/a11y/noAutofocus: whoever asked for the field wants to type into it
        autoFocus
        placeholder="A label, such as wrong-tone"
        aria-label="A label"
        value={label}
        onChange={({ target }) => setLabel(target.value)}
      />
      <Button type="submit" isBusy={isBusy}>
        Add
      </Button>
    </form>
  );
}

function useSend(runId: string, nodeId: string | undefined, note: string, onSent: () => void) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (signal: AnnotationCreate['signal']) =>
      client.createAnnotation(runId, {
        signal,
        ...(nodeId === undefined ? {} : { target: { nodeId } }),
        ...(note.trim() === '' ? {} : { note: note.trim() }),
      }),
    onSuccess: () => {
      onSent();
      say('Thank you. It is recorded.');
      void cache.invalidateQueries({ queryKey: annotationsQuery(runId).queryKey });
    },
    onError: complain,
  });
}
