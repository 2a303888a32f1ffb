import styles from './StateMark.module.css';

/** How states are shown: a hue, a shape and a word, so that nobody depends on the colour. */
const MARKS = {
  pending: ['cancelled', '○', 'Pending'],
  running: ['running', '●', 'Running'],
  retrying: ['waiting', '↻', 'Retrying'],
  suspended: ['waiting', '◐', 'Waiting'],
  waiting: ['waiting', '◐', 'Waiting'],
  'waiting-approval': ['waiting', '◐', 'Needs approval'],
  'waiting-input': ['waiting', '◐', 'Needs an answer'],
  'waiting-external': ['waiting', '◐', 'Waiting'],
  paused: ['paused', '‖', 'Paused'],
  completed: ['completed', '✓', 'Completed'],
  failed: ['failed', '✕', 'Failed'],
  cancelling: ['cancelled', '⊘', 'Cancelling'],
  cancelled: ['cancelled', '⊘', 'Cancelled'],
  skipped: ['cancelled', '–', 'Skipped'],
  idle: ['cancelled', '○', 'Not reached'],
} as const;

/** The hue, the shape and the word of a state. */
export function markOf(state: string): readonly [hue: string, shape: string, word: string] {
  return Object.hasOwn(MARKS, state) ? MARKS[state as keyof typeof MARKS] : ['cancelled', '○', state];
}

/** The state of a run or a node. `soft` puts it on a tinted ground, for headings. */
export function StateMark({ state, isSoft = false }: { readonly state: string; readonly isSoft?: boolean }) {
  const [hue, shape, word] = markOf(state);
  return (
    <span className={`${styles.mark} ${isSoft ? styles.soft : ''}`} data-hue={hue} data-state={state}>
      <span className={styles.shape} aria-hidden="true">
        {shape}
      </span>
      {word}
    </span>
  );
}
