import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Flag } from 'lucide-react';
import { useState } from 'react';
import type { AnnotationCreate } from '../../src/protocol/people/annotations.ts';
import { client } from '../api/client.ts';
import { annotationsQuery } from '../api/runs.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { Panel } from '../parts/Panel.tsx';
import { Problem } from '../parts/States.tsx';
import { Time } from '../parts/Time.tsx';
import { complain, say } from '../parts/toasts.tsx';
import styles from './Feedback.module.css';

const RATINGS = [1, 2, 3, 4, 5];

/** What people think of the run, and a place to say it. */
export function Feedback({ runId }: { readonly runId: string }) {
  const { data = [], error } = useQuery(annotationsQuery(runId));
  const may = useMay();
  return (
    <Panel title="Feedback" aside={<span className="quiet number">{data.length}</span>}>
      <div className={styles.feedback}>
        {error && <Problem error={error} />}
        {may('feedback:write') && <Judge runId={runId} />}
        <ul className={styles.list}>
          {data.map(({ annotationId, signal, note, createdAt, actor }) => (
            <li key={annotationId}>
              <strong>{wordsOf(signal)}</strong>
              {note && <span dir="auto"> {note}</span>}
              <span className="quiet">
                {' '}
                {actor.principalRef} · <Time at={createdAt} />
              </span>
            </li>
          ))}
        </ul>
        {data.length === 0 && <p className="quiet">Nobody has said anything about this run yet.</p>}
      </div>
    </Panel>
  );
}

function wordsOf({ kind, rating, label, correction }: AnnotationCreate['signal']): string {
  if (kind === 'rating') return `${rating} of 5`;
  if (kind === 'correction') return `Should be: ${correction}`;
  return kind === 'label' ? `${label}` : kind === 'flag' ? 'Flagged' : kind;
}

function Judge({ runId }: { readonly runId: string }) {
  const [note, setNote] = useState('');
  const cache = useQueryClient();
  const send = useMutation({
    mutationFn: (signal: AnnotationCreate['signal']) =>
      client.createAnnotation(runId, { signal, ...(note.trim() === '' ? {} : { note: note.trim() }) }),
    onSuccess: () => {
      setNote('');
      say('Thank you. It is recorded.');
      void cache.invalidateQueries({ queryKey: ['annotations', runId] });
    },
    onError: complain,
  });
  return (
    <div className={styles.judge}>
      <input
        className={styles.note}
        placeholder="A note (optional)"
        aria-label="A note (optional)"
        value={note}
        onChange={({ target }) => setNote(target.value)}
      />
      <fieldset className={styles.ratings}>
        <legend className="hidden">Rating</legend>
        {RATINGS.map((rating) => (
          <Button
            key={rating}
            aria-label={`Rate ${rating} of 5`}
            isBusy={send.isPending}
            onClick={() => send.mutate({ kind: 'rating', rating })}
          >
            {rating}
          </Button>
        ))}
      </fieldset>
      <Button icon={<Flag />} isBusy={send.isPending} onClick={() => send.mutate({ kind: 'flag' })}>
        Flag
      </Button>
    </div>
  );
}
