import type { Goal, GoalEvaluations } from '../../src/protocol/learning/goals.ts';
import { dollars } from '../parts/numbers.ts';
import { useNow } from '../parts/Time.tsx';
import { span } from '../parts/time.ts';
import styles from './GoalPage.module.css';

interface BoundsProps {
  readonly goal: Goal;
  readonly evaluations: GoalEvaluations;
}

/** From this share on, a bound is nearly used up. */
const NEAR = 0.8;

/** How much of each bound is used. */
export function Bounds({ goal, evaluations }: BoundsProps) {
  const { bounds, createdAt, updatedAt, state } = goal;
  const isOpen = state === 'active' || state === 'escalated';
  const now = useNow(isOpen && bounds.runTimeoutMs !== undefined ? 10_000 : 0);
  const end = isOpen ? now : Date.parse(updatedAt ?? createdAt);
  const age = Math.max(0, end - Date.parse(createdAt));
  const { runsStarted, costUsd } = evaluations;
  return (
    <section className={styles.gauges} aria-label="Bounds">
      <Gauge label="Runs" used={runsStarted} most={bounds.maxLoopIterations} words={String} />
      <Gauge label="Cost" used={costUsd} most={bounds.maxCostUsd} words={dollars} />
      <Gauge label="Time" used={age} most={bounds.runTimeoutMs} words={span} />
    </section>
  );
}

interface GaugeProps {
  readonly label: string;
  readonly used: number;
  readonly most: number | undefined;
  readonly words: (value: number) => string;
}

function Gauge({ label, used, most, words }: GaugeProps) {
  const share = most === undefined ? 0 : most === 0 ? 1 : Math.min(1, used / most);
  const state = share >= 1 ? 'full' : share >= NEAR ? 'near' : 'free';
  return (
    <div className={styles.gauge} data-state={state}>
      <h2>{label}</h2>
      <p className={`number ${styles.used}`}>
        {words(used)}
        <span className="quiet"> {most === undefined ? 'no bound' : `of ${words(most)}`}</span>
      </p>
      {most !== undefined && (
        <div
          className={styles.bar}
          role="meter"
          aria-label={label}
          aria-valuemin={0}
          aria-valuemax={most}
          aria-valuenow={Math.min(used, most)}
          aria-valuetext={`${words(used)} of ${words(most)}`}
        >
          <span style={{ width: `${share * 100}%` }} />
        </div>
      )}
      {state !== 'free' && <p className={styles.near}>{state === 'full' ? 'Used up' : 'Nearly used up'}</p>}
    </div>
  );
}
