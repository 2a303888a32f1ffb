import { useNavigate } from '@tanstack/react-router';
import { Radio } from 'lucide-react';
import type { RunEvent } from '../../src/client/index.ts';
import { Button } from '../parts/Button.tsx';
import { clockTime } from '../parts/time.ts';
import styles from './TimeLine.module.css';

interface TimeLineProps {
  readonly events: readonly RunEvent[];
  readonly at: number | undefined;
  readonly runId: string;
}

/** Goes through the run: graph, node, log and state show the moment that is chosen. At its end it is the present. */
export function TimeLine({ events, at, runId }: TimeLineProps) {
  const navigate = useNavigate();
  const last = events.at(-1)?.sequence ?? 0;
  const shown = Math.min(at ?? last, last);
  const event = events[shown];
  const go = (sequence: number | undefined): void =>
    void navigate({
      to: '/runs/$runId',
      params: { runId },
      search: ({ at: _at, ...rest }) => (sequence === undefined || sequence >= last ? rest : { ...rest, at: sequence }),
      replace: true,
      resetScroll: false,
    });
  if (events.length < 2) return null;
  return (
    <div className={styles.line}>
      <label htmlFor="moment" className={styles.label}>
        Moment
      </label>
      <input
        id="moment"
        type="range"
        min={0}
        max={last}
        value={shown}
        className={styles.range}
        onChange={({ target }) => go(Number(target.value))}
        aria-valuetext={event && `${event.type}, event ${shown} of ${last}`}
      />
      <output className={styles.where} htmlFor="moment">
        {at === undefined ? (
          <span className="quiet">now</span>
        ) : (
          event && (
            <>
              <span className="quiet">{clockTime(event.timestamp)}</span> {event.type}
            </>
          )
        )}
      </output>
      {at !== undefined && (
        <Button kind="quiet" icon={<Radio />} onClick={() => go(undefined)}>
          Back to now
        </Button>
      )}
    </div>
  );
}
