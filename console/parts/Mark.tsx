import styles from './StateMark.module.css';

interface MarkProps {
  readonly mark: readonly [hue: string, shape: string, word: string];
  readonly isSoft?: boolean;
}

/** A state of anything but a run: a hue, a shape and a word. */
export function Mark({ mark: [hue, shape, word], isSoft = false }: MarkProps) {
  return (
    <span className={`${styles.mark} ${isSoft ? styles.soft : ''}`} data-hue={hue}>
      <span className={styles.shape} aria-hidden="true">
        {shape}
      </span>
      <span>{word}</span>
    </span>
  );
}
