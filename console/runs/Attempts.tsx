import { Mark } from '../parts/Mark.tsx';
import { markOf } from '../parts/StateMark.tsx';
import { span } from '../parts/time.ts';
import styles from './NodeDetail.module.css';
import type { Attempt } from './view.ts';

const LOST = ['cancelled', '⊘', 'No outcome'] as const;

/** Each attempt at a node: how it ended, how long it took, and what went wrong. */
export function Attempts({ attempts }: { readonly attempts: readonly Attempt[] }) {
  return (
    <ol className={styles.attempts}>
      {attempts.map(({ sequence, number, from, to, end, error }) => (
        <li key={sequence}>
          <p className={styles.line}>
            <span className="number quiet">{number + 1}</span>
            <Mark mark={end === 'lost' ? LOST : markOf(end ?? 'running')} />
            <span className="number quiet">{to === undefined ? 'under way' : span(to - from)}</span>
          </p>
          {error && (
            <p className={styles.cause}>
              <code className={styles.error}>{error.code}</code> <span dir="auto">{error.message}</span>
            </p>
          )}
          {end === 'lost' && <p className={`quiet ${styles.cause}`}>Its host stopped, so the attempt was repeated.</p>}
        </li>
      ))}
    </ol>
  );
}
